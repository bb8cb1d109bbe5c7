"""INT8 against FP32: the same products in both, how much faster, and how far the answers are apart.

With PyTorch it is a library's matrix product on tensor cores; without, our plain kernels with four multiplications an
instruction. Neither is a whole model: what INT8 costs in accuracy is measured on the questions by the fix itself.
"""

from __future__ import annotations

import array
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from scripts.gpu.cuda_driver import CudaDevice
from scripts.gpu.outcome import Failed, Figure, Skipped
from scripts.gpu.workloads import TOKENS, WIDE, WIDTH, cuda_torch

REPEATS = 20
BATCH = 32
HIGHEST = 127
"""Of a signed byte; -128 is left out, so that the scale is symmetric."""
PLAIN_SHAPE = (BATCH * TOKENS, WIDE, WIDTH)
"""Rows, columns and depth: the widest product of the encoder at a batch of 32."""
TORCH_SHAPES = (PLAIN_SHAPE, (4096, 4096, 4096))


def compare() -> tuple[dict[str, Figure], str]:
    """The figures, and what they were measured with."""
    try:
        torch = cuda_torch()
    except Skipped as missing:
        return plain(CudaDevice(), PLAIN_SHAPE), f"plain kernels through the driver ({missing})"
    return with_torch(torch, "cuda"), f"PyTorch {torch.__version__}"


def with_torch(torch: Any, device: str, shapes: Sequence[tuple[int, int, int]] = TORCH_SHAPES) -> dict[str, Figure]:
    """A library's product in each precision; TF32 stays off, or FP32 would not be FP32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    figures: dict[str, Figure] = {}
    for rows, columns, depth in shapes:
        left, right = torch.randn(rows, depth, device=device), torch.randn(columns, depth, device=device)
        scales = [part.abs().max() / HIGHEST for part in (left, right)]
        small = [(part / scale).round().to(torch.int8) for part, scale in zip((left, right), scales, strict=True)]
        fp32_ms = _timed(torch.mm, (left, right.T), torch, device)
        int8_ms = _timed(torch._int_mm, (small[0], small[1].T), torch, device)
        exact, rough = left @ right.T, torch._int_mm(small[0], small[1].T) * (scales[0] * scales[1])
        error = float((rough - exact).norm() / exact.norm())
        figures |= _figures(f"{rows}x{columns}x{depth}", fp32_ms, int8_ms, error)
    return figures


def plain(device: CudaDevice, shape: tuple[int, int, int]) -> dict[str, Figure]:
    """Our own kernels in each precision; a few elements are checked against Python's arithmetic."""
    device.open()
    try:
        rows, columns, depth = shape
        source = random.Random(1)
        left, right = ([source.uniform(-1, 1) for _ in range(size * depth)] for size in (rows, columns))
        small = [[round(value * HIGHEST) for value in part] for part in (left, right)]
        fp32_ms, exact = _product(device, "product_fp32", (_floats(left), _floats(right)), shape, "f")
        words = (rows, columns, depth // 4)
        int8_ms, rough = _product(device, "product_int8", (_bytes(small[0]), _bytes(small[1])), words, "i")
    finally:
        device.close()
    _check((left, right), exact, shape, 1e-3)
    _check((small[0], small[1]), rough, shape, 0)
    off = math.sqrt(sum((r / HIGHEST**2 - e) ** 2 for r, e in zip(rough, exact, strict=True)))
    error = off / math.sqrt(sum(e * e for e in exact))
    return _figures(f"{rows}x{columns}x{depth}", fp32_ms, int8_ms, error)


def _product(
    device: CudaDevice, kernel: str, operands: tuple[bytes, bytes], shape: tuple[int, int, int], kind: str
) -> tuple[float, Sequence[float]]:
    """Median time of a product, and its result."""
    left, right = (device.put(part) for part in operands)
    size_bytes = 4 * shape[0] * shape[1]
    out, function = device.allocate(size_bytes), device.kernel(kernel)
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        device.launch(function, (left, right, out), shape)
        device.wait()
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times), array.array(kind, device.get(out, size_bytes))


def _check(
    operands: tuple[Sequence[float], Sequence[float]],
    found: Sequence[float],
    shape: tuple[int, int, int],
    within: float,
) -> None:
    rows, columns, depth = shape
    source = random.Random(2)
    for _ in range(16):
        row, column = source.randrange(rows), source.randrange(columns)
        left = operands[0][row * depth : (row + 1) * depth]
        right = operands[1][column * depth : (column + 1) * depth]
        expected = sum(a * b for a, b in zip(left, right, strict=True))
        if abs(found[row * columns + column] - expected) > within:
            raise Failed(f"the GPU computed {found[row * columns + column]} where {expected} is right")


def _timed(product: Callable[..., Any], operands: tuple[Any, Any], torch: Any, device: str) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        product(*operands)
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def _figures(shape: str, fp32_ms: float, int8_ms: float, error: float) -> dict[str, Figure]:
    return {
        f"fp32_ms[{shape}]": fp32_ms,
        f"int8_ms[{shape}]": int8_ms,
        f"speedup[{shape}]": fp32_ms / int8_ms,
        f"int8_error_ratio[{shape}]": error,
    }


def _floats(values: Sequence[float]) -> bytes:
    return array.array("f", values).tobytes()


def _bytes(values: Sequence[int]) -> bytes:
    return array.array("b", values).tobytes()
