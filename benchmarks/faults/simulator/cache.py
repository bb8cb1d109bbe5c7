"""A response cache: a store with room for so many entries, and, for Redis, the time a command takes on its way."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from random import Random

from benchmarks.faults.simulator.knobs import Knobs
from benchmarks.faults.simulator.log import Log

NONE, LOCAL, REDIS = 0, 1, 2
HIT, MISS, NEW, AGAIN, REFUSED, EVICTED = range(6)
VALUE_MB = 0.004
FORK_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a lookup or an insertion came to, and when."""

    found: bool
    end_s: float


class Cache:
    """One store: the only Redis of all replicas, or the local cache of one server."""

    def __init__(self, knobs: Knobs, log: Log, random: Random, replicas: int) -> None:
        self.knobs, self._log, self._random = knobs, log, random
        self.entries: OrderedDict[int, None] = OrderedDict()
        self.evictions = self.hits = self.misses = 0
        self.started_s = -86_400.0
        self._server_free_s = self._flush_at_s = -1000.0
        self._pools = [[-1000.0] for _ in range(replicas)]
        self._forked_until_s = -1000.0

    def fill(self, keys: range) -> None:
        """What a long healthy past has left in it; the last are the most recently used."""
        self.entries.update(dict.fromkeys(keys[-int(self.knobs.cache_entries) :]))

    def tick(self, time_s: float) -> None:
        """Flush, restart or stand still where the knobs say so."""
        knobs = self.knobs
        if knobs.cache_flush_every_s and time_s >= self._flush_at_s:
            self.entries.clear()
            self._flush_at_s = time_s + knobs.cache_flush_every_s
            self.started_s = time_s if knobs.cache_restarts else self.started_s
        if knobs.cache_fork_ms and time_s % FORK_EVERY_S < 1:
            self._forked_until_s = time_s + knobs.cache_fork_ms / 1000
        for pool in self._pools:
            while len(pool) < knobs.cache_pool:
                pool.append(time_s)
            del pool[max(1, int(knobs.cache_pool)) :]

    def look_up(self, time_s: float, replica: int, key: int) -> Answer:
        """One HGETALL, or a look into the server's own memory."""
        if self.knobs.cache == LOCAL:
            found = key in self.entries
            end_s = time_s + 0.00002
        else:
            found = not self.knobs.cache_down and key in self.entries
            end_s = self._command(time_s, replica, HIT if found else MISS)
        if found:
            self.entries.move_to_end(key)
            self.hits += 1
        else:
            self.misses += 1
        return Answer(found, end_s)

    def insert(self, time_s: float, replica: int, key: int) -> Answer:
        """Keep an answer. `found` means that it was there already."""
        there = key in self.entries
        refused = not there and len(self.entries) >= self.knobs.cache_entries and not self.knobs.cache_evicts
        if self.knobs.cache_down:
            return Answer(False, time_s + 0.0005)
        if not refused:
            self.entries[key] = None
            self.entries.move_to_end(key)
            self._make_room(time_s)
        if self.knobs.cache == LOCAL:
            return Answer(there, time_s + 0.00002)
        return Answer(there, self._command(time_s, replica, REFUSED if refused else AGAIN if there else NEW))

    def _make_room(self, time_s: float) -> None:
        while len(self.entries) > self.knobs.cache_entries:
            self.entries.popitem(last=False)
            self.evictions += 1
            if self.knobs.cache == REDIS:
                self._log.redis.add((time_s, EVICTED, 0.0))

    def _command(self, time_s: float, replica: int, kind: int) -> float:
        """Wait for a connection, travel, wait for the single-threaded server, travel back."""
        if self.knobs.cache_down:
            return time_s + 0.0005
        pool = self._pools[replica]
        which = pool.index(min(pool))
        network_s = self.knobs.cache_network_ms / 2000 * self._random.uniform(0.7, 1.6)
        work_ms = self.knobs.cache_command_ms * self._random.uniform(0.6, 1.5)
        there_s = max(time_s, pool[which]) + network_s
        start_s = max(there_s, self._server_free_s, self._forked_until_s if self._forked_until_s > there_s else 0.0)
        self._server_free_s = start_s + work_ms / 1000
        pool[which] = self._server_free_s + network_s
        self._log.redis.add((self._server_free_s, kind, work_ms))
        return pool[which]

    def used_ratio(self) -> float:
        return min(1.0, len(self.entries) / self.knobs.cache_entries)
