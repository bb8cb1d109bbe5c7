"""The further edges a drill has: its own patient, load, Prometheus' own alerts, and the doctor as a user meets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from latencydoctor.app.ports import Observer
from latencydoctor.model.canary import CanaryTrial
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.drill import Injection, Scenario
from latencydoctor.model.load import LoadPlan, PhaseStart, WindowStats
from latencydoctor.model.remedy import NothingToDo, Plan, Verification


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rehearsal stack listens, and the questions that may be asked of it."""

    url: str
    accelerator: str
    questions: tuple[str, ...]
    deadline_ms: float


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions of the model since the start; `overruns` took longer than their simulated time (0 on real devices)."""

    count: float
    overruns: float


class Patient(Protocol):
    """A stack of the drill's own, brought up broken or healthy as the scenario says."""

    def up(self, scenario: Scenario, observer: Observer) -> Place:
        """Bring it up and wait until it answers."""
        ...

    def strike(self, injection: Injection) -> None:
        """Do to the running stack what the scenario says; `down` ends it."""
        ...

    def firing(self) -> tuple[str, ...]:
        """Names of the alerts that Prometheus itself says fire now; pending ones do not count."""
        ...

    def executions(self) -> Executions:
        """How many executions there were, and how many took longer than the time they simulate."""
        ...

    def down(self) -> None:
        """End every part of it; safe to call at any time and more than once."""
        ...


@dataclass(frozen=True, slots=True)
class Treated:
    """What became of a change: the run's name, its journal, when it came into effect, the judgement, and the canary
    that tried it, None where there was none."""

    run_id: str
    journal: str
    in_effect_s: float
    verification: Verification
    trial: CanaryTrial | None = None


class Doctor(Protocol):
    """The program as its user meets it, pointed at the patient's configuration file and nothing else."""

    def diagnose(self) -> Diagnosis:
        """As `latencydoctor diagnose`."""
        ...

    def plan(self, fix: str) -> Plan | NothingToDo:
        """As `latencydoctor plan FIX`."""
        ...

    def apply(self, plan: Plan, observer: Observer) -> Treated:
        """As `latencydoctor apply PLAN --yes`."""
        ...

    def roll_back(self, run_id: str, observer: Observer) -> str:
        """As `latencydoctor rollback RUN --force --yes`; returns the digest that was restored."""
        ...


class Load(Protocol):
    """A load run as the use cases steer it; whoever starts one stops it, in `finally`."""

    def phases_started(self) -> tuple[PhaseStart, ...]:
        """The phases that have begun, in order, with the moment each did."""
        ...

    def switch(self, phase: str) -> None:
        """Begin a phase of the plan now; `UsageError` when it has none of that name."""
        ...

    def settled(self, end_s: float) -> bool:
        """Whether all requests intended up to `end_s` are answered or past their deadline.

        Raises `KnownError` when the generator broke down, since then they never will be.
        """
        ...

    def window(self, start_s: float, end_s: float) -> WindowStats:
        """What came of the requests intended in that window, so far; raises as `settled` does."""
        ...

    def stop(self, *, drain: bool = True) -> None:
        """End the run and return when its process is gone; with `drain` its open requests are awaited first."""
        ...


class LoadRunner(Protocol):
    """A generator of open-loop load."""

    def start(self, plan: LoadPlan) -> Load:
        """Offer the load; returns once the first phase has begun. `UsageError` for a plan that cannot be offered."""
        ...
