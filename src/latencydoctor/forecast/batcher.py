"""Triton's dynamic batcher, step by step: which requests leave together, and when.

What decides latency under load is what happens while every instance is busy, and Triton does more then than wait:

- It prepares up to two batches for each instance ahead. With priority levels it prepares none: a batch is made when
  an instance is idle.
- A prepared batch that no instance has taken yet still grows: up to a preferred size, and by one request beyond it.
- Requests whose delay runs out meanwhile are prepared at once as they are, however few. When an instance comes free,
  prepared batches that have outlived the delay are joined into one, up to the largest batch.
- After a delay has run out the batcher sleeps until a preferred size has gathered or a prepared batch was taken.
- Without a delay a preferred size is a ceiling.

The rules are those of Triton's `DynamicBatchScheduler`, `RateLimiter` and `InstanceQueue` (releases 2.41 to 2.51).
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

PREPARED_EACH = 2
"""Batches that Triton prepares ahead for each instance."""

LOOKS_AGAIN_MS = 500.0
"""How long the batcher sleeps when nothing wakes it."""


@dataclass(frozen=True, slots=True)
class Batching:
    """The batcher's settings; `preferred` 0 means none, `wait_ms` how long the oldest request may be held."""

    enabled: bool
    preferred: int
    maximum: int
    wait_ms: float
    also_preferred: tuple[int, ...] = ()
    """Further preferred sizes, where there are several."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The preferred sizes as Triton has them: without any it prefers the largest batch."""
        found = {size for size in (self.preferred, *self.also_preferred) if 0 < size <= self.maximum}
        return tuple(sorted(found)) or (self.maximum,)

    @property
    def largest(self) -> int:
        """The largest batch that there can be."""
        return self.maximum if self.enabled else 1

    @property
    def size_under_load(self) -> int:
        """The batch that a backlog leaves in: without a wait a preferred size is a ceiling."""
        if not self.enabled:
            return 1
        return self.maximum if self.wait_ms > 0 else self.sizes[-1]


@dataclass(slots=True)
class Batch:
    """Requests that will leave together: when each arrived. `closed` once an instance has taken or looked at it."""

    members: list[float] = field(default_factory=list)
    closed: bool = False
    prepared: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings in the form in which the batcher looks at them, once for a whole run."""

    sizes: tuple[int, ...]
    largest_preferred: int
    maximum: int
    wait_ms: float


Look = tuple[int, bool, float, int]
"""How many waiting requests join the batch; whether it is full then; when to look again; how many wake it before."""


def look(held: int, waiting: int, oldest_ms: float, now_ms: float, rules: Rules) -> Look:
    """One look at the queue: `held` requests are in the batch already, `waiting` are not, since `oldest_ms`."""
    delay_ms = rules.wait_ms
    late = delay_ms > 0 and now_ms >= oldest_ms + delay_ms
    fits = min(waiting, rules.maximum - held)
    beyond = held >= rules.largest_preferred
    if not late:
        best = _preferred(held, waiting, fits, rules)
        if best:
            return best, beyond or delay_ms <= 0, math.inf, 0
    if fits == 0:
        return 0, True, math.inf, 0
    if waiting > fits or held + fits >= rules.largest_preferred:
        return fits, True, math.inf, 0
    if late or delay_ms <= 0 or (held and held not in rules.sizes):
        return fits, False, math.inf, 0
    following = next((size for size in rules.sizes if size > held + fits), rules.sizes[0])
    return 0, False, oldest_ms + delay_ms, following - held


def _preferred(held: int, waiting: int, fits: int, rules: Rules) -> int:
    """How many requests make a preferred size of the batch, 0 when none do."""
    if held >= rules.largest_preferred:
        # It is meant to close the batch here, but counts from one.
        return 1 if waiting > 1 and fits > 0 else 0
    if held + fits >= rules.largest_preferred:
        return rules.largest_preferred - held
    return max((size - held for size in rules.sizes if held < size <= held + fits), default=0)


@dataclass(slots=True)
class Server:
    """Instances behind one batcher, fed with arrival times (ms, ascending).

    `times_ms[n]` is how long an execution of n requests takes. `latencies_ms` are those of all served requests in the
    order in which they left, `sizes` the executed batches and `busy_ms` what they took together.
    """

    arrivals: Sequence[float]
    times_ms: Sequence[float]
    batching: Batching
    instances: int = 1
    now_ms: float = 0.0
    head: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    busy_ms: float = 0.0
    _free: list[float] = field(default_factory=list)
    _ready: deque[Batch] = field(default_factory=deque)
    _batch: Batch = field(default_factory=Batch)
    _wake_at: int = 0
    _rules: Rules = field(init=False)

    def __post_init__(self) -> None:
        sizes = self.batching.sizes
        self._rules = Rules(sizes, sizes[-1], self.batching.maximum, self.batching.wait_ms)
        self._free = [-math.inf] * self.instances

    def run(self) -> None:
        """Serves all arrivals."""
        if not self.batching.enabled:
            self._one_by_one()
            return
        self.now_ms = self.first_ms()
        while self._ready or self.remaining():
            if self._ready and self._free[0] <= self.now_ms:
                if self.batching.wait_ms <= 0:
                    # Each arrival was put into the prepared batch at once; see `_woken_ms`.
                    self._prepare()
                self._start()
                continue
            alarm_ms = self._prepare()
            if self._ready:
                alarm_ms = min(alarm_ms, max(self._free[0], self.now_ms))
            self.now_ms = alarm_ms

    def first_ms(self) -> float:
        """When the first request arrives."""
        return self.arrivals[0]

    def remaining(self) -> bool:
        """Whether requests are left that are in no batch."""
        return self.head < len(self.arrivals)

    def waiting(self) -> int:
        """How many have arrived and are in no batch."""
        return bisect_right(self.arrivals, self.now_ms, lo=self.head) - self.head

    def oldest_ms(self) -> float:
        """When the first of them arrived."""
        return self.arrivals[self.head]

    def arrival_ms(self, number: int) -> float:
        """When the request will arrive that makes so many (from 1) waiting."""
        place = self.head + number - 1
        return self.arrivals[place] if place < len(self.arrivals) else math.inf

    def take(self, count: int) -> list[float]:
        """The next so many, which are now in a batch."""
        members = list(self.arrivals[self.head : self.head + count])
        self.head += count
        return members

    def slot(self) -> bool:
        """Whether another batch may be prepared."""
        return len(self._ready) < PREPARED_EACH * self.instances

    def freed_ms(self) -> float:
        """When the batcher looks again while nothing more may be prepared: the end of an execution wakes it."""
        return max(self._free[0], self.now_ms)

    def idle(self) -> bool:
        """Whether an instance has nothing to do now."""
        return self._free[0] <= self.now_ms

    def served(self, members: list[float], end_ms: float) -> None:
        """A batch has left: what each of its requests took."""
        self.latencies_ms += [end_ms - arrived for arrived in members]

    def _prepare(self) -> float:
        """What the batcher does at this moment; returns when it looks again unless an instance takes a batch before."""
        while True:
            if self._batch.closed:
                self._batch, self._wake_at = Batch(), 0
            if not self.slot():
                return self.freed_ms()
            waiting = self.waiting()
            if waiting == 0:
                return min(self._woken_ms(0), self._looks_ms())
            taken, full, until_ms, wake_at = look(
                len(self._batch.members), waiting, self.oldest_ms(), self.now_ms, self._rules
            )
            if taken:
                self._batch.members += self.take(taken)
                if not self._batch.prepared:
                    self._batch.prepared = True
                    self._ready.append(self._batch)
            if full:
                self._batch, self._wake_at = Batch(), 0
            elif not taken:
                self._wake_at = wake_at
                return min(until_ms, self._woken_ms(waiting))
            if self.idle() and self._ready:
                return self.now_ms

    def _looks_ms(self) -> float:
        """When it next looks by itself and finds somebody: at a low rate it has looked thousands of times before."""
        away_ms = self.arrival_ms(1) - self.now_ms
        looks = max(1, math.ceil(away_ms / LOOKS_AGAIN_MS)) if away_ms < math.inf else 1
        return self.now_ms + looks * LOOKS_AGAIN_MS

    def _woken_ms(self, waiting: int) -> float:
        """When an arrival wakes the sleeping batcher."""
        wake_at = self._wake_at
        if self.batching.wait_ms <= 0 and self._batch.prepared:
            # Nobody sees a prepared batch grow before it is taken: what arrives until then is added in one go.
            wake_at = self._rules.largest_preferred - len(self._batch.members)
        return self.arrival_ms(max(waiting + 1, wake_at))

    def _start(self) -> None:
        """An instance takes the first prepared batch, and with it those behind it that have outlived the delay."""
        batch = self._ready.popleft()
        batch.closed = True
        delay_ms, maximum = self.batching.wait_ms, self.batching.maximum
        while self._ready and 0 < delay_ms < self.now_ms - min(self._ready[0].members) and maximum > 1:
            self._ready[0].closed = True
            if len(batch.members) + len(self._ready[0].members) > maximum:
                break
            batch.members += self._ready.popleft().members
        self._execute(batch.members)

    def _execute(self, members: list[float]) -> None:
        took_ms = self.times_ms[len(members)]
        end_ms = self.now_ms + took_ms
        heapq.heapreplace(self._free, end_ms)
        self.busy_ms += took_ms
        self.sizes.append(len(members))
        self.served(members, end_ms)

    def _one_by_one(self) -> None:
        """Without a batcher each request goes to the next free instance."""
        while self.remaining():
            self.now_ms = max(self.oldest_ms(), self._free[0], self.now_ms)
            self._execute(self.take(1))
