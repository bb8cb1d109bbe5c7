"""What a change of the batcher's settings is expected to do: capacity and p99, each with how it was reached."""

from __future__ import annotations

from collections.abc import Mapping

from latencydoctor.forecast.curve import ServiceCurve, calibrate
from latencydoctor.forecast.queue import Batching, capacity_rps, simulate_p99_ms
from latencydoctor.model.remedy import Prediction

SPREAD = 0.10
"""The interval's ends: rate and service time both this much lower, and both this much higher, than measured."""

_FORMS = (("capacity_rps", "requests/s"), ("e2e_p99_ms", "ms"))


def predict(
    measured: Mapping[str, float], arrival_rps: float | None, before: Batching, after: Batching
) -> tuple[Prediction, ...]:
    """Capacity and p99 before and after. Where a figure cannot be computed it is None and `method` says why."""
    curve = calibrate(measured)
    if isinstance(curve, str):
        reason = f"not predicted: {curve}"
        return tuple(Prediction(name, unit, None, None, None, None, reason) for name, unit in _FORMS)
    return (_capacity(curve, before, after), _p99(curve, measured, arrival_rps, after))


def _told(curve: ServiceCurve) -> str:
    return f"{curve.host_ms:.1f} ms + {curve.item_ms:.2f} ms a request, calibrated from the incident's own metrics"


def _capacity(curve: ServiceCurve, before: Batching, after: Batching) -> Prediction:
    return Prediction(
        "capacity_rps",
        "requests/s",
        before=capacity_rps(curve, before),
        after=capacity_rps(curve, after),
        low=capacity_rps(curve.scaled(1 + SPREAD), after),
        high=capacity_rps(curve.scaled(1 - SPREAD), after),
        method=f"batch size / execution time, {_told(curve)}; interval: times -/+ {SPREAD:.0%}",
    )


def _p99(curve: ServiceCurve, measured: Mapping[str, float], arrival_rps: float | None, after: Batching) -> Prediction:
    before = measured.get("e2e_p99_ms")
    if arrival_rps is None:
        return Prediction("e2e_p99_ms", "ms", before, None, None, None, "not predicted: the arrival rate is not known")
    outside_ms = max(0.0, measured.get("e2e_mean_ms", 0.0) - measured.get("server_time_ms", float("inf")))
    middle, low, high = (
        simulate_p99_ms(arrival_rps * factor, curve.scaled(factor), after) for factor in (1.0, 1 - SPREAD, 1 + SPREAD)
    )
    if middle is None:
        reason = f"{arrival_rps:.0f} requests/s arrive and {capacity_rps(curve, after):.0f} can be served"
        return Prediction("e2e_p99_ms", "ms", before, None, None, None, f"no bound: {reason}; add capacity too")
    # More load can mean a lower p99 while batches wait to fill, so the ends are sorted.
    ends = sorted(value for value in (low, middle, high) if value is not None)
    return Prediction(
        "e2e_p99_ms",
        "ms",
        before=before,
        after=middle + outside_ms,
        low=ends[0] + outside_ms,
        high=None if high is None else ends[-1] + outside_ms,
        method=f"simulated queue at {arrival_rps:.0f} requests/s, {_told(curve)}; "
        f"interval: rate and times -/+ {SPREAD:.0%}",
    )
