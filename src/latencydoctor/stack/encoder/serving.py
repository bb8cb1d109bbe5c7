"""What the model in Triton does with a batch, apart from Triton: encode, find the answer, keep the device's time.

The model file is a thin shell around `FaqServing`; it hands in the way to make a metric, because only Triton's embedded
interpreter has one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from latencydoctor.stack import profile as profiles
from latencydoctor.stack.encoder import encodings as stored
from latencydoctor.stack.encoder.device import SimulatedDevice, refuse_if_too_slow
from latencydoctor.stack.encoder.onnx_model import Floats, Ints, OnnxEncoder

Response = TypeVar("Response")

Answers = tuple[npt.NDArray[np.int32], Floats]

COUNTERS = {
    "sim_accelerator_busy_seconds_total": "Time the simulated device was busy",
    "sim_accelerator_instances_busy_seconds_total": "Time model instances were executing, host overhead included",
    "sim_accelerator_executions_total": "Batches the simulated device executed",
    "sim_accelerator_overruns_total": "Executions that took longer than the profile's time",
}
GAUGES = {
    "sim_accelerator_memory_used_bytes": "Simulated memory in use",
    "sim_accelerator_memory_total_bytes": "Simulated memory in all",
    "sim_accelerator_clock_mhz": "Clock the simulated device runs at",
    "sim_accelerator_max_clock_mhz": "Highest clock of the simulated device",
    "sim_accelerator_throttled": "1 while the simulated device runs below its highest clock",
}


SHOW_AGAIN_S = 1.0
"""How often gauges are set that have not changed: versions of a model share them, and the last one to load set them."""


class Metric(Protocol):
    """One series on Triton's metrics page."""

    def increment(self, value: float) -> None:
        """Adds to a counter."""
        ...

    def set(self, value: float) -> None:
        """Sets a gauge."""
        ...


class MetricMaker(Protocol):
    """Makes a series: its name, its help text, whether it is a counter, its labels."""

    def __call__(self, name: str, text: str, counter: bool, labels: dict[str, str]) -> Metric: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instance of the model finds what it needs, handed over in the environment of Triton."""

    model: Path
    encodings: Path
    device_lock: Path
    device_clock: Path


class FaqServing:
    """One instance of the model: answers batches on the CPU, or on a simulated device."""

    def __init__(
        self,
        accelerator: str,
        batch_sizes: tuple[int, ...],
        place: Place,
        make_metric: MetricMaker,
        precision: str = "fp32",
    ) -> None:
        """Loads the model. KnownError when the simulated device is faster than this machine can compute, or its times
        with this precision are not known."""
        self._encodings = stored.load(place.encodings)
        self._device: SimulatedDevice | None = None
        self._shown: tuple[float, float] = (0, 0)
        self._shown_at_s = 0.0
        self._encode: Callable[[Ints, Ints], Floats]
        if accelerator.startswith("sim:"):
            profile = profiles.load(accelerator.removeprefix("sim:")).at(precision)
            # The model is needed for unknown questions only: a load of new settings need not wait for it.
            later = ThreadPoolExecutor(1).submit(OnnxEncoder, place.model)

            def encode_unknown(ids: Ints, mask: Ints) -> Floats:
                return later.result()(ids, mask)

            self._encode = stored.LookupEncoder(self._encodings, encode_unknown)
            refuse_if_too_slow(profile, batch_sizes, self._measure_s)
            self._device = SimulatedDevice(profile, place.device_lock, place.device_clock)
            self._metrics = _device_metrics(self._device, make_metric)
            self._show(self._device)
        else:
            self._encode = OnnxEncoder(place.model)

    def __call__(self, ids: Ints, mask: Ints, respond: Callable[[Answers], Response]) -> Response:
        """What `respond` makes of the answer numbers [n] and scores [n] of a batch.

        Making the response counts as part of the execution, so that its cost does not come on top of the simulated
        time. DeviceMemoryError when the batch does not fit the device.
        """
        device = self._device
        if device is None:
            return respond(self._compute(ids, mask))

        def work() -> Response:
            response = respond(self._compute(ids, mask))
            self._count(device, len(ids))
            return response

        done = device.execute(len(ids), work)
        if done.overrun:
            self._metrics["sim_accelerator_overruns_total"].increment(1)
        return done.answer

    def _count(self, device: SimulatedDevice, items: int) -> None:
        """Tells Triton what the execution costs; three calls between processes, so made while the device is busy."""
        profile = device.profile
        self._metrics["sim_accelerator_busy_seconds_total"].increment(profile.device_ms(items) / 1000)
        self._metrics["sim_accelerator_instances_busy_seconds_total"].increment(profile.execution_ms(items) / 1000)
        self._metrics["sim_accelerator_executions_total"].increment(1)
        changed = (device.memory_bytes, profile.clock_mhz) != self._shown
        if changed or time.monotonic() - self._shown_at_s > SHOW_AGAIN_S:
            self._show(device)

    def _show(self, device: SimulatedDevice) -> None:
        """The gauges, which are set when they change and now and then."""
        self._shown_at_s = time.monotonic()
        self._shown = (device.memory_bytes, device.profile.clock_mhz)
        self._metrics["sim_accelerator_memory_used_bytes"].set(device.memory_bytes)
        self._metrics["sim_accelerator_clock_mhz"].set(device.profile.clock_mhz)
        self._metrics["sim_accelerator_throttled"].set(float(device.profile.throttled))

    def _compute(self, ids: Ints, mask: Ints) -> Answers:
        return self._encodings.nearest(self._encode(ids, mask))

    def _measure_s(self, items: int) -> float:
        """Median of three computations of a batch of known questions."""
        ids = np.resize(self._encodings.known_ids, (items, self._encodings.known_ids.shape[1]))
        mask = (ids != 0).astype(np.int64)
        took = []
        for _ in range(3):
            start = time.perf_counter()
            self._compute(ids, mask)
            took.append(time.perf_counter() - start)
        return sorted(took)[1]


def _device_metrics(device: SimulatedDevice, make_metric: MetricMaker) -> dict[str, Metric]:
    labels = {"profile": device.profile.name}
    metrics = {name: make_metric(name, text, True, labels) for name, text in COUNTERS.items()}
    gauges = {name: make_metric(name, text, False, labels) for name, text in GAUGES.items()}
    gauges["sim_accelerator_memory_total_bytes"].set(device.profile.memory_total_bytes)
    gauges["sim_accelerator_max_clock_mhz"].set(device.profile.max_clock_mhz)
    return metrics | gauges
