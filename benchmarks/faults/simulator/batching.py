"""A server with a queue, a batcher and model instances: Triton's dynamic batcher or TorchServe's, on a real clock."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from benchmarks.faults.simulator.cache import LOCAL
from benchmarks.faults.simulator.preparing import Preparing
from benchmarks.faults.simulator.traffic import Request

if TYPE_CHECKING:
    from benchmarks.faults.simulator.plant import Plant
    from benchmarks.faults.simulator.replica import Replica

REJECTED, CANCELED, BACKEND, OTHER, UNCOUNTED = range(5)
HIT, MISS, DUPLICATE = 1, 2, 3
PAGEABLE = 8.0


class BatchServer:
    """Requests come in by `receive`, leave through the plant's front."""

    def __init__(self, plant: Plant, replica: Replica) -> None:
        self._plant, self._replica, self.knobs = plant, replica, replica.knobs
        self._queue: deque[Request] = deque()
        self._busy = 0
        self._inside: set[Request] = set()
        self._timer_s = math.inf
        self._polled_s = -math.inf
        self._last_batch = 0
        self._preparing = Preparing(plant, replica, self._enqueue)

    # ---- in ----------------------------------------------------------------------------------------------------
    def receive(self, time_s: float, request: Request) -> None:
        """A request enters the core: cache, CPU step, queue."""
        self._inside.add(request)
        self._plant.log.received.add((time_s, self._replica.index))
        if self.knobs.cache:
            self._look_up(time_s, request)
        elif self.knobs.pipeline:
            self._preparing.receive(time_s, request)
        else:
            self._enqueue(time_s, request)

    def _look_up(self, time_s: float, request: Request) -> None:
        answer = self._plant.caches[self._replica.index].look_up(time_s, self._replica.index, request.key)
        request.cache_ms = 1000 * (answer.end_s - time_s)
        request.cached = HIT if answer.found else MISS
        if answer.found:
            self._plant.at(answer.end_s, self._from_cache, request, self._replica.generation)
        else:
            # The lookup is over before the request is queued, but its time counts as waiting.
            self._plant.at(answer.end_s, self._enqueue_live, request, self._replica.generation)

    def _from_cache(self, time_s: float, request: Request, generation: int) -> None:
        if generation == self._replica.generation:
            self._leave(time_s, request, 0.02, (0.0, 0.0, 0.0))

    def _enqueue_live(self, time_s: float, request: Request, generation: int) -> None:
        if generation == self._replica.generation:
            self._enqueue(time_s, request)

    def _enqueue(self, time_s: float, request: Request) -> None:
        if self.knobs.queue_size and len(self._queue) >= self.knobs.queue_size:
            self._fail(time_s, request, UNCOUNTED, 503)
            return
        if not self._queue:
            self._polled_s = time_s
        self._queue.append(request)
        self._schedule(time_s)

    # ---- batches -----------------------------------------------------------------------------------------------
    def _schedule(self, time_s: float) -> None:
        while self._busy < self.knobs.instances and self._queue:
            if self.knobs.queue_timeout_ms or self.knobs.load_cancel_after_s:
                self._drop_expired(time_s)
            size, wake_s = self._batch_size(time_s)
            if size == 0:
                if wake_s < self._timer_s:
                    self._timer_s = wake_s
                    self._plant.at(wake_s, self._wake)
                return
            self._execute(time_s, [self._queue.popleft() for _ in range(size)])
            self._polled_s = time_s

    def _wake(self, time_s: float) -> None:
        self._timer_s = math.inf
        self._schedule(time_s)

    def _drop_expired(self, time_s: float) -> None:
        limit_s = self.knobs.queue_timeout_ms / 1000
        while self._queue and (self._queue[0].dead or (limit_s and time_s - self._queue[0].core_s > limit_s)):
            request = self._queue.popleft()
            self._fail(time_s, request, CANCELED if request.dead else REJECTED, 503)

    def _batch_size(self, time_s: float) -> tuple[int, float]:
        """How many to take from the queue's head now, or 0 and when to look again."""
        if not self._queue:
            return 0, math.inf
        if not self.knobs.batching:
            return 1, time_s
        most = int(self.knobs.max_batch)
        ready = self._alike(most)
        if self._plant.engine == "torchserve":
            due_s = max(self._polled_s, self._queue[0].core_s) + self.knobs.queue_delay_ms / 1000
            return (ready, time_s) if ready >= most or time_s >= due_s - 1e-6 else (0, due_s)
        return self._dynamic(time_s, ready, most)

    def _dynamic(self, time_s: float, ready: int, most: int) -> tuple[int, float]:
        """Triton's rules, in its order: a closed batch, the delay, the preferred size, whatever is there."""
        delay_s = self.knobs.queue_delay_ms / 1000
        preferred = int(self.knobs.preferred_batch) or most
        due_s = self._queue[0].core_s + delay_s
        closed = ready < most and ready < len(self._queue)
        if closed or (delay_s and time_s >= due_s - 1e-6):
            return ready, time_s
        if ready >= preferred:
            return preferred, time_s
        return (ready, time_s) if not delay_s else (0, due_s)

    def _alike(self, most: int) -> int:
        """Requests at the queue's head that fit into one batch."""
        if self.knobs.load_shape_kinds <= 1:
            return min(most, len(self._queue))
        shape, count = self._queue[0].shape, 0
        for request in self._queue:
            if count >= most or request.shape != shape:
                break
            count += 1
        return count

    def _execute(self, time_s: float, batch: list[Request]) -> None:
        knobs, replica = self.knobs, self._replica
        self._busy += 1
        items = len(batch)
        scale = sum(request.scale for request in batch)
        link = replica.device.copy_factor() * (PAGEABLE if self.pinned_ratio() >= 1 else 1.0)
        input_ms = (0.3 + knobs.copy_item_ms * scale) * link * replica.host.slowness
        launch_ms = knobs.exec_host_ms * replica.host.slowness
        replica.host.charge(knobs.exec_host_ms)
        work_ms = knobs.exec_fixed_ms + knobs.exec_item_ms * scale
        if items != self._last_batch and knobs.shape_switch_ms:
            work_ms += knobs.shape_switch_ms
        self._last_batch = items
        fill = min(1.0, 0.22 + 0.78 * scale / knobs.exec_full_batch)
        start_s = time_s + (input_ms + launch_ms) / 1000
        seconds = replica.device.run(start_s, work_ms * replica.slowdown(time_s), fill)
        output_ms = (0.1 + 0.1 * knobs.copy_item_ms * scale) * link
        times = (input_ms, launch_ms + 1000 * seconds, output_ms)
        end_s = time_s + sum(times) / 1000
        self._plant.at(end_s, self._executed, batch, time_s, times, replica.generation)

    def _executed(
        self, time_s: float, batch: list[Request], start_s: float, times: tuple[float, float, float], generation: int
    ) -> None:
        replica = self._replica
        if generation != replica.generation:
            return
        self._busy -= 1
        self._plant.log.executions.add((time_s, replica.index, len(batch)))
        # A memory error during the execution takes the whole batch with it.
        failed = replica.execution_fails() or start_s < replica.device.stalled_until_s - 1.5 <= time_s
        for request in batch:
            if failed:
                self._fail(time_s, request, BACKEND, 500)
            else:
                self._leave(time_s, request, 1000 * (start_s - request.core_s), times)
        self._schedule(time_s)

    # ---- out ---------------------------------------------------------------------------------------------------
    def _leave(self, time_s: float, request: Request, queue_ms: float, times: tuple[float, float, float]) -> None:
        knobs, replica = self.knobs, self._replica
        own_ms = knobs.server_overhead_ms + knobs.server_stall_ms * self._plant.random.uniform(0.5, 1.5)
        own_ms *= replica.host.slowness
        end_s = time_s + own_ms / 1000
        if request.cached == MISS:
            answer = self._plant.caches[replica.index].insert(time_s, replica.index, request.key)
            request.cache_ms += 1000 * (answer.end_s - time_s)
            own_ms += 1000 * (answer.end_s - time_s)
            end_s = max(end_s, answer.end_s)
            if answer.found and self.knobs.cache == LOCAL:
                request.cached = DUPLICATE
        total_ms, server_ms = (1000 * (time_s - since_s) + own_ms for since_s in (request.entered_s, request.core_s))
        row = (end_s, replica.index, total_ms, server_ms, queue_ms, *times, request.cached, request.cache_ms)
        self._plant.log.served.add(row)
        self._inside.discard(request)
        self._plant.front.answered(end_s, request, 200)

    def _fail(self, time_s: float, request: Request, reason: int, status: int) -> None:
        self._plant.log.failed.add((time_s, self._replica.index, reason))
        self._inside.discard(request)
        self._plant.front.answered(time_s, request, status)

    def cancel(self, time_s: float, request: Request) -> None:
        """Nothing to do at once: a cancelled request is found when its turn comes."""

    def tick(self, time_s: float) -> None:
        """Nothing comes due by the second here."""

    def lose_everything(self, _time_s: float) -> list[Request]:
        """The process has ended: what it held, in order of arrival."""
        lost = sorted(self._inside, key=lambda request: request.core_s)
        self._inside.clear()
        self._queue.clear()
        self._preparing.clear()
        self._busy, self._last_batch, self._timer_s = 0, 0, math.inf
        return lost

    def pinned_ratio(self) -> float:
        """How full the pinned memory pool is."""
        needed_mb = len(self._inside) * self.knobs.copy_item_mb * self.knobs.load_input_scale
        return min(1.0, needed_mb / self.knobs.pinned_pool_mb)

    def state(self) -> Mapping[str, float]:
        return {"pending": len(self._queue), "pinned": self.pinned_ratio(), "preparing": self._preparing.waiting()}
