"""A load that looks like serving: an encoder, by PyTorch where it reaches the GPU, else by our own kernels."""

from __future__ import annotations

import array
import ctypes
import importlib
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from scripts.gpu.cuda_driver import CudaDevice
from scripts.gpu.outcome import Skipped

LAYERS = 6
WIDTH = 384
WIDE = 1536
HEADS = 12
TOKENS = 16
"""The shape of a small sentence encoder (MiniLM-L6), and the length of a short question."""

SHAPES = ((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (WIDE, WIDTH), (WIDTH, WIDE))
"""Columns and depth of a layer's products: queries with keys and values, projection, and the two wide ones."""


class Workload(Protocol):
    """An encoder on the GPU."""

    label: str
    """What it is, for the origin of a profile."""

    def prepare(self, batch: int) -> Callable[[], None]:
        """What executes a batch of that many items and waits for its end; ends what was prepared before."""
        ...

    def bind(self) -> None:
        """Make it usable in the calling thread."""
        ...

    def used_bytes(self) -> int:
        """Memory of the device in use, by whomever."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class DriverEncoder:
    """The layers' products with the plain kernels of `kernels.cu`; no attention, no runtime."""

    label = f"plain FP32 products of an encoder of {LAYERS} layers {WIDTH} wide through the driver"

    def __init__(self, device: CudaDevice | None = None, layers: int = LAYERS) -> None:
        self._device = (device or CudaDevice()).open()
        self._layers = layers
        self._kernel = self._device.kernel("product_fp32")
        self._weights = [self._device.put(_numbers(columns * depth)) for columns, depth in SHAPES * layers]
        self._buffers: tuple[ctypes.c_uint64, ...] = ()

    def prepare(self, batch: int) -> Callable[[], None]:
        rows = batch * TOKENS
        for buffer in self._buffers:
            self._device.free(buffer)
        source, target = self._device.put(_numbers(rows * WIDE)), self._device.allocate(4 * rows * WIDE)
        self._buffers = (source, target)

        def execute() -> None:
            for weight, (columns, depth) in zip(self._weights, SHAPES * self._layers, strict=True):
                self._device.launch(self._kernel, (source, weight, target), (rows, columns, depth))
            self._device.wait()

        return execute

    def bind(self) -> None:
        self._device.bind()

    def used_bytes(self) -> int:
        free, total = self._device.free_and_total_bytes()
        return total - free

    def close(self) -> None:
        self._device.close()


class TorchEncoder:
    """PyTorch's own encoder layers in FP32."""

    def __init__(self, device: str = "cuda", layers: int = LAYERS) -> None:
        torch = cuda_torch() if device == "cuda" else importlib.import_module("torch")
        self._torch, self._device = torch, device
        self.label = f"FP32 encoder of {layers} layers {WIDTH} wide in PyTorch {torch.__version__}"
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, WIDE, batch_first=True)
        self._model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval().to(device)

    def prepare(self, batch: int) -> Callable[[], None]:
        torch = self._torch
        items = torch.randn(batch, TOKENS, WIDTH, device=self._device)

        def execute() -> None:
            with torch.inference_mode():
                # The copy to the host waits for the device, as a server that answers does.
                self._model(items)[:, 0].cpu()

        return execute

    def bind(self) -> None:
        pass

    def used_bytes(self) -> int:
        free, total = self._torch.cuda.mem_get_info()
        return int(total - free)

    def close(self) -> None:
        del self._model


def cuda_torch() -> Any:
    """PyTorch, where it is installed and reaches a GPU; Skipped says which of the two is missing."""
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        raise Skipped(f"no PyTorch: {error}") from None
    if not torch.cuda.is_available():
        raise Skipped("PyTorch does not reach a GPU")
    return torch


def best() -> Workload:
    """PyTorch's encoder where it can run, else the driver's; Skipped without a driver or GPU."""
    try:
        return TorchEncoder()
    except Skipped:
        return DriverEncoder()


@contextmanager
def running(workload: Workload, batch: int) -> Iterator[Callable[[], int]]:
    """Keep the device busy with batches meanwhile; gives a count of those executed. A failure of the load is raised."""
    stop, executed, failures = threading.Event(), [0], list[BaseException]()
    execute = workload.prepare(batch)

    def repeat() -> None:
        try:
            workload.bind()
            while not stop.is_set():
                execute()
                executed[0] += 1
        except Exception as error:  # noqa: BLE001 - a thread's failure is the caller's: raised below
            failures.append(error)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield lambda: executed[0]
    finally:
        stop.set()
        thread.join(timeout=30)
        if failures:
            raise failures[0]


def _numbers(count: int) -> bytes:
    """FP32 numbers between -1 and 1: a short run of random ones, repeated."""
    source = random.Random(count)
    some = array.array("f", (source.uniform(-1, 1) for _ in range(min(count, 997))))
    return (some * (count // len(some) + 1)).tobytes()[: 4 * count]
