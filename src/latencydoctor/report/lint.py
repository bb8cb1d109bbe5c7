"""Whether every claim of a diagnosis carries its proof: value, threshold, window, and the query or place it comes from.

A postmortem rests on this, so it is checked rather than hoped for: in the golden incidents, over the whole
fault matrix, and by whoever writes rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from latencydoctor.model.diagnosis import Answer, Diagnosis, Finding
from latencydoctor.model.evidence import IncidentState


def unproven(result: Diagnosis) -> tuple[str, ...]:
    """One line for each claim that lacks something, empty when all is proven."""
    return tuple(_lacking(result))


def _lacking(result: Diagnosis) -> Iterator[str]:
    if result.incident.state is IncidentState.INCIDENT and (result.incident.value is None or not result.incident.limit):
        yield "the incident: no value or no limit"
    if result.cause is not None:
        if not result.cause.evidence and result.cause.confidence.value != "low":
            yield f"cause {result.cause.id}: no evidence at all"
        yield from _findings(f"cause {result.cause.id}", result.cause.evidence, compared=True)
        forecast = result.cause.forecast
        if forecast is not None and forecast.answer is not Answer.UNKNOWN and forecast.limit_ms is None:
            yield f"forecast for {result.cause.id}: no limit to compare with"
        yield from _findings(f"symptoms of {result.cause.id}", result.cause.symptoms, compared=False)
    for group, suspects in (
        ("folded", result.cause.folded if result.cause else ()),
        ("contributing", result.contributing),
        ("ruled out", result.causes_ruled_out),
        ("doubt", result.doubts),
    ):
        for one in suspects:
            if not one.findings:
                yield f"{group} {one.id}: no comparison at all"
            yield from _findings(f"{group} {one.id}", one.findings, compared=True)
    yield from _open(result)


def _open(result: Diagnosis) -> Iterator[str]:
    """What is not settled says what would settle it."""
    for near in result.candidates:
        if not near.against and not near.needs:
            yield f"candidate {near.id}: it does not say what keeps it from holding"
        yield from _findings(f"candidate {near.id}", (*near.speaking, *near.against), compared=True)
    for unseen in result.not_evaluable:
        if not unseen.needs:
            yield f"not evaluable {unseen.id}: it does not say what it needs"


def _findings(claim: str, findings: Iterable[Finding], *, compared: bool) -> Iterator[str]:
    """`compared`: against a threshold; a symptom is told beside its baseline instead."""
    for finding in findings:
        lacks = [
            word
            for word, absent in (
                ("value", finding.value is None),
                ("threshold", compared and finding.threshold is None and finding.comparison != "measured"),
                ("baseline", not compared and finding.baseline is None),
                ("window", finding.window.length_s <= 0),
                ("query", not _has_query(finding)),
            )
            if absent
        ]
        if lacks:
            yield f"{claim}: {finding.signal} has no {', no '.join(lacks)}"


def _has_query(finding: Finding) -> bool:
    """A count of log events that is none has no line to point to: the rule's name says what was looked for."""
    return bool(finding.proof and finding.proof.query) or finding.signal.startswith("log:")
