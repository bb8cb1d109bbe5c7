"""Small cause rules for tests."""

from __future__ import annotations

from latencydoctor.model.cause import CauseKind, CauseRule, Scaling
from latencydoctor.model.playbook import Basis, Comparison, Condition, Leaf


def above(signal: str, threshold: str = "limit", basis: Basis = Basis.VALUE) -> Leaf:
    """`signal` is above the threshold of that name."""
    return Leaf(signal, Comparison.ABOVE, basis, threshold, None)


def rule(
    rule_id: str,
    order: int,
    confirm: Condition,
    *,
    refute: Condition | None = None,
    explains: tuple[str, ...] = (),
    kind: CauseKind = CauseKind.CAUSE,
    symptoms: tuple[str, ...] = (),
    fix: str = "",
) -> CauseRule:
    """A rule with one threshold, `limit` = 10."""
    return CauseRule(
        id=rule_id,
        signature="",
        title=f"title of {rule_id}",
        kind=kind,
        order=order,
        thresholds=(("limit", 10.0),),
        confirm=confirm,
        refute=refute,
        scaling=Scaling.WRONG,
        meaning="meaning",
        advice="advice",
        not_this="not this",
        fix=fix,
        symptoms=symptoms,
        explains=explains,
        references=(),
    )
