"""Every bad stretch of the range looked at, not only the last one: when each began."""

from __future__ import annotations

from latencydoctor.evidence.incident import ENOUGH_REQUESTS, ERRORS, MEAN, P99, RATE, WINDOWS_BAD
from latencydoctor.evidence.series import Points, make_grid, place
from latencydoctor.model.configuration import Slo
from latencydoctor.model.evidence import Collected

GOOD_ENDS = 2
"""So many good windows in a row end a stretch, as they do where the onset is looked for."""


def bad_starts(collected: Collected, slo: Slo) -> tuple[float, ...]:
    """When each stretch of at least three bad windows began (seconds since the epoch), earliest first.

    Bad is what passes the SLO; a rise below it has no baseline here. Windows that say nothing are passed over.
    """
    grid = make_grid(collected.now_s, collected.window_s, collected.series)
    points = {series.signal: place(series, grid) for series in collected.series}
    latency = points.get(P99) or points.get(MEAN)
    found: list[float] = []
    start_s, bad, good = None, 0, 0
    for index, end_s in enumerate(grid.ends_s):
        verdict = _bad(index, grid.window_s, (latency, points.get(ERRORS), points.get(RATE)), slo)
        if verdict is None:
            continue
        if verdict:
            start_s = end_s - grid.window_s if start_s is None else start_s
            bad, good = bad + 1, 0
            if bad == WINDOWS_BAD:
                found.append(start_s)
            continue
        good += 1
        if good >= GOOD_ENDS:
            start_s, bad = None, 0
    return tuple(found)


def _bad(index: int, window_s: float, of: tuple[Points | None, Points | None, Points | None], slo: Slo) -> bool | None:
    """Whether the window passes the SLO; None where it has too few requests or no value."""
    latency, errors, rate = (points.at.get(index) if points is not None else None for points in of)
    few = rate is not None and rate * window_s < ENOUGH_REQUESTS
    if few or (latency is None and errors is None):
        return None
    out = (latency is not None and latency > slo.p99_ms) or (errors is not None and errors >= slo.error_ratio)
    return out or (False if latency is not None or of[0] is None else None)
