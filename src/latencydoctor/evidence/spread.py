"""How unsteady a signal is inside a stretch: how far neighbouring windows differ, as a share of their mean.

Neighbours are compared (von Neumann's mean square successive difference), so that a steady rise is not unsteadiness.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping

from latencydoctor.evidence.incident import Judgement
from latencydoctor.evidence.series import Grid, Points
from latencydoctor.model.evidence import Measure, Proof
from latencydoctor.model.rule import SignalName

SPREADS = {"compute_time_spread_ratio": "compute_time_ms", "batch_size_spread_ratio": "batch_size_mean"}
"""Each spread and the signal it is of."""

FEWEST_WINDOWS = 4
"""Two or three values differ too, but it says nothing."""


def spreads(
    points: Mapping[str, Points], names: Mapping[str, SignalName], grid: Grid, judgement: Judgement
) -> list[Measure]:
    """The spread of every signal that has enough windows in the stretch looked at."""
    found: list[Measure] = []
    for spread, signal in SPREADS.items():
        held, name = points.get(signal), names.get(spread)
        value = _spread(held.inside(judgement.first, judgement.last)) if held else None
        if held is None or name is None or value is None:
            continue
        before = _spread(held.inside(*judgement.baseline)) if judgement.baseline else None
        known = before is not None and judgement.baseline is not None
        found.append(
            Measure(
                signal=spread,
                unit=name.unit,
                value=value,
                baseline=before,
                worst=value,
                window=grid.window(judgement.first, judgement.last),
                baseline_window=grid.window(*judgement.baseline) if known and judgement.baseline else None,
                proof=Proof(
                    "derived",
                    f"root mean square difference of neighbouring windows / mean of {held.series.proof.query}",
                ),
                simulated=held.series.simulated,
                family=name.family.value,
            )
        )
    return found


def _spread(values: list[float]) -> float | None:
    if len(values) < FEWEST_WINDOWS:
        return None
    mean = statistics.fmean(values)
    squares = [(after - before) ** 2 for before, after in itertools.pairwise(values)]
    return math.sqrt(statistics.fmean(squares) / 2) / mean if mean > 0 else None
