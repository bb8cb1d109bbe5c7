"""The batcher with two priority levels: requests of the first go before all others, and nothing is prepared ahead.

Triton 2.51 does not notice the end of an execution of such a model by itself. It begins the next batch when a request
has arrived meanwhile, else with the next one that arrives, or half a second after it last looked: a backlog that
nothing is added to leaves in two batches a second (measured: of 100 requests at once 37 were answered in 3 s, with
70 ms for a batch of 4; with 126 arrivals a second, 13.7 batches a second were begun, of 14.3 there is time for).

Requests of the second level may have a time limit in the queue. Whoever has waited so long when a batch is made is
turned away; nobody looks between batches.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

from latencydoctor.forecast.batcher import LOOKS_AGAIN_MS, Server


@dataclass(slots=True)
class TwoLevels(Server):
    """A server whose requests have levels: `first[n]` says whether request n belongs to the first.

    `first_latencies_ms` and `other_latencies_ms` are those of each level, in the order in which they left. `shed` are
    the arrivals of those that had waited `limit_ms` on the second level and were turned away.
    """

    first: list[bool] = field(default_factory=list)
    limit_ms: float = math.inf
    shed: list[float] = field(default_factory=list)
    first_latencies_ms: list[float] = field(default_factory=list)
    other_latencies_ms: list[float] = field(default_factory=list)
    _queues: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    _heads: list[int] = field(default_factory=lambda: [0, 0])
    _levels: deque[bool] = field(default_factory=deque)

    def __post_init__(self) -> None:
        Server.__post_init__(self)
        for at_ms, is_first in zip(self.arrivals, self.first, strict=True):
            self._queues[0 if is_first else 1].append(at_ms)

    def waiting(self) -> int:
        """How many have arrived on either level and are in no batch."""
        self._turn_away()
        return sum(self._waiting(level) for level in (0, 1))

    def remaining(self) -> bool:
        """Whether requests are left while more are to come: how a backlog ends to which nothing is added is no part of
        what a window shows."""
        return Server.remaining(self) and self.now_ms <= self.arrivals[-1]

    def oldest_ms(self) -> float:
        """When the first of those arrived that the next batch could hold: the others' age does not count yet."""
        if self._waiting(0) >= self.batching.maximum:
            return self._head(0)
        return min(self._head(level) for level in (0, 1) if self._waiting(level))

    def take(self, count: int) -> list[float]:
        """The next so many: all of the first level before any other."""
        members: list[float] = []
        for level in (0, 1):
            taken = min(count - len(members), self._waiting(level))
            members += self._queues[level][self._heads[level] : self._heads[level] + taken]
            self._heads[level] += taken
            self._levels.extend([level == 0] * taken)
        self.head += len(members)
        return members

    def freed_ms(self) -> float:
        """When an instance is free and somebody has looked: an arrival since now, or the look that comes by itself."""
        free_ms = Server.freed_ms(self)
        place = bisect_right(self.arrivals, self.now_ms)
        arrival_ms = self.arrivals[place] if place < len(self.arrivals) else math.inf
        looks = max(1, math.ceil((free_ms - self.now_ms) / LOOKS_AGAIN_MS))
        return max(free_ms, min(arrival_ms, self.now_ms + looks * LOOKS_AGAIN_MS))

    def slot(self) -> bool:
        """A batch is begun only when an instance is idle."""
        return self.idle() and not self._ready

    def served(self, members: list[float], end_ms: float) -> None:
        """A batch has left: its latencies, by level."""
        for arrived in members:
            took_ms = end_ms - arrived
            self.latencies_ms.append(took_ms)
            (self.first_latencies_ms if self._levels.popleft() else self.other_latencies_ms).append(took_ms)

    def _turn_away(self) -> None:
        queue, place = self._queues[1], self._heads[1]
        while place < len(queue) and queue[place] + self.limit_ms <= self.now_ms:
            self.shed.append(queue[place])
            place += 1
        self.head += place - self._heads[1]
        self._heads[1] = place

    def _waiting(self, level: int) -> int:
        return bisect_right(self._queues[level], self.now_ms, lo=self._heads[level]) - self._heads[level]

    def _head(self, level: int) -> float:
        queue, place = self._queues[level], self._heads[level]
        return queue[place] if place < len(queue) else math.inf
