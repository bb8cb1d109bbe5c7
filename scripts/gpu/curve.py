"""How long a batch takes by its size, measured, and as a profile of a simulated accelerator."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scripts.gpu.outcome import Failed
from scripts.gpu.workloads import Workload

BATCHES = (1, 2, 4, 8, 16, 32, 64)
"""Measured on every card."""
LARGEST_BATCH = 4096
"""A large card idles through all of those; the size is doubled up to here until a batch takes `GROWN_RATIO` times as
long as the smallest, or there would be no time an item to read."""
GROWN_RATIO = 2.0
LEAST_GROWTH_RATIO = 0.1
"""Less growth than this over the whole curve is noise, not a time an item."""
WARM_UPS = 5
EXECUTIONS = 40
SIZE_S = 4.0
"""No batch size is measured for longer."""


@dataclass(frozen=True, slots=True)
class Line:
    """Execution time as a launch and a time an item, and how far the measured medians are from it at most."""

    overhead_ms: float
    per_item_ms: float
    worst_ratio: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Median execution times by batch size, and the memory that the model and its largest batch took."""

    times_ms: Mapping[int, float]
    model_bytes: int
    per_item_bytes: int


def measure(make: Callable[[], Workload], used_before_bytes: int) -> tuple[Measured, str]:
    """Execute each batch size in turn, larger ones until the time grows, and name what was executed."""
    workload = make()
    try:
        with_model = workload.used_bytes()
        times = {batch: _median_ms(workload.prepare(batch)) for batch in BATCHES}
        largest = max(BATCHES)
        while times[largest] < GROWN_RATIO * times[min(BATCHES)] and largest < LARGEST_BATCH:
            largest *= 2
            times[largest] = _median_ms(workload.prepare(largest))
        grown = max(0, workload.used_bytes() - with_model)
        model_bytes = max(0, with_model - used_before_bytes)
        return Measured(times, model_bytes, grown // largest), workload.label
    finally:
        workload.close()


def _median_ms(execute: Callable[[], None]) -> float:
    for _ in range(WARM_UPS):
        execute()
    times: list[float] = []
    until = time.perf_counter() + SIZE_S
    while len(times) < EXECUTIONS and time.perf_counter() < until:
        started = time.perf_counter()
        execute()
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def fit(times_ms: Mapping[int, float]) -> Line:
    """The line through the medians with the least squared *relative* errors, so that small batches count as much.

    Failed where the time does not grow with the batch: then the device was never the bound and there is no profile.
    """
    weights = {batch: 1 / (taken * taken) for batch, taken in times_ms.items()}
    total = sum(weights.values())
    mean_batch = sum(weights[batch] * batch for batch in times_ms) / total
    mean_ms = sum(weights[batch] * taken for batch, taken in times_ms.items()) / total
    spread = sum(weights[batch] * (batch - mean_batch) ** 2 for batch in times_ms)
    slope = sum(weights[batch] * (batch - mean_batch) * (times_ms[batch] - mean_ms) for batch in times_ms) / spread
    if slope * (max(times_ms) - min(times_ms)) < LEAST_GROWTH_RATIO * mean_ms:
        raise Failed(f"a batch of {max(times_ms)} takes no longer than one of {min(times_ms)}: no time an item")
    overhead = max(0.0, mean_ms - slope * mean_batch)
    worst = max(abs(overhead + slope * batch - taken) / taken for batch, taken in times_ms.items())
    return Line(overhead, slope, worst)


def profile(card: str, driver: str, date: str, clock_mhz: float, total_bytes: int, found: Measured, label: str) -> str:
    """The text of a profile; its origin says card, driver, date, what was executed and how well the line fits."""
    line = fit(found.times_ms)
    curve = ", ".join(f"{batch}: {taken:.3f} ms" for batch, taken in found.times_ms.items())
    sizes = f"batches of {min(found.times_ms)} to {max(found.times_ms)}"
    origin = (
        f"measured on {card}, driver {driver}, {date}: {label}, {sizes}; "
        f"the line is at most {100 * line.worst_ratio:.0f} % off the medians"
    )
    return "\n".join(
        (
            f"# Made by scripts/gpu_check.py. Medians by batch size: {curve}.",
            f"name: {name_of(card)}",
            f'origin: "{_plain(origin)}"',
            f"host_overhead_ms: {line.overhead_ms:.4f}",
            f"per_item_ms: {line.per_item_ms:.6f}",
            f"memory_total_bytes: {total_bytes}",
            f"memory_model_bytes: {found.model_bytes}",
            f"memory_per_item_bytes: {found.per_item_bytes}",
            f"clock_mhz: {clock_mhz:.0f}",
            f"max_clock_mhz: {clock_mhz:.0f}",
            "",
        )
    )


def name_of(card: str) -> str:
    """A file name made of the card's name."""
    return re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-") or "gpu"


def _plain(text: str) -> str:
    return re.sub(r'["\\\x00-\x1f]', " ", text)
