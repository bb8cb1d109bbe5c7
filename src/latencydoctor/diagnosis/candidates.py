"""What else it may be where that is not settled: the causes nearest to holding, with what keeps each from it.

A cause that says where the time goes but not why leaves open which of several reasons it is; and where nothing holds,
the reader still wants to know where to look first. A candidate is never named as the cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from latencydoctor.diagnosis.conditions import judge
from latencydoctor.diagnosis.examine import Examined, Standing, thresholds_of
from latencydoctor.diagnosis.suspects import CONFIG, explained_by, families
from latencydoctor.model.cause import CauseKind
from latencydoctor.model.diagnosis import Answer, Candidate, Finding
from latencydoctor.model.evidence import Evidence, Gap
from latencydoctor.model.playbook import All, AnyOf, Condition, FirstKnown, Not, Where

MOST = 3
"""So many are worth a look; a longer list is none."""

LEAST_RATIO = 0.6
"""With less than this share of what would confirm it a cause is not near. Of the fault matrix' runs whose cause was not
named, those whose right cause can be found among the nearest at all lie above it."""

_WORTH = {Answer.YES: 1.0, Answer.NO: 0.0, Answer.UNKNOWN: 0.5}


@dataclass(frozen=True, slots=True)
class _Near:
    one: Examined
    explains_it: bool
    nearness_ratio: float

    @property
    def may_explain_it(self) -> bool:
        """Whether the cause that is named could still be this one's effect."""
        return self.explains_it and self.one.standing is Standing.NOT_EVALUABLE

    @property
    def rank(self) -> tuple[float, bool, int, int]:
        """The nearest first; of equals what would explain the cause named, then the upstream one."""
        return (-self.nearness_ratio, not self.explains_it, -len(families(self.one)), self.one.rule.order)


def candidates(
    examined: Sequence[Examined],
    top: Examined | None,
    evidence: Evidence,
    overrides: tuple[tuple[str, float], ...] = (),
) -> tuple[Candidate, ...]:
    """The nearest causes, at most `MOST`; none beside a cause that nothing unseen could still explain away.

    `top` is the cause that is named, if one is: beside it only what would explain it and could not be looked at counts,
    for what was looked at is ruled out.
    """
    changed = dict(overrides)
    near = [
        _Near(
            one,
            top is not None and top.rule.id in explained_by(one.rule.id, examined),
            nearness_ratio(one.rule.confirm, evidence, thresholds_of(one.rule, changed)),
        )
        for one in examined
        if _is_open(one)
    ]
    kept = [one for one in near if one.nearness_ratio >= LEAST_RATIO and (top is None or one.may_explain_it)]
    kept.sort(key=lambda one: one.rank)
    return tuple(_as_candidate(one.one) for one in kept[:MOST])


def _is_open(one: Examined) -> bool:
    """Whether it is a cause of which something that was measured speaks, and which nothing refutes."""
    if one.rule.kind is not CauseKind.CAUSE or one.standing not in (Standing.NOT_EVALUABLE, Standing.RULED_OUT):
        return False
    refuted = any(finding.answer is Answer.YES for finding in one.against)
    return not refuted and bool(set(families(one)) - {CONFIG})


def nearness_ratio(condition: Condition, evidence: Evidence, thresholds: dict[str, float]) -> float:
    """How much of a condition holds: the mean of an `all`, the best of an `any`; what is unknown counts half."""
    match condition:
        case All(parts=parts) if parts:
            return sum(nearness_ratio(part, evidence, thresholds) for part in parts) / len(parts)
        case AnyOf(parts=parts) if parts:
            return max(nearness_ratio(part, evidence, thresholds) for part in parts)
        case FirstKnown(parts=parts) if parts:
            known = (one for one in parts if judge(one, evidence, thresholds).answer is not Answer.UNKNOWN)
            chosen = next(known, None)
            tried = parts if chosen is None else (chosen,)
            return max(nearness_ratio(part, evidence, thresholds) for part in tried)
        case Where(part=part) if judge(condition, evidence, thresholds).answer is not Answer.UNKNOWN:
            return nearness_ratio(part, evidence, thresholds)
        case Not(part=part):
            return 1.0 - nearness_ratio(part, evidence, thresholds)
        case _:
            return _WORTH[judge(condition, evidence, thresholds).answer]


def _as_candidate(one: Examined) -> Candidate:
    against = tuple({said.signal: said for said in one.findings if said.answer is Answer.NO}.values())
    gaps = {
        said.gap.signal: said.gap for said in one.findings if said.answer is Answer.UNKNOWN and said.gap is not None
    }
    return Candidate(one.rule.id, one.rule.title, one.agreeing, _deciding(one, against), tuple(gaps.values()))


def _deciding(one: Examined, against: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """What keeps a cause that is ruled out from holding; of one that could not be looked at nothing does."""
    return against[:1] if one.standing is Standing.RULED_OUT else ()


def most_asked_for(near: Sequence[Candidate]) -> Gap | None:
    """The missing signal that most candidates wait for, of equals the nearest one's first; None when none waits."""
    gaps = {gap.signal: gap for one in reversed(near) for gap in reversed(one.needs) if not one.against}
    asked = Counter(gap.signal for one in near for gap in one.needs if not one.against)
    first = [gap.signal for one in near for gap in one.needs if not one.against]
    return gaps[max(first, key=lambda signal: asked[signal])] if first else None
