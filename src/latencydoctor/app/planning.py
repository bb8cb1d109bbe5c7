"""Use case: make a plan. Reads the target, asks what the change would compile to, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from latencydoctor.app.ports import AnswerCache, Clock, ModelBuilds, Target
from latencydoctor.app.predicting import arrival_rps, need_of, predictions, replicas_of, supply_of
from latencydoctor.app.sizing import arriving
from latencydoctor.errors import KnownError, Refused
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.front import Front, front_of
from latencydoctor.model.configuration import Slo
from latencydoctor.model.diagnosis import Diagnosis, Finding
from latencydoctor.model.evidence import Evidence, IncidentState, Measure
from latencydoctor.model.kept import Onset
from latencydoctor.model.remedy import NothingToDo, Plan, TargetState
from latencydoctor.remedy import batch_floor, catalog, scale_out
from latencydoctor.remedy.batch_floor import BatchFloor
from latencydoctor.remedy.catalog import Circumstances, Fix
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.plan import Grounds, Texts, build, operations_of, restored_text


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan rests on: the diagnosis, the evidence behind it, and the SLO. All but the SLO may be absent.

    `times` are the server's executions by batch size, which a prediction prefers to rates, and `bounds_ms` those of the
    histogram that p99 is read from, empty where it is read from none. `window_s` is the length of the windows that the
    incident was judged by, `earlier_s` when bad stretches began in the range looked at.
    """

    diagnosis: Diagnosis | None = None
    evidence: Evidence | None = None
    slo: Slo = field(default_factory=Slo)
    times: tuple[BatchTime, ...] = ()
    bounds_ms: tuple[float, ...] = ()
    window_s: float = 0.0
    earlier_s: tuple[float, ...] = ()


NO_BASIS = Basis()

MOST = 1e15
"""A petabyte, and more than any other figure here can be: what is larger, below zero or no number was not measured."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks for beside the fix: sizes, the front end that counts what is popular (None where there is
    none), whether to plan also where the diagnosis found another cause, and where rebuilt models lie."""

    wanted: BatchFloor = batch_floor.DEFAULT
    cache: AnswerCache | None = None
    force: bool = False
    builds: ModelBuilds | None = None


PLAINLY = Asked()


def make_plan(
    fix_id: str, target: Target, clock: Clock, basis: Basis = NO_BASIS, asked: Asked = PLAINLY
) -> Plan | NothingToDo:
    """A plan for this fix on this target, or why there is nothing to do.

    Raises UsageError for an unknown fix, KnownError when the target cannot be read, does not run what its settings say
    or cannot set what the fix needs, ContentError when it refuses the new settings, Refused when the settings hold
    what looks like a secret or the diagnosis found a cause that this fix is not for.
    """
    fix = catalog.find(fix_id)
    if not asked.force:
        _refuse_elsewhere(fix, basis.diagnosis)
    state = target.read()
    refuse_unsettled(state)
    measured = measured_values(basis)
    popularity = asked.cache.popularity() if fix.warms and asked.cache is not None else None
    # Whatever is changed, the servers then get what arrives, not what they have answered.
    load, told = arriving(measured, _measure(basis, "queue_depth"))
    need = scale_out.UNKNOWN
    if fix.scales:
        need = need_of(state, load, basis.times, basis.slo.p99_ms, _front(basis, load))
    supply = supply_of(state, measured, basis.times)
    rebuilt = asked.builds.find() if fix.rebuilds and asked.builds is not None else None
    now = Circumstances(
        basis.slo,
        load if fix.scales else measured,
        _arrival_at_one(state, measured),
        asked.wanted,
        popularity,
        _onset(basis),
        need,
        asked.force,
        supply,
        rebuilt,
    )
    change = fix.propose(state, now)
    if isinstance(change, NothingToDo):
        return change
    change = _within_reach(change, state, fix_id)
    after = restored_text(operations_of(state, change), state) or target.edited(state.settings_text, change.values)
    texts = Texts(after, target.preview(after))
    grounds = Grounds(
        justification=(*_justification(basis.diagnosis, fix_id), *filter(None, (told,)), *change.grounds),
        measured=measured,
        predictions=predictions(state, change, load, basis.times, baseline_values(basis), _front(basis, load)),
        slo=basis.slo,
        simulated=_simulated(basis, state),
    )
    return build(fix, change, state, texts, grounds, clock.now_s())


def refuse_unsettled(state: TargetState) -> None:
    """KnownError while the server runs something else than its settings say: there is no 'before' to go back to."""
    if state.not_in_effect:
        raise KnownError(
            f"the settings of {state.target} are not in effect: {'; '.join(state.not_in_effect)}",
            hint="Wait for the reload to end, or see why it does not: server's log, `latencydoctor stack status`.",
        )


def _within_reach(change: Change, state: TargetState, fix_id: str) -> Change:
    """The change without what the target cannot set, with words on what was left out and on what the rest brings."""
    left_out = [key for key, _ in change.values if not state.can_set(key)]
    costs = tuple(dict.fromkeys(text for key, text in state.costs if key in dict(change.values)))
    change = replace(change, side_effects=(*costs, *change.side_effects))
    if not left_out:
        return change
    values = tuple((key, value) for key, value in change.values if state.can_set(key))
    if not values and not change.operations:
        raise KnownError(
            f"{fix_id} would set {', '.join(left_out)}, which {state.target} cannot",
            hint=" ".join(state.limits) or "Set it by the means that the server has.",
        )
    note = f"Left out, since this target cannot set it: {', '.join(left_out)}."
    return replace(change, values=values, side_effects=(" ".join((note, *state.limits)), *change.side_effects))


def measured_values(basis: Basis) -> dict[str, float]:
    """Signals by name as they were in the incident's window; from the evidence, else from what the diagnosis shows."""
    if basis.evidence is not None:
        pairs = [(item.signal, item.value) for item in basis.evidence.measures]
    elif basis.diagnosis is not None:
        pairs = [(item.signal, item.value) for item in _findings(basis.diagnosis) if item.value is not None]
    else:
        pairs = []
    return {name: value for name, value in pairs if 0 <= value <= MOST}


def _findings(diagnosis: Diagnosis) -> Iterator[Finding]:
    for step in (*diagnosis.path, *diagnosis.ruled_out):
        yield from step.findings
    if diagnosis.cause is not None:
        yield from (*diagnosis.cause.evidence, *diagnosis.cause.symptoms)


def _onset(basis: Basis) -> Onset | None:
    """When the incident began; None where there is none, or nothing is known from before it."""
    found = basis.evidence.incident if basis.evidence is not None else basis.diagnosis and basis.diagnosis.incident
    if not found or found.state is not IncidentState.INCIDENT or found.since_s is None:
        return None
    return Onset(found.since_s, basis.window_s, basis.earlier_s, baseline_values(basis))


def baseline_values(basis: Basis) -> dict[str, float]:
    """Signals by name as they were before the incident; empty where that is not known."""
    measures = basis.evidence.measures if basis.evidence is not None else ()
    return {one.signal: one.baseline for one in measures if one.baseline is not None and 0 <= one.baseline <= MOST}


def _front(basis: Basis, load: Mapping[str, float]) -> Front:
    """What lies before the servers, and between them and whoever verifies."""
    return front_of(load, baseline_values(basis), basis.bounds_ms)


def _arrival_at_one(state: TargetState, measured: Mapping[str, float]) -> float | None:
    """What reaches one of the replicas: batches gather in each by itself."""
    whole_rps = arrival_rps(measured)
    return None if whole_rps is None else whole_rps / replicas_of(state)


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


def _measure(basis: Basis, signal: str) -> Measure | None:
    found = basis.evidence.find(signal) if basis.evidence is not None else None
    return found if isinstance(found, Measure) else None


def _refuse_elsewhere(fix: Fix, diagnosis: Diagnosis | None) -> None:
    """Refused when the diagnosis found a cause that this fix is not for."""
    cause = diagnosis.cause if diagnosis is not None else None
    if cause is None:
        return
    if fix.scales:
        scale_out.refuse_where_wrong(cause)
    if fix.causes and cause.id not in fix.causes:
        raise Refused(
            f"{fix.id} is not for what was found: {cause.title} ({cause.id})",
            hint=f"It helps against {', '.join(fix.causes)}. `latencydoctor plan {fix.id} --force` plans it anyway.",
        )


def _simulated(basis: Basis, state: TargetState) -> bool:
    told = basis.diagnosis.simulated if basis.diagnosis is not None else False
    seen = basis.evidence.simulated if basis.evidence is not None else False
    return told or seen or (state.setting("accelerator") or "").startswith("sim:")
