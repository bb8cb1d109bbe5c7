"""What batches may take that are larger than any that was seen: a line goes on there, but nothing says that it must.

Two edges hold what is not known, and they part with the distance from the largest batch that was seen:

- At best a larger batch takes no longer: the device has room, or fills its steps of eight.
- At worst throughput grows no more, and a batch takes its share of the largest one's time. Time on a device is the
  larger of what it fetches and what it computes (Williams, Waterman and Patterson, "Roofline", Communications of the
  ACM 52(4), 2009): a constant and a line through zero. So a batch that was seen to be flat may be about to climb, but
  no steeper than through zero; where nothing climbed at all, in steps as wide as all that was seen. Where what was
  seen already bends upwards, because memory or a cache ends, it may go on to bend: a line through two points of a
  curve misses it by f''/2 (n - a) (n - b) at n (Davis, "Interpolation and Approximation", 1963, theorem 3.1.1, which
  holds outside of a and b as well).

How badly the line itself is known is not in here: `ServiceCurve` has the errors of its level and its slope.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

EDGE_DEVIATIONS = 2.0
"""The edges are taken to lie so many standard deviations out: 95 % of devices lie between them."""

DRIFT_RATIO = 0.01
"""What a mean may be off however many executions it is of: times drift."""

SCATTER_RATIO = 0.1
"""Standard deviation of one execution's time, as a share of it."""

FLAT_RATIO = 0.1
"""Below this share of a time, what it grows by from the smallest batch to the largest may be chance."""

Point = tuple[float, float, float]
"""A batch size, the mean time of its executions (ms), and how many these count for, above 0."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """Where a curve's knowledge ends: batches from `smallest` to `largest` were seen.

    `curvature_ms` is the most that f''/2 is likely to be, ms for each request squared; 0 where nothing bends upwards.
    `flat` says that hardly any of the time grew with the batch. `counted` is False where executions were not counted by
    size, so that `largest` is only what hardly one exceeds.
    """

    smallest: float
    largest: float
    curvature_ms: float = 0.0
    flat: bool = False
    counted: bool = True

    @property
    def words(self) -> str:
        """What is not known, to append to what the curve rests on."""
        return f"; batches above {self.largest:.3g} were {'never' if self.counted else 'hardly'} seen"

    def edges_ms(self, size: float, line_ms: float, largest_ms: float) -> tuple[float, float]:
        """What this size takes at best and at worst, ms, where the line says `line_ms`, and `largest_ms` for the
        largest size that was seen. Up to that size both are the line."""
        if size <= self.largest:
            return line_ms, line_ms
        batches = size / self.largest
        share_ms = largest_ms * (math.ceil(batches) if self.flat else batches)
        bent_ms = line_ms + self.curvature_ms * (size - self.smallest) * (size - self.largest)
        return min(line_ms, largest_ms), max(line_ms, share_ms, bent_ms)

    def likely_ms(self, size: float, line_ms: float, largest_ms: float, deviations: float) -> float:
        """A time that is so many standard deviations from the line, on the way to one of the edges or past it."""
        if size <= self.largest or deviations == 0 or largest_ms <= 0:
            return line_ms
        best_ms, worst_ms = self.edges_ms(size, line_ms, largest_ms)
        edge_ms = worst_ms if deviations > 0 else best_ms
        return max(best_ms, line_ms * math.pow(edge_ms / line_ms, abs(deviations) / EDGE_DEVIATIONS))


def curvature_ms(points: Sequence[Point]) -> float:
    """The most that f''/2 is likely to be, ms for each request squared; 0 where points bend downwards or are too few.

    The weighted least-squares parabola by orthogonal polynomials, and one standard error (Draper and Smith, "Applied
    Regression Analysis", 3rd ed. 1998, chapter 22). Points that scatter more than they are taken to widen the error by
    Birge's ratio (Physical Review 40, 207, 1932).
    """
    weights = [1 / (took_ms**2 * (DRIFT_RATIO**2 + SCATTER_RATIO**2 / count)) for _, took_ms, count in points]
    if len({size for size, _, _ in points}) < 3:
        return 0.0
    sizes, took = [size for size, _, _ in points], [took_ms for _, took_ms, _ in points]

    def mean(values: Sequence[float]) -> float:
        return math.fsum(map(operator.mul, weights, values)) / math.fsum(weights)

    centre, level_ms = mean(sizes), mean(took)
    away = [size - centre for size in sizes]
    second, third = mean([one**2 for one in away]), mean([one**3 for one in away])
    basis = [one**2 - third / second * one - second for one in away]
    norm = mean([value**2 for value in basis])
    slope_ms = mean(list(map(operator.mul, away, took))) / second
    bend_ms = mean(list(map(operator.mul, basis, took))) / norm
    left_ms = [
        took_ms - level_ms - slope_ms * one - bend_ms * value
        for took_ms, one, value in zip(took, away, basis, strict=True)
    ]
    chi_squared = math.fsum(weight * one**2 for weight, one in zip(weights, left_ms, strict=True))
    birge = math.sqrt(max(1.0, chi_squared / max(1, len(points) - 3)))
    return max(0.0, bend_ms + birge / math.sqrt(norm * math.fsum(weights)))
