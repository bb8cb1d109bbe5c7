"""The CPU step of a pipeline: a model of its own with its own queue, one request at a time on each instance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.faults.simulator.traffic import Request

if TYPE_CHECKING:
    from benchmarks.faults.simulator.plant import Plant
    from benchmarks.faults.simulator.replica import Replica


class Preparing:
    """Hands a prepared request on to `then`, whose queue it enters at that moment."""

    def __init__(self, plant: Plant, replica: Replica, then: Callable[[float, Request], None]) -> None:
        self._plant, self._replica, self._then = plant, replica, then
        self._queue: deque[Request] = deque()
        self._busy = 0

    def receive(self, time_s: float, request: Request) -> None:
        self._queue.append(request)
        self._start(time_s)

    def _start(self, time_s: float) -> None:
        knobs, host = self._replica.knobs, self._replica.host
        while self._queue and self._busy < knobs.pre_instances:
            request = self._queue.popleft()
            self._busy += 1
            took_ms = knobs.pre_ms * request.scale * host.slowness * self._plant.noise.factor(0.1)
            host.charge(took_ms)
            waited_ms = 1000 * (time_s - request.core_s)
            end_s = time_s + took_ms / 1000
            self._plant.at(end_s, self._prepared, request, waited_ms, took_ms, self._replica.generation)

    def _prepared(self, time_s: float, request: Request, waited_ms: float, took_ms: float, generation: int) -> None:
        if generation != self._replica.generation:
            return
        self._busy -= 1
        self._plant.log.prepared.add((time_s, self._replica.index, waited_ms, took_ms))
        request.core_s = time_s
        self._then(time_s, request)
        self._start(time_s)

    def clear(self) -> None:
        self._queue.clear()
        self._busy = 0

    def waiting(self) -> int:
        return len(self._queue)
