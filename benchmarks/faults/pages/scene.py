"""The scrape targets of one run, and its tables and samples as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.faults.pages.tally import Steps
from benchmarks.faults.pages.target import Series, Target, scrapes
from benchmarks.faults.simulator.log import Floats, Table
from benchmarks.faults.simulator.plant import Plant
from benchmarks.faults.simulator.sampling import SAMPLED_EVERY_S
from benchmarks.faults.simulator.timeline import RANGE_S

SCRAPE_S = 15.0
JITTER_S = 0.03
DAY_S = 86_400.0
PORTS = {"triton": 8002, "vllm": 8000, "torchserve": 8082}
CONTAINER = "server"


@dataclass(slots=True)
class Scene:
    """What pages are made from. `exporters` are those that this cluster has; `dcgm-basic` is DCGM's shipped list."""

    plant: Plant
    namespace: str
    random: np.random.Generator
    exporters: frozenset[str]
    past: Mapping[str, float] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    _arrays: dict[int, dict[str, Floats]] = field(default_factory=dict)

    def rows(self, table: Table, replica: int | None = None) -> dict[str, Floats]:
        """A table's columns, of one replica if asked for."""
        arrays = self._arrays.setdefault(id(table), table.arrays())
        if replica is None:
            return arrays
        mine = arrays["replica"] == replica
        return {name: values[mine] for name, values in arrays.items()}

    def samples(self, name: str) -> Steps:
        """What was sampled under a name."""
        return Steps(self.plant.samples.array(name), SAMPLED_EVERY_S)

    def target(self, job: str, instance: str, replica: int | None = None, **labels: str) -> Target:
        """A new target; a replica's is silent while its process is down and counts anew afterwards."""
        times = self._times()
        resets: tuple[float, ...] = ()
        alive = np.ones(len(times))
        if replica is not None:
            alive = self.samples(f"{replica}.up").at(times)
            restarts = self.rows(self.plant.log.restarts, replica)["time"]
            resets = tuple(float(moment) for moment in restarts)
        # One Prometheus holds many runs, and no two targets of a Prometheus share job and instance.
        host, _, port = instance.rpartition(":")
        unique = f"{host}.{self.namespace}:{port}"
        named = {"job": job, "instance": unique, "namespace": self.namespace, **labels}
        past_s = float(self.random.uniform(0.6, 9)) * DAY_S
        made = Target(named, times, alive, past_s, resets, self.past)
        self.targets.append(made)
        return made

    def _times(self) -> Floats:
        offset_s = float(self.random.uniform(0, SCRAPE_S))
        count = int(RANGE_S / SCRAPE_S) + 1
        return scrapes(offset_s, SCRAPE_S, RANGE_S, self.random.normal(0, JITTER_S, count))

    def server(self, replica: int) -> Target:
        """The target of a replica's own metrics page."""
        port = PORTS[self.plant.engine]
        return self.target(self.plant.engine, f"10.4.0.{11 + replica}:{port}", replica, pod=pod_name(self, replica))

    def series(self) -> list[Series]:
        """Everything that Prometheus has of this run."""
        return [series for target in self.targets for series in target.series]


def pod_name(scene: Scene, replica: int) -> str:
    return f"{scene.plant.engine}-{replica}"


def gpu_uuid(scene: Scene, replica: int) -> str:
    """Unique among all runs, as GPUs are."""
    return f"GPU-{scene.namespace}-{replica}"
