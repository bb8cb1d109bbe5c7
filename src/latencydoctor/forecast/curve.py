"""Service time by batch size, calibrated from live metrics alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NEEDED = ("compute_time_ms", "batch_size_mean", "execution_rate_eps", "accelerator_busy_ratio")
"""The signals a calibration needs, all from the same window."""

DISAGREEMENT_LIMIT = 1.15
"""How far the device's busy time may exceed the execution's own time before the two are not believed."""


@dataclass(frozen=True, slots=True)
class ServiceCurve:
    """One execution takes `host_ms`, whatever its size, plus `item_ms` for each request in it."""

    host_ms: float
    item_ms: float

    def batch_ms(self, size: float) -> float:
        """How long an execution of this many requests takes."""
        return self.host_ms + self.item_ms * size

    def scaled(self, factor: float) -> ServiceCurve:
        """The same curve, everything this many times slower."""
        return ServiceCurve(self.host_ms * factor, self.item_ms * factor)


def calibrate(measured: Mapping[str, float]) -> ServiceCurve | str:
    """The curve behind these figures, or why it cannot be told.

    An execution's time is split by the device's own busy time: what the device works is taken as growing with the
    number of requests, the rest (launching, copying, waiting on the host) as the same for any batch. A device that
    works better on larger batches does better than this says, so the curve errs on the safe side.
    """
    missing = [name for name in NEEDED if name not in measured]
    if missing:
        return f"not measured: {', '.join(missing)}"
    execution_ms, size, rate, busy = (measured[name] for name in NEEDED)
    if execution_ms <= 0 or size < 1 or rate <= 0 or busy <= 0:
        return "the server executed nothing that could be measured"
    device_ms = busy / rate * 1000
    if device_ms > execution_ms * DISAGREEMENT_LIMIT:
        return f"the device was busy {device_ms:.1f} ms an execution, which itself took {execution_ms:.1f} ms"
    return ServiceCurve(max(0.0, execution_ms - device_ms), min(device_ms, execution_ms) / size)
