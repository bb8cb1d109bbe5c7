"""A simulated run as Prometheus would hold it, and the facts that a server's own API would add."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from random import Random
from typing import TextIO

import numpy as np

from benchmarks.faults.case_files import Case
from benchmarks.faults.pages import front, infrastructure, torchserve, triton, vllm
from benchmarks.faults.pages.scene import Scene
from benchmarks.faults.pages.target import Series
from benchmarks.faults.simulator.batching import BatchServer
from benchmarks.faults.simulator.continuous import LlmServer
from benchmarks.faults.simulator.knobs import Engine
from benchmarks.faults.simulator.plant import Plant
from benchmarks.faults.simulator.timeline import RANGE_S
from benchmarks.faults.truth import is_incident

END_S = 1_796_000_400
"""When every run ends, in seconds since 1970. The range lies inside one of Prometheus' blocks of two hours."""

PAGES = {"triton": triton, "vllm": vllm, "torchserve": torchserve}
MODELS = {"triton": triton.MODEL, "vllm": vllm.MODEL, "torchserve": torchserve.MODEL}


@dataclass(frozen=True, slots=True)
class Run:
    """One case on one engine with one seed. `namespace` labels every series; times of `series` count from `start_s`.

    `model` is the one that clients ask: in a pipeline the ensemble, beside whose series its steps have theirs.
    `facts` are what only the server's API tells, under the names of the doctor's signals; `incident` is the truth.
    """

    case: Case
    engine: Engine
    seed: int
    namespace: str
    model: str
    facts: Mapping[str, float]
    incident: bool
    series: tuple[Series, ...]
    start_s: float = float(END_S - RANGE_S)
    end_s: float = float(END_S)

    def openmetrics(self) -> str:
        """All samples in the text that promtool reads, without the closing `# EOF`."""
        return "".join(self._lines())

    def write(self, stream: TextIO) -> None:
        """The same, to a file."""
        stream.writelines(self._lines())

    def _lines(self) -> Iterable[str]:
        # Series of one target share their times: they are written out once.
        written: dict[int, list[str]] = {}
        for series in self.series:
            key = id(series.times)
            if key not in written:
                written[key] = [f" {self.start_s + time_s:.3f}\n" for time_s in series.times.tolist()]
            head = f"{series.name}{{{series.labels}}} "
            values = series.values.tolist()
            yield "".join([f"{head}{value!r}{time}" for value, time in zip(values, written[key], strict=True)])


def plant_of(case: Case, engine: Engine, seed: int) -> Plant:
    """The case's plant, not yet run. Equal arguments give an equal run."""
    random = Random(zlib.crc32(f"{case.id}/{engine}/{seed}".encode()))
    server_of = LlmServer if engine == "vllm" else BatchServer
    return Plant(engine, case.setup[engine], case.changes[engine], case.replicas, random, server_of)


def simulate(case: Case, engine: Engine, seed: int) -> Run:
    """Run one case; about a second of work."""
    plant = plant_of(case, engine, seed)
    plant.run()
    namespace = f"{case.id}-{engine}-s{seed}"
    generator = np.random.default_rng(zlib.crc32(namespace.encode()))
    scene = Scene(plant, namespace, generator, case.exporters, case.past[engine])
    PAGES[engine].write(scene)
    front.write(scene)
    infrastructure.write(scene)
    facts = _facts(plant)
    model = triton.PIPELINE if engine == "triton" and plant.knobs.pipeline else MODELS[engine]
    return Run(case, engine, seed, namespace, model, facts, is_incident(plant.log), tuple(scene.series()))


def _facts(plant: Plant) -> dict[str, float]:
    """What Triton's configuration and statistics APIs, or TorchServe's management API, would say at the end."""
    if plant.engine == "vllm":
        return {}
    knobs = plant.timeline.replicas[0]
    facts = {
        "config_max_batch_size": knobs.max_batch,
        "config_queue_delay_ms": knobs.queue_delay_ms,
        "config_dynamic_batching": float(bool(knobs.batching)),
        "config_instance_count": knobs.instances,
    }
    if plant.engine == "torchserve":
        # Its only way not to batch is a batchSize of 1.
        size = knobs.max_batch if knobs.batching else 1.0
        more = {"config_max_batch_size": size, "config_queue_size": knobs.queue_size}
        more |= {"config_dynamic_batching": float(size > 1), "instances_ready": knobs.instances}
        return facts | more
    items = plant.log.executions.arrays()["items"]
    facts["config_preferred_batch_size"] = knobs.preferred_batch
    if len(items):
        facts["executed_batch_size_p50"] = float(np.median(items))
    return facts


def without_series(run: Run) -> Run:
    """The run's facts and truth alone, light enough to hand from one process to another."""
    return replace(run, series=())


def simulate_all(jobs: Iterable[tuple[Case, Engine, int]], processes: int | None = None) -> list[Run]:
    """Many runs, in order, on all processors unless `processes` says otherwise."""
    listed = list(jobs)
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        return list(pool.map(simulate, *zip(*listed, strict=True), chunksize=2)) if listed else []
