"""What began when: log events, signals that moved and the incident itself on one clock, in the order of onset."""

from __future__ import annotations

from latencydoctor.model.diagnosis import Moment, MomentKind
from latencydoctor.model.evidence import Evidence, IncidentState, LogEvent, Measure

_ACCELERATOR = "accelerator"
"""The family of signals whose move is a change of the accelerator's state."""

_ORDER = {kind: index for index, kind in enumerate(MomentKind)}


def timeline(evidence: Evidence) -> tuple[Moment, ...]:
    """Every dated log event and moved signal, and the incident's onset; earliest first, logs before what they cause.

    Empty where nothing but the incident itself is dated: a list of one is no order.
    """
    moments = [_told(event) for event in evidence.log_events if event.first_s is not None]
    moments += [_moved(signal, at_s, evidence) for signal, at_s in evidence.first_movers]
    if not moments:
        return ()
    incident = evidence.incident
    if incident.state is IncidentState.INCIDENT and incident.since_s is not None:
        measure = evidence.find(incident.signal or "")
        proof, unit = (measure.proof.query, measure.unit) if isinstance(measure, Measure) else ("", "")
        kind = MomentKind.INCIDENT
        moments.append(
            Moment(incident.since_s, kind, incident.signal or "", "", incident.value, incident.limit, proof, unit)
        )
    # Signals that moved in one window keep their order: the one that moved furthest first.
    return tuple(sorted(moments, key=lambda one: (one.at_s, _ORDER[one.kind])))


def _told(event: LogEvent) -> Moment:
    assert event.first_s is not None, "only dated events have a place on the clock"
    return Moment(
        at_s=event.first_s,
        kind=MomentKind.LOG,
        what=event.rule,
        detail=event.line,
        value=float(event.count),
        baseline=None,
        proof=event.place,
        severity=event.severity,
    )


def _moved(signal: str, at_s: float, evidence: Evidence) -> Moment:
    measure = evidence.find(signal)
    if not isinstance(measure, Measure):
        return Moment(at_s, MomentKind.METRIC, signal, "", None, None, "")
    return Moment(
        at_s=at_s,
        kind=MomentKind.ACCELERATOR if measure.family == _ACCELERATOR else MomentKind.METRIC,
        what=signal,
        detail="",
        value=measure.value,
        baseline=measure.baseline,
        proof=measure.proof.query,
        unit=measure.unit,
    )
