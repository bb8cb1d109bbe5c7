"""The host under a server: processors with a container's quota, memory with its limit."""

from __future__ import annotations

import math

from benchmarks.faults.simulator.knobs import Knobs

HOST_CORES = 32.0
PERIODS_A_SECOND = 10


class Host:
    """Where a replica's CPU work runs, first come first served; `tick` closes a second."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.slowness = 1.0
        self.busy_ratio = self.used_cores = 0.0
        self.periods = self.throttled = self.cpu_s = self.leaked_mb = 0.0
        self._free_at_s = -math.inf
        self._demand_s = 0.0

    def cores(self) -> float:
        """Processors this container can get."""
        return max(0.02, min(self.knobs.cpu_quota_cores, HOST_CORES * (1 - self.knobs.cpu_other_share)))

    def work(self, time_s: float, core_ms: float) -> float:
        """When work of `core_ms`, shared by the server's threads, is done if it comes at `time_s`."""
        self._demand_s += core_ms / 1000
        cores = self.cores()
        start_s = max(time_s, self._free_at_s)
        self._free_at_s = start_s + core_ms / 1000 / cores
        return start_s + core_ms / 1000 / min(cores, self.knobs.cpu_threads)

    def charge(self, core_ms: float) -> None:
        """Account for work that is timed elsewhere (launching kernels)."""
        self._demand_s += core_ms / 1000

    def tick(self, time_s: float) -> None:
        """Take in the second that ended at `time_s`."""
        quota, cores = max(self.knobs.cpu_quota_cores, 0.02), self.cores()
        self.used_cores = min(self._demand_s, cores)
        self._demand_s = 0.0
        behind = self._free_at_s > time_s + 0.1
        tight = max(0.0, (self.used_cores / quota - 0.6) / 0.4)
        held_back = (0.9 if behind else 0.8 * tight**2) if cores >= quota else 0.0
        self.periods += PERIODS_A_SECOND
        self.throttled += PERIODS_A_SECOND * held_back
        self.cpu_s += self.used_cores
        self.busy_ratio = min(1.0, self.knobs.cpu_other_share + self.used_cores / HOST_CORES)
        waiting = max(0.0, (self.busy_ratio - 0.9) / 0.1)
        # A frozen container cannot launch kernels, and on a full host its threads wait for their turn.
        self.slowness = 1 / (1 - 0.8 * held_back) / (1 - 0.85 * min(1.0, waiting))
        self.leaked_mb += self.knobs.memory_leak_mb_s

    def memory_mb(self) -> float:
        """The container's working set."""
        return self.knobs.memory_used_mb + self.leaked_mb

    def out_of_memory(self) -> bool:
        return self.memory_mb() > self.knobs.memory_limit_mb

    def restarted(self, time_s: float) -> None:
        """A new process: its memory is back, its work gone."""
        self.leaked_mb = 0.0
        self._free_at_s = time_s
