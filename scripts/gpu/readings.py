"""Our NVML readings, and nvidia-smi's of the same moment to hold them against."""

from __future__ import annotations

import csv
import importlib
import shutil
import subprocess
from dataclasses import dataclass

from scripts.gpu import nvml_plain
from scripts.gpu.outcome import Skipped

MIB = 1024 * 1024
SMI_S = 20
"""nvidia-smi needs up to some seconds where no daemon keeps the driver loaded."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One value of ours, nvidia-smi's fields that say the same, and how far apart the two may be."""

    signal: str
    fields: tuple[str, ...]
    """Added together."""
    scale: float
    combine: str
    """How several GPUs become one, as in our source: sum, mean or max."""
    within: float
    """The larger of this, in our unit, and `within_ratio` of nvidia-smi's value."""
    within_ratio: float = 0.0


COMPARED = (
    # Both are averages over up to a second of a load that does not pause.
    Compared("accelerator_busy_ratio", ("utilization.gpu",), 0.01, "mean", 0.1),
    # NVML's `used` counts what the driver reserves for itself, nvidia-smi's does not.
    Compared("accelerator_memory_used_bytes", ("memory.used", "memory.reserved"), MIB, "sum", 64 * MIB, 0.01),
    Compared("accelerator_memory_total_bytes", ("memory.total",), MIB, "sum", 2 * MIB),
    Compared("nvml_temperature_c", ("temperature.gpu",), 1, "max", 3),
    Compared("nvml_power_w", ("power.draw",), 1, "sum", 10, 0.15),
)
REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""What drivers from 2023 on call it, and what those before did."""
REASONS = {
    "accelerator_throttled_ratio": nvml_plain.THERMAL_REASONS,
    "accelerator_power_capped_ratio": nvml_plain.POWER_CAP_REASONS,
    "accelerator_hw_slowdown_ratio": nvml_plain.HARDWARE_REASONS,
}


def ours() -> tuple[dict[str, float], dict[str, str], str]:
    """Facts, gaps with their reasons, and how: our source where its binding is installed, else ctypes."""
    try:
        source = importlib.import_module("latencydoctor.sources.nvml")
    except ImportError as error:
        return nvml_plain.read(), {}, f"ctypes ({error})"
    evidence = importlib.import_module("latencydoctor.model.evidence")
    found = source.NvmlDevices().read(evidence.Selection(""))
    if not found.facts:
        raise Skipped(next(gap.detail for gap in found.gaps))
    facts = {fact.signal: float(fact.value) for fact in found.facts}
    return facts, {gap.signal: gap.detail for gap in found.gaps}, "latencydoctor.sources.nvml"


def smi(*fields: str) -> list[list[str]]:
    """nvidia-smi's answer, a row a GPU; Skipped where it is missing or refuses."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise Skipped("nvidia-smi is not on PATH")
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SMI_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Skipped(f"nvidia-smi: {error}") from None
    if done.returncode:
        raise Skipped(f"nvidia-smi: {(done.stdout + done.stderr).strip()[:200]}")
    return [[cell.strip() for cell in row] for row in csv.reader(done.stdout.splitlines()) if row]


def compare(facts: dict[str, float], value: Compared) -> tuple[float | None, bool]:
    """nvidia-smi's value in our unit, and whether ours is near enough; None where nvidia-smi has none."""
    rows = smi(*value.fields)
    try:
        each = [sum(float(cell) for cell in row) * value.scale for row in rows]
    except ValueError:
        return None, True
    expected = max(each) if value.combine == "max" else sum(each) / (len(each) if value.combine == "mean" else 1)
    far = abs(facts[value.signal] - expected)
    return expected, far <= max(value.within, value.within_ratio * expected)


def reasons() -> int | None:
    """Every reason for low clocks that nvidia-smi names for any GPU; None where it knows neither field."""
    for name in REASON_FIELDS:
        try:
            masks = [int(row[0], 16) for row in smi(name)]
        except (Skipped, ValueError):
            continue
        joined = 0
        for mask in masks:
            joined |= mask
        return joined
    return None
