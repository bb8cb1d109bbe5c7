"""Every cause rule against the evidence: confirmed, standing all along, only possible, ruled out, or not evaluable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from latencydoctor.diagnosis.conditions import MEASURED, judge
from latencydoctor.model.cause import CauseKind, CauseRule
from latencydoctor.model.diagnosis import Answer, Finding
from latencydoctor.model.evidence import Evidence, Gap, Measure

INSIDE = "."
"""Between a rule's id and the name of its threshold, where a deployment overrides one."""


class Standing(StrEnum):
    """How a rule stands after it was looked at.

    CHRONIC: it holds, and held before the onset just as well, so it does not explain the onset. POSSIBLE: it holds, but
    what would refute it could not be read. NOT_EVALUABLE: what would confirm it could not be read, never "healthy".
    """

    CONFIRMED = "confirmed"
    POSSIBLE = "possible"
    CHRONIC = "chronic"
    NOT_EVALUABLE = "not evaluable"
    RULED_OUT = "ruled out"


@dataclass(frozen=True, slots=True)
class Examined:
    """A rule, how it stands, and every comparison that was made: for it (`findings`) and against it (`against`)."""

    rule: CauseRule
    standing: Standing
    findings: tuple[Finding, ...]
    against: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether it may be what is wrong now."""
        return self.standing in (Standing.CONFIRMED, Standing.POSSIBLE)

    @property
    def agreeing(self) -> tuple[Finding, ...]:
        """The comparisons that say yes, one a signal: of several the last, since guards stand first in a rule.

        That a signal is measured at all says what kind of server it is, and speaks for nothing.
        """
        said_yes = (one for one in self.findings if one.answer is Answer.YES)
        return tuple({one.signal: one for one in said_yes if one.comparison != MEASURED.value}.values())

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What kept it from an answer, one a signal."""
        asked = self.findings if self.standing is Standing.NOT_EVALUABLE else self.against
        unknown = (one.gap for one in asked if one.answer is Answer.UNKNOWN and one.gap is not None)
        return tuple({gap.signal: gap for gap in unknown}.values())


def examine(
    rules: Sequence[CauseRule], evidence: Evidence, overrides: tuple[tuple[str, float], ...] = ()
) -> tuple[Examined, ...]:
    """Look at every rule; `overrides` are (`<rule id>.<threshold>`, value)."""
    changed = dict(overrides)
    before = _before(evidence)
    return tuple(_examine(rule, evidence, before, changed) for rule in rules)


def _examine(rule: CauseRule, evidence: Evidence, before: Evidence | None, overrides: Mapping[str, float]) -> Examined:
    thresholds = thresholds_of(rule, overrides)
    confirmed = judge(rule.confirm, evidence, thresholds)
    refuted = judge(rule.refute, evidence, thresholds) if rule.refute is not None else None
    against = refuted.findings if refuted else ()
    standing = _standing(confirmed.answer, refuted.answer if refuted else Answer.NO)
    held_before = before is not None and judge(rule.confirm, before, thresholds).answer is Answer.YES
    lasts = rule.kind is CauseKind.CAUSE and not rule.is_event
    if held_before and lasts and standing in (Standing.CONFIRMED, Standing.POSSIBLE):
        standing = Standing.CHRONIC
    return Examined(rule, standing, confirmed.findings, against)


def thresholds_of(rule: CauseRule, overrides: Mapping[str, float]) -> dict[str, float]:
    """A rule's thresholds by name, a deployment's own in the place of the rule's."""
    return {name: overrides.get(f"{rule.id}{INSIDE}{name}", value) for name, value in rule.thresholds}


def _standing(confirmed: Answer, refuted: Answer) -> Standing:
    if confirmed is Answer.NO or refuted is Answer.YES:
        return Standing.RULED_OUT
    if confirmed is Answer.UNKNOWN:
        return Standing.NOT_EVALUABLE
    return Standing.CONFIRMED if refuted is Answer.NO else Standing.POSSIBLE


def _before(evidence: Evidence) -> Evidence | None:
    """The evidence as it was before the onset: baselines in the place of values; None without a baseline.

    A fact has no history, so a setting is taken to have been what it is. Log events of the baseline are not kept, so
    a condition on them was not true before.
    """
    if evidence.baseline_window is None:
        return None
    measures = (_was(measure) for measure in evidence.measures)
    return replace(evidence, measures=tuple(one for one in measures if one is not None), log_events=())


def _was(measure: Measure) -> Measure | None:
    if measure.baseline is not None:
        return replace(measure, value=measure.baseline)
    return measure if measure.constant else None


def by_id(examined: Iterable[Examined]) -> dict[str, Examined]:
    """The same, to look one up."""
    return {one.rule.id: one for one in examined}
