"""Simulates one server with a dynamic batcher, to expect a p99 before anything is changed.

The batcher follows Triton's own rules for an idle instance: a reachable preferred size leaves at once, the whole
backlog up to the maximum once the oldest request has waited long enough, otherwise it waits. Prefetching and several
instances are not modelled. Arrivals are Poisson from a fixed seed: the same settings give the same figure.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass

from latencydoctor.forecast.curve import ServiceCurve

REQUESTS = 12_000
SEED = 20261130


@dataclass(frozen=True, slots=True)
class Batching:
    """The batcher's settings; `preferred` 0 means none, `wait_ms` how long the oldest request may be held."""

    enabled: bool
    preferred: int
    maximum: int
    wait_ms: float

    @property
    def size_under_load(self) -> int:
        """The batch that a backlog leaves in: without a wait a preferred size is a ceiling."""
        if not self.enabled:
            return 1
        return self.maximum if self.wait_ms > 0 else min(self.preferred or self.maximum, self.maximum)


def capacity_rps(curve: ServiceCurve, batching: Batching) -> float:
    """The rate that one instance sustains when batches are as large as a backlog makes them."""
    size = batching.size_under_load
    return size / curve.batch_ms(size) * 1000


def simulate_p99_ms(rate_rps: float, curve: ServiceCurve, batching: Batching, requests: int = REQUESTS) -> float | None:
    """p99 of waiting plus execution, ms; None when requests arrive faster than they can be served."""
    if rate_rps <= 0 or rate_rps >= capacity_rps(curve, batching):
        return None
    dice = random.Random(SEED)
    arrivals: list[float] = []
    at_ms = 0.0
    for _ in range(requests):
        at_ms += dice.expovariate(rate_rps / 1000)
        arrivals.append(at_ms)
    return _p99(_latencies(arrivals, curve, batching))


def _latencies(arrivals: list[float], curve: ServiceCurve, batching: Batching) -> list[float]:
    latencies: list[float] = []
    head, free_ms = 0, 0.0
    while head < len(arrivals):
        leaves_ms, size = _next_batch(arrivals, head, max(free_ms, arrivals[head]), batching)
        free_ms = leaves_ms + curve.batch_ms(size)
        latencies.extend(free_ms - at for at in arrivals[head : head + size])
        head += size
    return latencies


def _next_batch(arrivals: list[float], head: int, now_ms: float, batching: Batching) -> tuple[float, int]:
    """When the next batch leaves and how many requests are in it; `now_ms` is when the instance could take one."""
    if not batching.enabled:
        return now_ms, 1
    preferred = min(batching.preferred or batching.maximum, batching.maximum)
    late_ms = arrivals[head] + batching.wait_ms
    while True:
        waiting = bisect_right(arrivals, now_ms, lo=head) - head
        if batching.wait_ms > 0 and now_ms >= late_ms:
            return now_ms, min(waiting, batching.maximum)
        if waiting >= preferred:
            return now_ms, preferred
        if batching.wait_ms <= 0:
            return now_ms, waiting
        following = arrivals[head + waiting] if head + waiting < len(arrivals) else late_ms
        now_ms = min(late_ms, following)


def _p99(values: list[float]) -> float:
    # The first fifth is the empty start, which no real window shows.
    steady = sorted(values[len(values) // 5 :])
    return steady[min(len(steady) - 1, int(len(steady) * 0.99))]
