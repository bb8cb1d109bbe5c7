"""What forecasts are held against: the bundled stack's Triton and model on a simulated accelerator, nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import tritonclient.grpc as triton

from benchmarks.gateway_stack import child, wait_for
from latencydoctor.errors import KnownError
from latencydoctor.stack import programs
from latencydoctor.stack.compile import to_json
from latencydoctor.stack.controller.triton import Triton
from latencydoctor.stack.layout import locate
from latencydoctor.stack.prepare import UpOptions, gather, write_files
from latencydoctor.stack.processes import remove_shared_memory
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, Settings
from latencydoctor.stack.versions import VERSIONS

STATISTICS_S = 5.0
BASE = Settings()


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions by batch size since the model was loaded: how many, and the time they took together, ms.

    `request_total_ms` is what all requests took in the server.
    """

    counts: Mapping[int, int]
    total_ms: Mapping[int, float]
    requests: int
    request_total_ms: float

    def since(self, before: Executions) -> Executions:
        """What was executed after `before`."""
        return Executions(
            {size: count - before.counts.get(size, 0) for size, count in self.counts.items()},
            {size: took - before.total_ms.get(size, 0.0) for size, took in self.total_ms.items()},
            self.requests - before.requests,
            self.request_total_ms - before.request_total_ms,
        )


@dataclass(frozen=True, slots=True)
class Patient:
    """A running Triton; `load` puts other settings into effect, in about a tenth of a second."""

    address: str

    def load(
        self,
        batching: BatchingSettings,
        *,
        levels: bool = False,
        accelerator: str = "sim:small",
        instances: int = 1,
    ) -> None:
        """These batching settings, with two priority levels or none; returns when Triton serves with them."""
        inference = InferenceSettings(batching=batching, priority_levels=levels)
        settings = replace(BASE, inference=inference, accelerator=accelerator)
        server = Triton(self.address)
        try:
            config = json.loads(to_json(settings))
            config["instance_group"][0]["count"] = instances
            server.reload(inference.model, json.dumps(config))
        finally:
            server.close()

    def executions(self) -> Executions:
        """Triton's statistics of the model."""
        with triton.InferenceServerClient(self.address) as client:
            answer = client.get_inference_statistics(BASE.inference.model, client_timeout=STATISTICS_S)
        counts: dict[int, int] = {}
        total_ms: dict[int, float] = {}
        requests, request_ns = 0, 0
        for version in answer.model_stats:
            requests += int(version.inference_stats.success.count)
            request_ns += int(version.inference_stats.success.ns)
            for batch in version.batch_stats:
                size = int(batch.batch_size)
                counts[size] = counts.get(size, 0) + int(batch.compute_infer.count)
                took = int(batch.compute_input.ns) + int(batch.compute_infer.ns) + int(batch.compute_output.ns)
                total_ms[size] = total_ms.get(size, 0.0) + took / 1e6
        return Executions(counts, total_ms, requests, request_ns / 1e6)


@contextlib.contextmanager
def patient(accelerator: str = "sim:small") -> Iterator[Patient]:
    """A Triton in a temporary folder; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="ldcast-", dir="/tmp") as folder:
        layout = locate(Path(folder))
        layout.create()
        settings = replace(BASE, accelerator=accelerator)
        inputs = gather(layout, settings, UpOptions(), os.environ, lambda *_: None)
        write_files(inputs, settings)
        _device_each(layout.models / settings.inference.model / VERSIONS["fp32"] / "model.py")
        program = next(item for item in programs.programs(inputs, settings) if item.name == "triton")
        try:
            with child(list(program.command), layout.log("triton"), os.environ | dict(program.environment)):
                wait_for(f"{inputs.endpoints.triton_http}/v2/health/ready", layout.log("triton"))
                yield Patient(inputs.endpoints.triton_grpc)
        finally:
            remove_shared_memory(layout.shm_prefix)


def _device_each(model: Path) -> None:
    """Gives each instance of the model a simulated device of its own; the bundled model's instances take turns."""
    text = model.read_text(encoding="utf-8")
    shared = 'Path(os.environ["LATENCYDOCTOR_DEVICE_LOCK"])'
    if shared not in text:
        raise KnownError("the bundled model takes its device's lock from elsewhere", hint="Adapt this benchmark.")
    own = 'Path(os.environ["LATENCYDOCTOR_DEVICE_LOCK"] + args["model_instance_name"])'
    model.write_text(text.replace(shared, own), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Load:
    """Requests offered whatever the answers do: Poisson at `rate_rps`, in groups of `group` on average at one moment.

    A share of `vip_ratio` goes to priority level 1 and the rest to level 2, where it is above 0.
    """

    rate_rps: float
    requests: int
    seed: int
    group: float = 1.0
    vip_ratio: float = 0.0
    timeout_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Answers:
    """One entry a request, in the order of their intended times; ms from then to the answer, None for no answer."""

    intended_ms: tuple[float, ...]
    took_ms: tuple[float | None, ...]
    vip: tuple[bool, ...]
    late_p99_ms: float


def offer(address: str, load: Load) -> Answers:
    """Runs the load in a process of its own, so that the reading here does not disturb its times."""
    order = {name: getattr(load, name) for name in load.__dataclass_fields__} | {"address": address}
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("forecast_load.py"))],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(run.stdout)
    return Answers(tuple(told["intended_ms"]), tuple(told["took_ms"]), tuple(told["vip"]), told["late_p99_ms"])
