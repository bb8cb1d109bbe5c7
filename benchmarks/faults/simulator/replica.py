"""One replica: host, GPU and the life of the process between restarts, loads and failing probes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.faults.simulator.device import Device
from benchmarks.faults.simulator.host import Host
from benchmarks.faults.simulator.knobs import Knobs
from benchmarks.faults.simulator.traffic import Request

if TYPE_CHECKING:
    from benchmarks.faults.simulator.plant import Plant, Server


class Replica:
    """`up` is whether the process answers, `ready` whether the front sends it traffic."""

    server: Server

    def __init__(self, plant: Plant, index: int, knobs: Knobs) -> None:
        self.plant, self.index, self.knobs = plant, index, knobs
        self.host, self.device = Host(knobs), Device(knobs, plant.random)
        self.up = self.ready = True
        self.generation = 0
        self.started_s = -90_000.0
        self.restarts = self.kills = 0
        self.load_seconds = 11.0 + plant.random.random()
        self.executions_left_cold = 0
        self._up_at_s = self._ready_at_s = -math.inf
        self._loading_until_s = -math.inf
        self._next_restart_s = self._next_load_s = self._next_unready_s = math.inf

    # ---- seconds -----------------------------------------------------------------------------------------------
    def begin(self, time_s: float) -> None:
        """Let come due what happens to a process again and again."""
        knobs = self.knobs
        # Replicas take turns, half a period apart.
        apart = self.index / max(1, len(self.plant.replicas))
        self._next_restart_s = self._due(time_s, self._next_restart_s, knobs.restart_every_s, apart)
        self._next_load_s = self._due(time_s, self._next_load_s, knobs.load_model_every_s, apart)
        self._next_unready_s = self._due(time_s, self._next_unready_s, knobs.unready_every_s, apart)
        if not self.up and time_s >= self._up_at_s:
            self._come_up(time_s)
        if time_s >= self._next_restart_s or self.host.out_of_memory():
            self.restart(time_s, killed=self.host.out_of_memory())
            self._next_restart_s += knobs.restart_every_s
        if time_s >= self._next_load_s:
            self._load(time_s)
        if time_s >= self._next_unready_s:
            self._ready_at_s = time_s + knobs.unready_for_s
            self._next_unready_s += knobs.unready_every_s
        self.ready = self.up and time_s >= self._ready_at_s

    @staticmethod
    def _due(time_s: float, due_s: float, every_s: float, apart: float) -> float:
        """When something that happens every `every_s` is next due; for good never where that is 0."""
        if every_s <= 0:
            return math.inf
        return time_s + apart * every_s if due_s == math.inf else due_s

    def end(self, time_s: float) -> None:
        self.host.tick(time_s)
        self.device.tick(time_s)
        self.server.tick(time_s)

    def restart(self, time_s: float, killed: bool) -> None:
        """End the process: what it held is lost, and it is cold when it comes back."""
        self.generation += 1
        self.restarts += 1
        self.kills += killed
        self.plant.log.restarts.add((time_s, self.index, float(killed)))
        self.host.restarted(time_s)
        self.device.leaked_mb = 0.0
        self.up = False
        self._up_at_s = time_s + self.knobs.restart_down_s
        for request in self.server.lose_everything(time_s):
            self.plant.front.answered(time_s, request, 502)

    def _come_up(self, time_s: float) -> None:
        self.up = True
        self.started_s = time_s
        self.executions_left_cold = int(self.knobs.cold_executions)
        self.load_seconds = 0.6 * self.knobs.restart_down_s * self.plant.random.uniform(0.9, 1.1)

    def _load(self, time_s: float) -> None:
        self._loading_until_s = time_s + self.knobs.load_model_s * self.plant.random.uniform(0.85, 1.15)
        self._next_load_s += self.knobs.load_model_every_s
        self.plant.at(self._loading_until_s, self._loaded, self._loading_until_s - time_s)

    def _loaded(self, time_s: float, seconds: float) -> None:
        self.load_seconds = seconds
        self.executions_left_cold = max(self.executions_left_cold, int(self.knobs.cold_executions / 3))
        self.plant.log.model_loads.add((time_s, self.index, seconds))

    # ---- requests ----------------------------------------------------------------------------------------------
    def arrive(self, time_s: float, request: Request) -> None:
        """A request reaches the process's socket at `time_s`."""
        if not self.up:
            self.plant.front.answered(time_s, request, 502)
            return
        knobs = self.knobs
        scale = request.scale if self.plant.engine != "vllm" else 1.0
        done_s = self.host.work(time_s, knobs.cpu_request_ms * scale)
        if time_s < self._loading_until_s and self.plant.random.random() < knobs.load_model_blocks / knobs.http_threads:
            done_s = max(done_s, self._loading_until_s)
        self.plant.at(done_s, self._enter, request, self.generation)

    def _enter(self, time_s: float, request: Request, generation: int) -> None:
        if generation != self.generation:
            self.plant.front.answered(time_s, request, 502)
        elif request.wrong:
            self.plant.log.failed.add((time_s, self.index, 5))
            self.plant.front.answered(time_s, request, 400)
        else:
            request.entered_s = request.core_s = time_s
            self.server.receive(time_s, request)

    def slowdown(self, time_s: float) -> float:
        """How much slower an execution is that starts now: cold, during a load, short of device memory, random."""
        factor = self.plant.noise.factor(self.knobs.exec_noise_ratio)
        if self.executions_left_cold > 0:
            self.executions_left_cold -= 1
            done = 1 - self.executions_left_cold / max(1.0, self.knobs.cold_executions)
            factor *= 1 + (self.knobs.cold_slowdown - 1) * math.exp(-3 * done)
        if time_s < self._loading_until_s:
            factor *= self.knobs.load_model_slowdown
        return factor * 1.9 if self.device.starved else factor

    def execution_fails(self) -> bool:
        """Whether the next execution ends in an error."""
        knobs, draw = self.knobs, self.plant.random.random()
        if knobs.gpu_lost:
            return True
        return draw < knobs.server_fault_ratio + (knobs.gpu_xid_fail_ratio if knobs.gpu_xid else 0.0)
