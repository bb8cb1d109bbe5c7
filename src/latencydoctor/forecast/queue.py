"""What a server does to its requests at one rate: percentiles, utilisation, capacity, or that it cannot keep up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.batcher import Batching, Server
from latencydoctor.forecast.curve import ServiceCurve
from latencydoctor.forecast.histogram import shown_ms
from latencydoctor.forecast.priorities import TwoLevels

__all__ = ["Batching", "Outcome", "Scenario", "capacity_rps", "simulate"]

REQUESTS = 12_000
SEED = 20261130

SETTLING_SHARE = 0.2
"""The first requests meet an empty server, which no real window shows."""

COUNTING_ERROR = 1e-9


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that decides the latency of one server's requests.

    `traffic` is what arrives at the front: `hit_ratio` of it is answered by a cache in `hit_ms` and never gets here.
    `outside_ms` is what every request takes beside queue and execution. With `vip_ratio` above 0 the server has two
    priority levels, and that share of the requests is on the first. With `bounds_ms` percentiles are what a histogram
    with these upper bounds shows.
    """

    traffic: Traffic
    curve: ServiceCurve
    batching: Batching
    instances: int = 1
    hit_ratio: float = 0.0
    hit_ms: float = 1.0
    outside_ms: float = 0.0
    vip_ratio: float = 0.0
    bounds_ms: tuple[float, ...] = ()

    @property
    def server_rps(self) -> float:
        """Requests that reach the server."""
        return self.traffic.rate_rps * (1 - self.hit_ratio)

    @property
    def capacity_rps(self) -> float:
        """The rate at the server that can be sustained."""
        return capacity_rps(self.curve, self.batching, self.instances)

    @property
    def load_ratio(self) -> float:
        """Arrivals over what can be served; at 1 and above the queue grows without end."""
        return self.server_rps / self.capacity_rps

    def at_rate(self, rate_rps: float) -> Scenario:
        """The same at another rate."""
        return replace(self, traffic=replace(self.traffic, rate_rps=rate_rps))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Latencies of one simulated stretch, ms, ascending; `hit_ratio` of all requests took `hit_ms` instead.

    `utilisation_ratio` is the share of time that instances executed, `batch_size_mean` what an execution held.
    `vip_ms` and `standard_ms` are those of each priority level, empty without levels. `bounds_ms` are the upper bounds
    of the histogram that shows them, empty where none does.
    """

    latencies_ms: tuple[float, ...]
    utilisation_ratio: float
    batch_size_mean: float
    hit_ratio: float = 0.0
    hit_ms: float = 0.0
    vip_ms: tuple[float, ...] = field(default=(), repr=False)
    standard_ms: tuple[float, ...] = field(default=(), repr=False)
    bounds_ms: tuple[float, ...] = ()

    def percentile_ms(self, ratio: float) -> float:
        """Of all requests, those included that a cache answered, as whoever measures them will see it; exactly where
        the histogram has no bound above it."""
        return self.level_ms(self.latencies_ms, ratio)

    def exact_ms(self, ratio: float) -> float:
        """The same as each of them took, without a histogram between."""
        return self._of_all_ms(self.latencies_ms, ratio)

    def level_ms(self, latencies_ms: Sequence[float], ratio: float) -> float:
        """The same of one priority level, of whose requests the cache answers as large a share."""
        shown = shown_ms(latencies_ms, ratio, self.bounds_ms, self.hit_ratio, self.hit_ms)
        return self._of_all_ms(latencies_ms, ratio) if shown is None else shown

    def _of_all_ms(self, latencies_ms: Sequence[float], ratio: float) -> float:
        if ratio < self.hit_ratio:
            return self.hit_ms
        rest = (ratio - self.hit_ratio) / (1 - self.hit_ratio) if self.hit_ratio < 1 else 0.0
        return percentile(latencies_ms, rest)


def capacity_rps(curve: ServiceCurve, batching: Batching, instances: int = 1) -> float:
    """The rate that so many instances sustain when batches are as large as a backlog makes them."""
    size = batching.size_under_load
    return size / max(curve.batch_ms(size), COUNTING_ERROR) * 1000 * instances


def simulate(scenario: Scenario, requests: int = REQUESTS, seed: int = SEED) -> Outcome | None:
    """One stretch of so many requests after settling; None when more arrive than can be served, or none was."""
    rate_rps = scenario.server_rps
    if rate_rps <= 0 or scenario.load_ratio >= 1:
        return None
    count = round(requests / (1 - SETTLING_SHARE))
    arrivals = replace(scenario.traffic, rate_rps=rate_rps).times_ms(count, seed)
    server = _served(scenario, arrivals, seed)
    # A stretch that ends before the settling does has nothing better.
    latencies_ms = server.latencies_ms[round(count * SETTLING_SHARE) :] or server.latencies_ms
    if not latencies_ms:
        return None
    span_ms = max(server.now_ms - arrivals[0], COUNTING_ERROR)
    busy = server.busy_ms / span_ms / scenario.instances
    levels = (server.first_latencies_ms, server.other_latencies_ms) if isinstance(server, TwoLevels) else ([], [])
    return Outcome(
        latencies_ms=_ascending(latencies_ms, scenario.outside_ms),
        utilisation_ratio=min(1.0, busy),
        batch_size_mean=sum(server.sizes) / len(server.sizes),
        hit_ratio=scenario.hit_ratio,
        hit_ms=scenario.hit_ms,
        vip_ms=_ascending(levels[0][round(len(levels[0]) * SETTLING_SHARE) :], scenario.outside_ms),
        standard_ms=_ascending(levels[1][round(len(levels[1]) * SETTLING_SHARE) :], scenario.outside_ms),
        bounds_ms=scenario.bounds_ms,
    )


def _served(scenario: Scenario, arrivals: list[float], seed: int) -> Server:
    times_ms = scenario.curve.table_ms(scenario.batching.largest)
    if scenario.vip_ratio > 0 and scenario.batching.enabled:
        dice = random.Random(seed + 1)
        first = [dice.random() < scenario.vip_ratio for _ in arrivals]
        server: Server = TwoLevels(arrivals, times_ms, scenario.batching, scenario.instances, first=first)
    else:
        server = Server(arrivals, times_ms, scenario.batching, scenario.instances)
    server.run()
    return server


def percentile(ascending: Sequence[float], ratio: float) -> float:
    """The value that this share lies below."""
    return ascending[min(len(ascending) - 1, int(len(ascending) * ratio))]


def _ascending(values: list[float], outside_ms: float) -> tuple[float, ...]:
    return tuple(sorted(value + outside_ms for value in values))
