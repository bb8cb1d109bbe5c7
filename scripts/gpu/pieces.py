"""The pieces of the check, each on its own: what the card is, its readings, memory, clocks, a curve, INT8."""

from __future__ import annotations

import datetime as dt
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path

from scripts.gpu import curve, int8, readings
from scripts.gpu.cuda_driver import CudaDevice
from scripts.gpu.outcome import Failed, Figure, Skipped
from scripts.gpu.workloads import best, running

Found = tuple[str, dict[str, Figure]]

LOAD_S = 4.0
"""Utilization is an average over up to a second: look once the load has run well beyond that."""
LOAD_BATCH = 32
BUSY_RATIO = 0.3
"""A load without a pause keeps a device busier than this; below it the load did not reach what NVML reads."""
ALLOCATED_BYTES = 1 << 30
ALLOCATED_WITHIN_RATIO = 0.05
RUNTIMES = ("torch", "tensorrt", "onnxruntime", "cupy", "numba", "pynvml")


def card(out: Path) -> Found:
    """What is there; every other piece needs it."""
    del out
    device = CudaDevice()
    major, minor = device.capability()
    there = [name for name in RUNTIMES if importlib.util.find_spec(name) is not None]
    figures: dict[str, Figure] = {"card": device.name(), "compute_capability": f"{major}.{minor}"}
    try:
        figures["driver"] = readings.smi("driver_version")[0][0]
    except Skipped as missing:
        figures["driver"] = f"unknown: {missing}"
    figures["packages"] = ", ".join(there) or "none"
    return device.name(), figures


def nvml(out: Path) -> Found:
    """Our NVML readings beside nvidia-smi's, under load."""
    del out
    readings.smi("driver_version")
    workload = best()
    with running(workload, LOAD_BATCH) as executed:
        time.sleep(LOAD_S)
        facts, gaps, how = readings.ours()
        figures: dict[str, Figure] = {}
        off = []
        for value in readings.COMPARED:
            if value.signal not in facts:
                continue
            expected, near = readings.compare(facts, value)
            figures[value.signal], figures[f"{value.signal} (nvidia-smi)"] = facts[value.signal], expected
            off += [] if near else [value.signal]
        batches = executed()
    figures |= {name: facts[name] for name in facts if name not in figures}
    figures |= {f"{signal} (absent)": detail for signal, detail in gaps.items()}
    if facts.get("accelerator_busy_ratio", 1.0) < BUSY_RATIO:
        off.append(f"busy {facts['accelerator_busy_ratio']:.0%} under a load of {batches} batches")
    if off:
        raise FailedWith(f"not as nvidia-smi says: {', '.join(off)}", figures)
    return f"{how}, under {workload.label}, {batches} batches", figures


def memory(out: Path) -> Found:
    """Whether what a process takes and gives back is seen."""
    del out
    device = CudaDevice().open()
    try:
        device.put(bytes(4))
        before = _used()
        address = device.allocate(ALLOCATED_BYTES)
        held = _used() - before
        device.free(address)
        after = _used() - before
    finally:
        device.close()
    figures: dict[str, Figure] = {
        "allocated_bytes": float(ALLOCATED_BYTES),
        "seen_bytes": held,
        "seen_after_free_bytes": after,
    }
    near = ALLOCATED_WITHIN_RATIO * ALLOCATED_BYTES
    if abs(held - ALLOCATED_BYTES) > near or abs(after) > near:
        raise FailedWith("what was allocated is not what NVML saw (another process on the card?)", figures)
    return "1 GiB taken and given back, both seen", figures


def throttle(out: Path) -> Found:
    """The signals of low clocks, under load, and whether nvidia-smi names the same reasons."""
    del out
    workload = best()
    seen: list[tuple[dict[str, float], int | None]] = []
    with running(workload, LOAD_BATCH):
        time.sleep(LOAD_S / 2)
        for _ in range(3):
            seen.append((readings.ours()[0], readings.reasons()))
            time.sleep(0.3)
    figures: dict[str, Figure] = {}
    absent, differing = [], []
    for signal, bits in readings.REASONS.items():
        told = [(facts.get(signal), mask) for facts, mask in seen]
        figures[signal] = told[-1][0]
        absent += [signal] if told[-1][0] is None else []
        known = [(bool(value), bool(mask & bits)) for value, mask in told if value is not None and mask is not None]
        # Reasons change from moment to moment: only one that never agrees is wrong.
        differing += [signal] if known and all(ours != theirs for ours, theirs in known) else []
        figures[f"{signal} (nvidia-smi)"] = float(known[-1][1]) if known else None
    clocks = [facts["accelerator_clock_ratio"] for facts, _ in seen if "accelerator_clock_ratio" in facts]
    figures["accelerator_clock_ratio"] = min(clocks) if clocks else None
    if differing:
        raise FailedWith(f"not as nvidia-smi says: {', '.join(differing)}", figures)
    return f"absent: {', '.join(absent)}" if absent else "heat, power cap and hardware brake are read", figures


def batches(out: Path) -> Found:
    """The batch-latency curve, written as a profile of a simulated accelerator."""
    device = CudaDevice().open()
    free, total = device.free_and_total_bytes()
    found, label = curve.measure(best, total - free)
    figures: dict[str, Figure] = {f"median_ms[{size}]": taken for size, taken in found.times_ms.items()}
    try:
        line = curve.fit(found.times_ms)
    except Failed as error:
        raise FailedWith(str(error), figures) from None
    figures |= {"host_overhead_ms": line.overhead_ms, "per_item_ms": line.per_item_ms, "worst_ratio": line.worst_ratio}
    try:
        driver, clock = readings.smi("driver_version", "clocks.max.sm")[0]
        text = curve.profile(device.name(), driver, _today(), float(clock), total, found, label)
    except (Skipped, ValueError) as missing:
        return f"measured; no profile without driver and clock: {missing}", figures
    target = out / f"{curve.name_of(device.name())}.yaml"
    out.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return f"{label}; profile in {target}", figures


def precision(out: Path) -> Found:
    """INT8 against FP32."""
    del out
    figures, how = int8.compare()
    fastest = max(value for name, value in figures.items() if name.startswith("speedup") and isinstance(value, float))
    return f"{how}: up to {fastest:.2f} times faster", figures


class FailedWith(Failed):
    """A failure that has figures to show."""

    def __init__(self, detail: str, figures: dict[str, Figure]) -> None:
        super().__init__(detail)
        self.figures = figures


def _used() -> float:
    facts, _, _ = readings.ours()
    if "accelerator_memory_used_bytes" not in facts:
        raise Skipped("NVML does not tell the memory in use")
    return facts["accelerator_memory_used_bytes"]


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


PIECES: dict[str, Callable[[Path], Found]] = {
    "card": card,
    "nvml": nvml,
    "memory": memory,
    "throttle": throttle,
    "batches": batches,
    "int8": precision,
}
