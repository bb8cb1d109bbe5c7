"""Puts a drill on its stage: the patient, the load, and the doctor as its user would run it."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.app import drill, scenarios, treat
from latencydoctor.app.drill_ports import Treated
from latencydoctor.app.ports import Observer
from latencydoctor.cli import output, wiring
from latencydoctor.cli.patient import BundledPatient
from latencydoctor.errors import KnownError
from latencydoctor.load.runner import LocustRunner
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.drill import Drilled
from latencydoctor.model.incident import IncidentRecord
from latencydoctor.model.remedy import NothingToDo, Plan, RunState
from latencydoctor.report import machine, markdown


@dataclass(frozen=True, slots=True)
class DrillRequest:
    """What the command line says about one drill; `bundle` is where to store what its diagnosis read."""

    fault: str
    state: Path | None
    prove_rollback: bool
    quick: bool
    bundle: Path | None


def flash_crowd(request: DrillRequest, observer: Observer) -> Drilled:
    """Run one variant. Without a state folder everything lies in a temporary one that is removed at the end."""
    scenario = scenarios.find(request.fault)
    if request.quick:
        scenario = scenario.quick()
    with ExitStack() as stack:
        folder = request.state or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ld-drill-")))
        patient = BundledPatient(folder)
        edges = drill.Edges(
            patient=patient,
            doctor=_Doctor(patient.configuration, request.bundle),
            loads=LocustRunner(folder / "load"),
            clock=wiring.SystemClock(),
            observer=observer,
        )
        return drill.run(scenario, edges, prove_rollback=request.prove_rollback)


def write_report(record: IncidentRecord, path: Path) -> None:
    """The incident report: JSON for a name that ends in .json, else Markdown."""
    text = machine.dump(record) if path.suffix == ".json" else markdown.incident(record)
    output.document(text, path, "report")


class _Doctor:
    """Implements `app.drill_ports.Doctor` by the code behind the commands, from the configuration file alone."""

    def __init__(self, configuration: Path, bundle: Path | None) -> None:
        self._request = wiring.DiagnoseRequest(config=configuration)
        self._bundle = bundle
        self._found: wiring.Diagnosed | None = None
        self._planned = False

    def diagnose(self) -> Diagnosis:
        self._found = wiring.diagnose(self._request)
        if self._bundle is not None:
            wiring.save_bundle(self._bundle, self._found.collected)
        return self._found.diagnosis

    def plan(self, fix: str) -> Plan | NothingToDo:
        treatment = wiring.treatment(self._request, None, wiring.silent, measures=False)
        # The plan rests on the diagnosis just made, as `plan --bundle` would; a second one would cost a second look.
        basis = wiring.basis_from(self._found) if self._found else treatment.basis()
        # A second plan comes after a rollback of the first, which its diagnosis takes for the change that did it.
        asked = treat.Asked(cache=treatment.tools.cache, force=self._planned, builds=treatment.tools.builds)
        self._planned = True
        return treat.make_plan(fix, treatment.target, wiring.SystemClock(), basis, asked)

    def apply(self, plan: Plan, observer: Observer) -> Treated:
        outcome = treat.apply(plan, wiring.treatment(self._request, None, observer).tools)
        if outcome.state is RunState.ROLLBACK_FAILED:
            outcome.raise_error()
        if outcome.verification is None or outcome.in_effect_s is None:
            outcome.raise_error()
            raise KnownError(f"the change was not verified: {outcome.reason}", hint=f"See {outcome.journal}.")
        return Treated(outcome.run_id, outcome.journal, outcome.in_effect_s, outcome.verification, outcome.trial)

    def roll_back(self, run_id: str, observer: Observer) -> str:
        outcome = treat.rollback(wiring.treatment(self._request, None, observer).tools, run_id, force=True)
        if isinstance(outcome, NothingToDo):
            raise KnownError(f"there was nothing to roll back: {outcome.reason}")
        if outcome.error is not None and not outcome.digest:
            outcome.raise_error()
        return outcome.digest
