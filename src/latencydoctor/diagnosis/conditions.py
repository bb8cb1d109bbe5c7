"""Three-valued conditions over evidence.

A comparison on an absent value is unknown, never no. `all`, `any` and `not` follow Kleene's strong logic of three
values: one no settles an `all`, one yes settles an `any`, whatever else is unknown. `first` takes the first part that
has an answer, and only its comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from latencydoctor.diagnosis.findings import found
from latencydoctor.model.diagnosis import Answer, Finding
from latencydoctor.model.evidence import Evidence, Gap, GapReason, Measure, Proof
from latencydoctor.model.playbook import All, AnyOf, Basis, Comparison, Condition, FirstKnown, Leaf, LogLeaf, Not, Where

_OPERATORS: dict[Comparison, Callable[[float, float], bool]] = {
    Comparison.ABOVE: lambda value, bound: value > bound,
    Comparison.BELOW: lambda value, bound: value < bound,
    Comparison.AT_LEAST: lambda value, bound: value >= bound,
    Comparison.AT_MOST: lambda value, bound: value <= bound,
}
MEASURED = Comparison.MEASURED
_OPPOSITE = {Answer.YES: Answer.NO, Answer.NO: Answer.YES, Answer.UNKNOWN: Answer.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition's answer and every comparison that was made for it, in the order they are written."""

    answer: Answer
    findings: tuple[Finding, ...]


def judge(condition: Condition, evidence: Evidence, thresholds: dict[str, float]) -> Judged:
    """Answer a condition. Every part is looked at, also when the first settles it: the reader wants all numbers."""
    match condition:
        case Leaf():
            finding = _compare(condition, evidence, thresholds)
            return Judged(finding.answer, (finding,))
        case LogLeaf():
            finding = _count_log(condition, evidence)
            return Judged(finding.answer, (finding,))
        case Where(signal=signal, part=part):
            return _where(signal, part, evidence, thresholds)
        case Not(part=part):
            inner = judge(part, evidence, thresholds)
            return Judged(_OPPOSITE[inner.answer], inner.findings)
        case All(parts=parts):
            judged = tuple(judge(part, evidence, thresholds) for part in parts)
            return Judged(_every(tuple(one.answer for one in judged)), _merge(judged))
        case FirstKnown(parts=parts):
            judged = tuple(judge(part, evidence, thresholds) for part in parts)
            known = (one for one in judged if one.answer is not Answer.UNKNOWN)
            return next(known, Judged(Answer.UNKNOWN, _merge(judged)))
        case AnyOf(parts=parts):
            judged = tuple(judge(part, evidence, thresholds) for part in parts)
            opposite = _every(tuple(_OPPOSITE[one.answer] for one in judged))
            return Judged(_OPPOSITE[opposite], _merge(judged))


def _where(signal: str, part: Condition, evidence: Evidence, thresholds: dict[str, float]) -> Judged:
    seen = evidence.find(signal)
    if isinstance(seen, Gap):
        return Judged(Answer.UNKNOWN, (_unknown(Leaf(signal, MEASURED, Basis.VALUE, None, None), evidence, seen),))
    inner = judge(part, evidence, thresholds)
    if inner.findings:
        return inner
    # "Never, where this is measured": that it is measured is the whole reason.
    return Judged(inner.answer, (found(seen, inner.answer, MEASURED.value),))


def _every(answers: tuple[Answer, ...]) -> Answer:
    if Answer.NO in answers:
        return Answer.NO
    return Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.YES


def _merge(judged: tuple[Judged, ...]) -> tuple[Finding, ...]:
    return tuple(finding for one in judged for finding in one.findings)


def _compare(leaf: Leaf, evidence: Evidence, thresholds: dict[str, float]) -> Finding:
    seen = evidence.find(leaf.signal)
    if isinstance(seen, Gap):
        return _unknown(leaf, evidence, seen)
    bound = _bound(leaf, evidence, thresholds)
    if isinstance(bound, Gap):
        return _unknown(leaf, evidence, bound, seen)
    value = _basis(leaf.basis, seen)
    if value is None:
        gap = Gap(leaf.signal, GapReason.TOO_FEW_SAMPLES, "no baseline to compare with", "a calm stretch or --baseline")
        return _unknown(leaf, evidence, gap, seen)
    # A ratio is checked as value against baseline times the factor, so that both stand in the signal's own unit.
    shown_value, shown_bound = value, bound
    if leaf.basis is Basis.RATIO_TO_BASELINE and seen.baseline is not None:
        shown_value, shown_bound = seen.value, bound * seen.baseline
    if leaf.basis is Basis.RISE and seen.baseline is not None:
        shown_value, shown_bound = seen.value, bound + seen.baseline
    answer = Answer.YES if _OPERATORS[leaf.comparison](value, bound) else Answer.NO
    return found(seen, answer, leaf.comparison.value, shown_bound, shown_value)


def _bound(leaf: Leaf, evidence: Evidence, thresholds: dict[str, float]) -> float | Gap:
    if leaf.than_signal is None:
        return thresholds[leaf.threshold or ""]
    other = evidence.find(leaf.than_signal)
    if isinstance(other, Gap):
        return other
    return other.value * (thresholds[leaf.times] if leaf.times else 1.0)


def _basis(basis: Basis, measure: Measure) -> float | None:
    match basis:
        case Basis.VALUE:
            return measure.value
        case Basis.BASELINE:
            return measure.baseline
        case Basis.RISE:
            return measure.value - measure.baseline if measure.baseline is not None else None
        case Basis.RATIO_TO_BASELINE:
            # A baseline of zero makes no ratio: "three times nothing" proves nothing.
            return measure.value / measure.baseline if measure.baseline else None


def _unknown(leaf: Leaf, evidence: Evidence, gap: Gap, seen: Measure | None = None) -> Finding:
    return Finding(
        signal=leaf.signal,
        answer=Answer.UNKNOWN,
        comparison=leaf.comparison.value,
        value=seen.value if seen else None,
        threshold=None,
        baseline=seen.baseline if seen else None,
        unit=seen.unit if seen else "",
        window=seen.window if seen else evidence.window,
        proof=seen.proof if seen else None,
        gap=gap,
        simulated=seen.simulated if seen else False,
        family=seen.family if seen else "",
    )


def _count_log(leaf: LogLeaf, evidence: Evidence) -> Finding:
    signal = f"log:{leaf.rule}"
    gap = next((one for one in evidence.gaps if one.signal == "logs"), None)
    events = tuple(event for event in evidence.log_events if event.rule == leaf.rule)
    count = sum(event.count for event in events)
    answer = Answer.YES if count >= leaf.at_least else (Answer.UNKNOWN if gap else Answer.NO)
    return Finding(
        signal=signal,
        answer=answer,
        comparison=Comparison.AT_LEAST.value,
        value=float(count) if events or not gap else None,
        threshold=float(leaf.at_least),
        baseline=None,
        unit="events",
        window=evidence.window,
        proof=Proof("logs", events[0].place) if events else None,
        gap=gap if answer is Answer.UNKNOWN else None,
        family="logs",
    )
