"""How far a named cause may be trusted: earned by witnesses that agree, lost by what could still overturn it."""

from __future__ import annotations

from collections.abc import Sequence

from latencydoctor.diagnosis.examine import Examined, Standing
from latencydoctor.diagnosis.suspects import Ranked, families, upstream_unknown
from latencydoctor.model.diagnosis import Answer, Confidence, Forecasted, TreeAnswer
from latencydoctor.model.evidence import Evidence

ENOUGH_WITNESSES = 2


def confidence_in(
    top: Examined,
    ranked: Ranked,
    examined: Sequence[Examined],
    tree: TreeAnswer,
    evidence: Evidence,
    forecast: Forecasted | None = None,
) -> Confidence:
    """High when nothing is held against it, medium for one reservation, low for more, or where no rule confirms it.

    Reservations: a single witness; something that would refute it, or a cause that would explain it away, could not be
    looked at, which counts twice where the cause says where the time goes but not why (measured on the fault matrix:
    with one reservation such answers were wrong one time in six); there is no baseline, so nothing is known of change;
    another cause holds besides; the tree disagrees; a simulated queue says that undoing it would not be enough. Where
    the queue says that it would be, it is a witness of its own.
    """
    if top.standing is not Standing.CONFIRMED:
        return Confidence.LOW
    reservations = (
        len(families(top)) + _says(forecast, Answer.YES) < ENOUGH_WITNESSES,
        bool(upstream_unknown(top, examined)),
        top.rule.is_generic and bool(upstream_unknown(top, examined)),
        evidence.baseline_window is None,
        sum(one.standing is Standing.CONFIRMED for one in ranked.roots) > 1,
        tree.agrees is Answer.NO,
        _says(forecast, Answer.NO),
    )
    return (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)[min(sum(reservations), 2)]


def _says(forecast: Forecasted | None, answer: Answer) -> bool:
    return forecast is not None and forecast.answer is answer
