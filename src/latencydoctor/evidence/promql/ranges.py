"""Functions of a range vector: one series over a span becomes one value, as Prometheus 2 computes it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from latencydoctor.evidence.promql.arithmetic import quantile, total, variance
from latencydoctor.evidence.promql.values import Samples

EXTRAPOLATED_STEPS = 1.1
"""A gap at an edge up to so many mean steps is taken as covered: the constant in Prometheus's own extrapolation."""


@dataclass(frozen=True, slots=True)
class Span:
    """The range's two ends, milliseconds since the epoch; samples on either end belong to it."""

    start_ms: int
    end_ms: int


def _extrapolated(held: Samples, span: Span, *, counter: bool) -> float | None:
    """The change over the whole span: that between the samples, stretched towards the span's ends."""
    values, times = held.values, held.times_ms
    if len(values) < 2:
        return None
    change = values[-1] - values[0]
    if counter:
        # After a reset the counter starts from zero, so what it had reached before is added.
        change += sum(before for before, after in itertools.pairwise(values) if after < before)
    sampled_s = (times[-1] - times[0]) / 1000
    step_s = sampled_s / (len(values) - 1)
    to_start_s = (times[0] - span.start_ms) / 1000
    to_end_s = (span.end_ms - times[-1]) / 1000
    if counter and change > 0 and values[0] >= 0:
        # A counter is never negative: it is not stretched beyond where it would have been zero.
        to_start_s = min(to_start_s, sampled_s * (values[0] / change))
    covered_s = sampled_s
    for edge_s in (to_start_s, to_end_s):
        covered_s += edge_s if edge_s < step_s * EXTRAPOLATED_STEPS else step_s / 2
    return change * (covered_s / sampled_s)


def _rate(held: Samples, span: Span) -> float | None:
    change = _extrapolated(held, span, counter=True)
    return None if change is None else change / ((span.end_ms - span.start_ms) / 1000)


def _increase(held: Samples, span: Span) -> float | None:
    return _extrapolated(held, span, counter=True)


def _delta(held: Samples, span: Span) -> float | None:
    return _extrapolated(held, span, counter=False)


def _irate(held: Samples, _span: Span) -> float | None:
    if len(held.values) < 2:
        return None
    before, last = held.values[-2:]
    change = last if last < before else last - before
    return change / ((held.times_ms[-1] - held.times_ms[-2]) / 1000)


def _idelta(held: Samples, _span: Span) -> float | None:
    return held.values[-1] - held.values[-2] if len(held.values) > 1 else None


def _resets(held: Samples, _span: Span) -> float:
    return float(sum(after < before for before, after in itertools.pairwise(held.values)))


def _changes(held: Samples, _span: Span) -> float:
    pairs = itertools.pairwise(held.values)
    return float(sum(a != b and not (math.isnan(a) and math.isnan(b)) for a, b in pairs))


def _over(compute: Callable[[Sequence[float]], float]) -> Callable[[Samples, Span], float]:
    return lambda held, _span: compute(held.values)


def least(values: Sequence[float]) -> float:
    """The smallest; NaN only when there is nothing else."""
    numbers = [value for value in values if not math.isnan(value)]
    return min(numbers) if numbers else math.nan


def greatest(values: Sequence[float]) -> float:
    """The largest; NaN only when there is nothing else."""
    numbers = [value for value in values if not math.isnan(value)]
    return max(numbers) if numbers else math.nan


RANGE_FUNCTIONS: dict[str, Callable[[Samples, Span], float | None]] = {
    "rate": _rate,
    "increase": _increase,
    "delta": _delta,
    "irate": _irate,
    "idelta": _idelta,
    "resets": _resets,
    "changes": _changes,
    "avg_over_time": _over(lambda values: total(values) / len(values)),
    "sum_over_time": _over(total),
    "min_over_time": _over(least),
    "max_over_time": _over(greatest),
    "count_over_time": _over(lambda values: float(len(values))),
    "last_over_time": _over(lambda values: values[-1]),
    "present_over_time": _over(lambda _values: 1.0),
    "stddev_over_time": _over(lambda values: math.sqrt(variance(values))),
    "stdvar_over_time": _over(variance),
}

QUANTILE_OVER_TIME = "quantile_over_time"


def quantile_over_time(share: float, held: Samples) -> float:
    """The quantile of a range's values."""
    return quantile(share, held.values)
