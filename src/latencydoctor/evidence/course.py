"""What the course of a signal says that its level does not: how unsteady it is, and whether it climbs.

* A spread is how far neighbouring windows differ, as a share of their mean. Neighbours are compared (von Neumann's mean
  square successive difference), so that a steady rise is not unsteadiness.
* A climb is the share of windows that rise above the one before: what leaks climbs all the time, what was added steps
  up once.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from latencydoctor.evidence.incident import Judgement
from latencydoctor.evidence.series import Grid, Points
from latencydoctor.model.evidence import Measure, Proof
from latencydoctor.model.rule import SignalName

LEAST_RISE_RATIO = 0.0005
"""A rise by less is no rise: of an 80 GB device 40 MB, which allocators move by themselves."""


@dataclass(frozen=True, slots=True)
class _Course:
    """A signal made of the windows of another, of which it needs `fewest`; `formula` is how a report tells it.

    `before_counts`: a short incident has too few windows, and what was before it is worth telling alone.
    """

    signal: str
    of: str
    fewest: int
    formula: str
    compute: Callable[[list[float]], float | None]
    before_counts: bool = False


def _spread(values: list[float]) -> float | None:
    mean = statistics.fmean(values)
    squares = [(after - before) ** 2 for before, after in itertools.pairwise(values)]
    return math.sqrt(statistics.fmean(squares) / 2) / mean if mean > 0 else None


def _climb(values: list[float]) -> float | None:
    rises = [after > before * (1 + LEAST_RISE_RATIO) for before, after in itertools.pairwise(values)]
    return sum(rises) / len(rises)


_SPREAD = "root mean square difference of neighbouring windows / mean"
_COURSES = (
    # Two or three values differ too, but it says nothing; of fewer than five pairs no share can be told.
    _Course("compute_time_spread_ratio", "compute_time_ms", 4, _SPREAD, _spread),
    _Course("batch_size_spread_ratio", "batch_size_mean", 4, _SPREAD, _spread),
    _Course(
        "accelerator_memory_climb_ratio",
        "accelerator_memory_used_bytes",
        6,
        "share of windows higher than the one before",
        _climb,
        before_counts=True,
    ),
)

COURSES = {one.signal: one.of for one in _COURSES}
"""Each of these signals and the one it is made of."""


def courses(
    points: Mapping[str, Points], names: Mapping[str, SignalName], grid: Grid, judgement: Judgement
) -> list[Measure]:
    """Those of which the stretch looked at has enough windows; a climb is told from the baseline alone as well."""
    found = (
        _measure(one, points[one.of], names[one.signal], grid, judgement)
        for one in _COURSES
        if one.of in points and one.signal in names
    )
    return [measure for measure in found if measure is not None]


def _measure(course: _Course, held: Points, name: SignalName, grid: Grid, judgement: Judgement) -> Measure | None:
    def computed(span: tuple[int, int] | None) -> float | None:
        values = held.inside(*span) if span else []
        return course.compute(values) if len(values) >= course.fewest else None

    value, before = computed((judgement.first, judgement.last)), computed(judgement.baseline)
    if value is None and course.before_counts:
        value = before
    if value is None:
        return None
    known = judgement.baseline if before is not None else None
    return Measure(
        signal=course.signal,
        unit=name.unit,
        value=value,
        baseline=before,
        worst=value,
        window=grid.window(judgement.first, judgement.last),
        baseline_window=grid.window(*known) if known else None,
        proof=Proof("derived", f"{course.formula} of {held.series.proof.query}"),
        simulated=held.series.simulated,
        family=name.family.value,
    )
