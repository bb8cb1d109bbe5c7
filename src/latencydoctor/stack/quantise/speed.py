"""How much faster a rebuilt model is here, one thread, both models side by side.

The models take turns in short runs of calls, not call by call: each would put the other's weights out of the caches,
and no server alternates between two models. A run's figure is its median, a model's that of its fastest run: what a
busy machine adds hits the larger model harder, and is no merit of the smaller one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from latencydoctor.stack.encoder.onnx_model import Ints, OnnxEncoder

SIZES = (1, 4, 16, 32)
"""Batch sizes that are measured: one request alone, and what the batcher makes of many."""

ROUNDS = 15
CALLS_MS = 60.0
"""How long each run of calls lasts at least, ms, after its first calls have filled the caches."""

WARMING_CALLS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds for one batch size; `ratio` is before / after."""

    size: int
    before_ms: float
    after_ms: float
    ratio: float


def compare(before: Path, after: Path, ids: Ints, mask: Ints, sizes: tuple[int, ...] = SIZES) -> tuple[Timing, ...]:
    """Both models on batches of these questions, one thread."""
    encoders = OnnxEncoder(before), OnnxEncoder(after)
    return tuple(_timed(encoders, size, np.resize(ids, (size, ids.shape[1])), mask) for size in sizes)


def _timed(encoders: tuple[OnnxEncoder, OnnxEncoder], size: int, ids: Ints, mask: Ints) -> Timing:
    masks = np.resize(mask, (size, mask.shape[1]))
    rounds = [(_run_ms(encoders[0], ids, masks), _run_ms(encoders[1], ids, masks)) for _ in range(ROUNDS)]
    before_ms, after_ms = (min(runs) for runs in zip(*rounds, strict=True))
    return Timing(size, before_ms, after_ms, before_ms / after_ms)


def _run_ms(encode: Callable[[Ints, Ints], object], ids: Ints, mask: Ints) -> float:
    """Median of one run of calls, ms."""
    for _ in range(WARMING_CALLS):
        encode(ids, mask)
    took: list[float] = []
    while sum(took) < CALLS_MS or len(took) < WARMING_CALLS:
        start = time.perf_counter()
        encode(ids, mask)
        took.append((time.perf_counter() - start) * 1000)
    return median(took)


def cpu() -> tuple[str, bool]:
    """The CPU's name, and whether it has VNNI (8-bit dot products), as Linux tells; ("", False) where it does not."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", False
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    flags = facts.get("flags", "").split()
    return facts.get("model name", ""), any(flag in flags for flag in ("avx512_vnni", "avx_vnni"))
