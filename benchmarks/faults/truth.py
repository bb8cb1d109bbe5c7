"""Whether a run is an incident, by the true latencies of its clients and not by what any page shows.

The definition is the project's: in at least 3 of the last 5 windows p99 or the mean is above 1 s or at least twice the
baseline's, or at least 0.5 % of the requests failed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.faults.simulator.log import Floats, Log
from benchmarks.faults.simulator.timeline import ONSET_S, RANGE_S

WINDOW_S = 60.0
JUDGED, BAD = 5, 3
SLO_MS, SLO_ERRORS, TIMES_BASELINE = 1000.0, 0.005, 2.0
FEWEST_REQUESTS = 20
BASELINE_FROM_S = 600.0


@dataclass(frozen=True, slots=True)
class Window:
    """One minute of requests, by when they ended."""

    p99_ms: float
    mean_ms: float
    error_ratio: float
    requests: int


def windows(log: Log) -> list[Window]:
    """The range's minutes, oldest first."""
    rows = log.requests.arrays()
    return [_window(rows, start, start + WINDOW_S) for start in np.arange(0.0, RANGE_S, WINDOW_S)]


def _window(rows: dict[str, Floats], start_s: float, end_s: float) -> Window:
    mine = (rows["time"] > start_s) & (rows["time"] <= end_s)
    took, failed = rows["e2e_ms"][mine], rows["status"][mine] >= 499
    if not len(took):
        return Window(0.0, 0.0, 0.0, 0)
    return Window(float(np.percentile(took, 99)), float(took.mean()), float(failed.mean()), len(took))


def is_incident(log: Log) -> bool:
    """Judge the last five minutes against those between ten minutes after the start and the onset."""
    held = windows(log)
    before = [each for each in held[int(BASELINE_FROM_S / WINDOW_S) : int(ONSET_S / WINDOW_S)] if each.requests]
    p99_ms, mean_ms = (float(np.median([getattr(each, name) for each in before])) for name in ("p99_ms", "mean_ms"))

    def bad(window: Window) -> bool:
        slow = window.p99_ms > SLO_MS or window.mean_ms > SLO_MS
        slower = window.p99_ms >= TIMES_BASELINE * p99_ms or window.mean_ms >= TIMES_BASELINE * mean_ms
        return window.requests >= FEWEST_REQUESTS and (slow or slower or window.error_ratio >= SLO_ERRORS)

    return sum(bad(window) for window in held[-JUDGED:]) >= BAD
