"""Use case: make a plan. Reads the target, asks what the change would compile to, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from latencydoctor.app.ports import Clock, Target
from latencydoctor.errors import KnownError
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.queue import Batching
from latencydoctor.forecast.whatif import predict
from latencydoctor.model.configuration import Slo
from latencydoctor.model.diagnosis import Diagnosis, Finding
from latencydoctor.model.evidence import Evidence
from latencydoctor.model.remedy import NothingToDo, Plan, Prediction, TargetState
from latencydoctor.remedy import batch_floor, catalog
from latencydoctor.remedy.batch_floor import BatchFloor
from latencydoctor.remedy.plan import Grounds, Texts, build


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan rests on: the diagnosis, the evidence behind it, and the SLO. All but the SLO may be absent.

    `times` are the server's executions by batch size, which a prediction prefers to rates.
    """

    diagnosis: Diagnosis | None = None
    evidence: Evidence | None = None
    slo: Slo = field(default_factory=Slo)
    times: tuple[BatchTime, ...] = ()


NO_BASIS = Basis()


def make_plan(
    fix_id: str, target: Target, clock: Clock, basis: Basis = NO_BASIS, wanted: BatchFloor = batch_floor.DEFAULT
) -> Plan | NothingToDo:
    """A plan for this fix on this target, or why there is nothing to do.

    Raises UsageError for an unknown fix, KnownError when the target cannot be read or does not run what its settings
    say, ContentError when it refuses the new settings, Refused when the settings file holds what looks like a secret.
    """
    fix = catalog.find(fix_id)
    state = target.read()
    refuse_unsettled(state)
    measured = measured_values(basis)
    arrival_rps = _arrival_rps(measured)
    change = fix.propose(state, wanted, arrival_rps)
    if isinstance(change, NothingToDo):
        return change
    after = target.edited(state.settings_text, change.values)
    texts = Texts(after, target.preview(after))
    grounds = Grounds(
        justification=tuple(_justification(basis.diagnosis, fix_id)),
        measured=measured,
        predictions=_predictions(state, change.values, measured, basis.times),
        slo=basis.slo,
        simulated=_simulated(basis, state),
    )
    return build(fix, change, state, texts, grounds, clock.now_s())


def refuse_unsettled(state: TargetState) -> None:
    """KnownError while the server runs something else than its settings say: there is no 'before' to go back to."""
    if state.not_in_effect:
        raise KnownError(
            f"the settings of {state.target} are not in effect: {'; '.join(state.not_in_effect)}",
            hint="Wait for the reload to end, or see `latencydoctor stack status` for why it does not.",
        )


def measured_values(basis: Basis) -> dict[str, float]:
    """Signals by name as they were in the incident's window; from the evidence, else from what the diagnosis shows."""
    if basis.evidence is not None:
        pairs = [(item.signal, item.value) for item in basis.evidence.measures]
    elif basis.diagnosis is not None:
        pairs = [(item.signal, item.value) for item in _findings(basis.diagnosis) if item.value is not None]
    else:
        pairs = []
    return {name: value for name, value in pairs if math.isfinite(value)}


def _findings(diagnosis: Diagnosis) -> Iterator[Finding]:
    for step in (*diagnosis.path, *diagnosis.ruled_out):
        yield from step.findings
    if diagnosis.cause is not None:
        yield from (*diagnosis.cause.evidence, *diagnosis.cause.symptoms)


def _arrival_rps(measured: Mapping[str, float]) -> float | None:
    """Requests that reach the server: what the cache answers never gets there."""
    rate = measured.get("request_rate_rps")
    return None if rate is None or rate <= 0 else rate * (1 - measured.get("cache_hit_ratio", 0.0))


def _justification(diagnosis: Diagnosis | None, fix_id: str) -> Iterator[str]:
    if diagnosis is None:
        yield "No diagnosis was given; the fix was asked for by name."
        return
    yield f"{diagnosis.incident.state.value}: {diagnosis.incident.reason}"
    if diagnosis.cause is None:
        yield f"No cause was found; the fix was asked for by name. {diagnosis.inconclusive}".rstrip()
        return
    yield f"cause {diagnosis.cause.id} ({diagnosis.cause.confidence.value} confidence): {diagnosis.cause.title}"
    if diagnosis.cause.fix != fix_id:
        yield f"Beware: for this cause the playbook names {diagnosis.cause.fix or 'no fix'}, not {fix_id}."
    for item in diagnosis.cause.evidence:
        value = "not known" if item.value is None else f"{item.value:.4g} {item.unit}".rstrip()
        source = f" [{item.proof.source}: {item.proof.query}]" if item.proof else ""
        yield f"{item.signal} is {value} ({item.comparison}){source}"


def _predictions(
    state: TargetState,
    values: tuple[tuple[str, str], ...],
    measured: Mapping[str, float],
    times: tuple[BatchTime, ...],
) -> tuple[Prediction, ...]:
    instances = max(1, round(measured.get("config_instance_count", 1.0)))
    now = {key: state.in_use(key) or "" for key in (batch_floor.ENABLED, *_NUMBERS)}
    return predict(measured, _arrival_rps(measured), _batching(now), _batching(now | dict(values)), times, instances)


_NUMBERS = (batch_floor.PREFERRED, batch_floor.MAXIMUM, batch_floor.WAIT)


def _batching(values: Mapping[str, str]) -> Batching:
    preferred, maximum, wait = (int(values[key]) if values[key].isdecimal() else 0 for key in _NUMBERS)
    return Batching(values[batch_floor.ENABLED] == "true", preferred, max(1, maximum), wait / 1000)


def _simulated(basis: Basis, state: TargetState) -> bool:
    told = basis.diagnosis.simulated if basis.diagnosis is not None else False
    seen = basis.evidence.simulated if basis.evidence is not None else False
    return told or seen or (state.setting("accelerator") or "").startswith("sim:")
