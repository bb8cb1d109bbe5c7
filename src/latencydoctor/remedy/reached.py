"""Holds what was predicted against what verification measured, and counts the batches that ran since the change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from latencydoctor.model.reached import BatchesRun, Executions, Reached
from latencydoctor.model.remedy import Check, Prediction

_OWN_FIELDS = {"e2e_p99_ms": "p99_ms", "cache_hit_ratio": "hit_ratio"}
"""Signals that a check holds in a field of their own; the others are among `also`."""


def reached(predictions: Sequence[Prediction], checks: Sequence[Check]) -> tuple[Reached, ...]:
    """Every prediction beside the middle of what the conclusive checks measured of it."""
    return tuple(_one(prediction, _measured(prediction.signal, checks)) for prediction in predictions)


def _one(prediction: Prediction, measured: float | None) -> Reached:
    low, high = prediction.low, prediction.high
    within = None if measured is None or low is None else low <= measured <= (math.inf if high is None else high)
    return Reached(prediction.signal, prediction.unit, prediction.after, low, high, measured, within)


def _measured(signal: str, checks: Sequence[Check]) -> float | None:
    held = [
        getattr(check, _OWN_FIELDS[signal]) if signal in _OWN_FIELDS else dict(check.also).get(signal)
        for check in checks
        if check.conclusive
    ]
    values = [value for value in held if value is not None]
    return median(values) if values else None


def batches_run(before: Executions | None, after: Executions | None) -> BatchesRun | None:
    """The executions between two counts; None where they were not told, or nothing was executed.

    A count that fell means that the model was loaded anew in between: then all that is counted since is meant.
    """
    if after is None:
        return None
    earlier = dict(before.by_size) if before is not None else {}
    if any(count < earlier.get(size, 0) for size, count in after.by_size) or set(earlier) - set(dict(after.by_size)):
        earlier = {}
    ran = tuple((size, count - earlier.get(size, 0)) for size, count in after.by_size if count > earlier.get(size, 0))
    total = sum(count for _, count in ran)
    if not total:
        return None
    floor = after.floor
    held = None if floor is None else sum(count for size, count in ran if size >= floor) / total
    return BatchesRun(floor, ran, total, sum(size * count for size, count in ran) / total, held)
