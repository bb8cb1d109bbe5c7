"""An incident told from beginning to end: the record that reports are written from."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.model.canary import CanaryTrial
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.remedy import Plan, Verification


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Something that happened, when (seconds since the epoch), and what shows it (a query, a journal, a log line)."""

    at_s: float
    what: str
    proof: str


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """A declared window of offered load and how it was answered, timed from the intended send.

    Time-outs and 5xx count as failed and at the deadline. None where nothing was measured. What is told by priority is
    there where VIP requests were sent: `shed_ratio` is the share of the standard ones that was turned away and told
    when to come back, and the p99s are those of the others.
    """

    label: str
    start_s: float
    length_s: float
    offered_rps: float
    answered_rps: float
    p50_ms: float | None
    p99_ms: float | None
    failed: int
    hit_ratio: float | None
    vip_p99_ms: float | None = None
    standard_p99_ms: float | None = None
    shed_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class IncidentRecord:
    """Everything a report needs. `plan` and `verification` are None when nothing was changed, `trial` where no canary
    tried the change.

    `accelerator` is what served (`sim:small`, `cpu`, ...); one that starts with `sim:` is simulated and every
    figure measured on it is said to be.
    """

    title: str
    accelerator: str
    diagnosis: Diagnosis
    plan: Plan | None
    verification: Verification | None
    timeline: tuple[TimelineEntry, ...]
    windows: tuple[LoadWindow, ...]
    trial: CanaryTrial | None = None

    @property
    def simulated(self) -> bool:
        """Whether figures come from a simulated accelerator."""
        return self.accelerator.startswith("sim:") or self.diagnosis.simulated
