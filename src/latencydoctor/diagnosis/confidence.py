"""How far a named cause may be trusted: earned by witnesses that agree, lost by what could still overturn it."""

from __future__ import annotations

from collections.abc import Sequence

from latencydoctor.diagnosis.examine import Examined, Standing
from latencydoctor.diagnosis.suspects import Ranked, families, upstream_unknown
from latencydoctor.model.diagnosis import Answer, Confidence, TreeAnswer
from latencydoctor.model.evidence import Evidence

ENOUGH_WITNESSES = 2


def confidence_in(
    top: Examined, ranked: Ranked, examined: Sequence[Examined], tree: TreeAnswer, evidence: Evidence
) -> Confidence:
    """High when nothing is held against it, medium for one reservation, low for more, or where no rule confirms it.

    Reservations: a single witness; something that would refute it, or a cause that would explain it away, could not be
    looked at, which counts twice where the cause says where the time goes but not why (measured on the fault matrix:
    with one reservation such answers were wrong one time in six); there is no baseline, so nothing is known of change;
    another cause holds besides; the tree disagrees.
    """
    if top.standing is not Standing.CONFIRMED:
        return Confidence.LOW
    reservations = (
        len(families(top)) < ENOUGH_WITNESSES,
        bool(upstream_unknown(top, examined)),
        top.rule.is_generic and bool(upstream_unknown(top, examined)),
        evidence.baseline_window is None,
        sum(one.standing is Standing.CONFIRMED for one in ranked.roots) > 1,
        tree.agrees is Answer.NO,
    )
    return (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)[min(sum(reservations), 2)]
