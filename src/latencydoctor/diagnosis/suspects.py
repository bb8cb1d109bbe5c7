"""Which of the causes that hold is the one to name: artefacts are folded under what explains them, upstream first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from latencydoctor.diagnosis.examine import Examined, Standing, by_id
from latencydoctor.model.cause import CauseKind
from latencydoctor.model.diagnosis import Answer, Finding, NotEvaluable, Suspect
from latencydoctor.model.evidence import Gap


@dataclass(frozen=True, slots=True)
class Ranked:
    """The suspects in order: roots that explain what else holds, artefacts by the root they are folded under."""

    roots: tuple[Examined, ...]
    folded: Mapping[str, tuple[Examined, ...]]
    lesser: tuple[Examined, ...]
    """What holds but did not begin with the incident, or only makes it worse."""


CONFIG = "config"
"""A setting is what it was before: by itself it does not speak for a cause."""

NOTHING = Ranked((), {}, ())
"""Where nothing was examined."""


def rank(examined: Sequence[Examined]) -> Ranked:
    """Order what holds. Of two causes that do not explain each other the confirmed one, then the upstream one leads."""
    holding = [one for one in examined if one.holds and one.rule.kind is CauseKind.CAUSE]
    explained = {one.rule.id: explained_by(one.rule.id, examined) for one in holding}
    roots = [one for one in holding if not any(_folds(other, one, explained) for other in holding)]
    roots.sort(key=lambda one: (one.standing is Standing.POSSIBLE, one.rule.order, -len(families(one)), one.rule.id))
    folded = {
        root.rule.id: tuple(one for one in holding if one not in roots and one.rule.id in explained[root.rule.id])
        for root in roots
    }
    lesser = [
        one
        for one in examined
        if one.standing is Standing.CHRONIC or (one.holds and one.rule.kind is CauseKind.CONTRIBUTOR)
    ]
    return Ranked(tuple(roots), folded, tuple(lesser))


def _folds(upstream: Examined, downstream: Examined, explained: Mapping[str, frozenset[str]]) -> bool:
    """Whether one is an artefact of the other; what is only possible does not take a confirmed cause's place."""
    if downstream.rule.id not in explained[upstream.rule.id]:
        return False
    return upstream.standing is Standing.CONFIRMED or downstream.standing is Standing.POSSIBLE


def explained_by(rule_id: str, examined: Sequence[Examined], *, through_all: bool = True) -> frozenset[str]:
    """Everything downstream of a cause, directly or through others; else only through what may hold."""
    rules = by_id(examined)
    found: set[str] = set()
    ahead = [rule_id]
    while ahead:
        one = rules.get(ahead.pop())
        for name in one.rule.explains if one is not None else ():
            if name not in found and name in rules:
                found.add(name)
                if through_all or rules[name].standing is not Standing.RULED_OUT:
                    ahead.append(name)
    return frozenset(found)


def families(one: Examined) -> tuple[str, ...]:
    """The independent observers that agree, sorted; findings of one family are one witness."""
    return tuple(sorted({finding.family or finding.signal for finding in one.agreeing}))


def upstream_unknown(one: Examined, examined: Sequence[Examined]) -> tuple[Examined, ...]:
    """Causes that would explain this one away and could not be looked at."""
    return tuple(
        other
        for other in examined
        if other.standing is Standing.NOT_EVALUABLE
        and other.rule.kind is CauseKind.CAUSE
        and one.rule.id in explained_by(other.rule.id, examined, through_all=False)
    )


def deciding_gap(top: Examined | None, examined: Sequence[Examined]) -> Gap | None:
    """The one missing signal that would decide most.

    With a cause: what would refute it, or confirm what would explain it away. Without: what most of the causes wait
    for of which something speaks already. A rule that waits for a single signal counts before those that wait for
    several, since that signal decides it.
    """
    if top is None:
        unseen = [
            one for one in examined if one.standing is Standing.NOT_EVALUABLE and one.rule.kind is CauseKind.CAUSE
        ]
        waiting = [one for one in unseen if set(families(one)) - {CONFIG}] or unseen
    else:
        waiting = [*([top] if top.gaps else []), *upstream_unknown(top, examined)]
    gaps = {gap.signal: gap for one in reversed(waiting) for gap in one.gaps}
    if not gaps:
        return None
    alone = Counter(one.gaps[0].signal for one in waiting if len(one.gaps) == 1)
    shared = Counter(gap.signal for one in waiting for gap in one.gaps)
    return gaps[max(gaps, key=lambda signal: (alone[signal], shared[signal], signal))]


def as_suspect(one: Examined) -> Suspect:
    """A cause that holds, with the comparisons that say so."""
    return Suspect(one.rule.id, one.rule.title, one.standing.value, one.agreeing)


def as_ruled_out(one: Examined) -> Suspect:
    """A cause that does not hold, with the comparisons that refute it."""
    return Suspect(one.rule.id, one.rule.title, one.standing.value, _refuting(one))


def _refuting(one: Examined) -> tuple[Finding, ...]:
    """The first no of what must hold, else the comparisons that refute it."""
    said_no = tuple(finding for finding in one.findings if finding.answer is Answer.NO)
    return said_no[:1] if said_no else tuple(finding for finding in one.against if finding.answer is Answer.YES)[:1]


def as_not_evaluable(one: Examined) -> NotEvaluable:
    """A cause that could not be looked at, with what it needs."""
    return NotEvaluable(one.rule.id, one.rule.title, one.gaps)
