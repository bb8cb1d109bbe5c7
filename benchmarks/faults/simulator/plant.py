"""Everything on one clock: traffic, the front, the replicas with their hosts and GPUs, and the events between them."""

from __future__ import annotations

import gc
import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Protocol

from benchmarks.faults.simulator.cache import Cache
from benchmarks.faults.simulator.front import Front
from benchmarks.faults.simulator.knobs import Engine
from benchmarks.faults.simulator.log import Log, Samples
from benchmarks.faults.simulator.noise import Noise
from benchmarks.faults.simulator.replica import Replica
from benchmarks.faults.simulator.sampling import SAMPLED_EVERY_S, sample
from benchmarks.faults.simulator.timeline import RANGE_S, WARM_UP_S, Change, Timeline
from benchmarks.faults.simulator.traffic import Request, Traffic


class Server(Protocol):
    """What runs in a replica: it is given requests that have come through the front-end's CPU work."""

    def receive(self, time_s: float, request: Request, /) -> None: ...

    def cancel(self, time_s: float, request: Request, /) -> None: ...

    def tick(self, time_s: float, /) -> None: ...

    def lose_everything(self, time_s: float, /) -> list[Request]: ...

    def state(self) -> Mapping[str, float]: ...


class Plant:
    """Runs the events in order of time. `server_of` builds a replica's server."""

    def __init__(
        self,
        engine: Engine,
        setup: Mapping[str, float],
        changes: Iterable[Change],
        replicas: int,
        random: Random,
        server_of: Callable[[Plant, Replica], Server],
    ) -> None:
        self.engine, self.random, self.noise = engine, random, Noise(random)
        self.timeline = Timeline(engine, setup, changes, replicas)
        self.timeline.move_to(-WARM_UP_S)
        self.knobs = self.timeline.shared
        self.log, self.samples = Log(), Samples()
        self.traffic = Traffic(self.knobs, random, float(-WARM_UP_S))
        self.caches = self._caches(replicas)
        self.replicas = [Replica(self, index, knobs) for index, knobs in enumerate(self.timeline.replicas)]
        for replica in self.replicas:
            replica.server = server_of(self, replica)
        self.front = Front(self)
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._serial = 0

    def _caches(self, replicas: int) -> list[Cache]:
        stores = [Cache(self.knobs, self.log, self.random, replicas) for _ in range(replicas)]
        # One Redis for all, or a local cache each.
        stores = stores if self.knobs.cache == 1 else [stores[0]] * replicas
        for store in stores:
            store.fill(range(int(self.knobs.load_key_count), -1, -1))
        return stores

    def at(self, time_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Have `call(time_s, *arguments)` happen at `time_s`."""
        self._serial += 1
        heapq.heappush(self._events, (time_s, self._serial, call, arguments))

    def run(self, until_s: int = RANGE_S) -> None:
        """Simulate the warm-up and the range, or its beginning."""
        # Hundreds of thousands of short-lived records, hardly any cycles: collecting would cost a fifth of the time.
        collecting = gc.isenabled()
        gc.disable()
        try:
            for second in range(-WARM_UP_S, until_s):
                self._begin(float(second))
                self._until(second + 1.0)
                self._end(second + 1.0)
        finally:
            if collecting:
                gc.enable()

    def _until(self, end_s: float) -> None:
        events, traffic = self._events, self.traffic
        while True:
            next_event_s = events[0][0] if events else math.inf
            if traffic.next_s < next_event_s:
                if traffic.next_s >= end_s:
                    return
                self._arrive()
            elif next_event_s >= end_s:
                return
            else:
                time_s, _, call, arguments = heapq.heappop(events)
                call(time_s, *arguments)

    def _arrive(self) -> None:
        request = self.traffic.take()
        if self.front.open >= self.knobs.load_max_open:
            return
        if self.engine == "vllm":
            self.traffic.with_tokens(request)
        self.front.take_in(request.first_s, request)

    def _begin(self, time_s: float) -> None:
        self.timeline.move_to(time_s)
        self.traffic.begin(time_s)
        for store in {id(store): store for store in self.caches}.values():
            store.tick(time_s)
        for replica in self.replicas:
            replica.begin(time_s)
        self.front.begin()

    def _end(self, time_s: float) -> None:
        for replica in self.replicas:
            replica.end(time_s)
        if time_s > 0 and time_s % SAMPLED_EVERY_S == 0:
            sample(self, time_s)
