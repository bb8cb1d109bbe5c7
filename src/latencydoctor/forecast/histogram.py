"""How a histogram shows a percentile. It counts by upper bounds and is read by a straight line between two of them.

Where many requests take about as long as each other, the line knows nothing of where in the bucket they lie: a p99 of
159 ms is shown as 191 ms when the bounds beside it are 150 and 200 ms. Whoever will be measured by a histogram has to
be predicted as the histogram will show it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from latencydoctor.model.evidence import Fact

_BOUND = re.compile(r"e2e_bound_\d{1,4}_ms")


def shown_ms(
    ascending: Sequence[float], ratio: float, bounds_ms: Sequence[float], hit_ratio: float = 0.0, hit_ms: float = 0.0
) -> float | None:
    """What Prometheus' `histogram_quantile` makes of these latencies (ms), of which a cache answers some beside.

    `bounds_ms` are the finite upper bounds, ascending. None above the last: there it shows the last, whatever it is.
    """
    below_ms, counted = 0.0, 0.0
    for bound_ms in bounds_ms:
        served = bisect_right(ascending, bound_ms) / len(ascending)
        reached = (1 - hit_ratio) * served + (hit_ratio if hit_ms <= bound_ms else 0.0)
        if reached >= ratio:
            return below_ms + (bound_ms - below_ms) * (ratio - counted) / (reached - counted)
        below_ms, counted = bound_ms, reached
    return None


def around_ms(value_ms: float, bounds_ms: Sequence[float]) -> tuple[float, float | None]:
    """The bounds beside a latency: the last one below it (0 for none) and the next (None above them all)."""
    place = next((number for number, bound_ms in enumerate(bounds_ms) if value_ms <= bound_ms), len(bounds_ms))
    return bounds_ms[place - 1] if place else 0.0, bounds_ms[place] if place < len(bounds_ms) else None


def bounds_of(facts: Iterable[Fact]) -> tuple[float, ...]:
    """The bounds of the front end's histogram among facts, ascending, ms; empty where p99 is not read from one."""
    return tuple(sorted({fact.value for fact in facts if _BOUND.fullmatch(fact.signal)}))
