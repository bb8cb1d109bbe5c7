"""How many replicas a load needs to stay within an SLO."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from latencydoctor.forecast.estimate import QUICK_DRAWS, Estimate, estimate
from latencydoctor.forecast.queue import Scenario

SEARCH_REQUESTS = 2_000
"""A search need only be near; its answer is then estimated in full."""

MAX_LOAD_RATIO = 0.85
"""What a replica may be loaded to: the mission's bound of a healthy GPU."""

MOST_REPLICAS = 100_000

GIVE_UP_FACTOR = 4
"""So many times the replicas that carry the load, and still over the SLO: it is not the load that makes it slow."""

STEP_SHARE = 16
"""The search's first steps are this part of what carries the load."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """The answer to a capacity question: replicas of `scenario`'s server, each with its instances.

    `estimate` is of all of them together under an even share each; `one_less` is what one replica fewer is expected to
    do. With `reason`, no number of replicas is enough and `replicas` is 0.
    """

    rate_rps: float
    slo_ms: float
    replicas: int
    estimate: Estimate | None
    one_less: Estimate | None = None
    reason: str = ""


def replicas_for(scenario: Scenario, slo_ms: float, max_load_ratio: float = MAX_LOAD_RATIO) -> Sizing:
    """The fewest replicas with which p99 stays below the SLO, its interval's upper end included.

    `scenario` is one replica with the whole traffic in front of it. No replica is loaded beyond `max_load_ratio`.
    """
    rate_rps = scenario.traffic.rate_rps
    if scenario.server_rps <= 0:
        return Sizing(rate_rps, slo_ms, 1, estimate(scenario), reason="")
    fewest = max(1, math.ceil(scenario.load_ratio / max_load_ratio))
    if fewest > MOST_REPLICAS:
        return Sizing(rate_rps, slo_ms, 0, None, reason=f"more than {MOST_REPLICAS:,} replicas would be needed")
    found = _search(scenario, slo_ms, fewest)
    if found is None:
        alone = shared(scenario, fewest * GIVE_UP_FACTOR)
        told = "" if alone.p99_ms is None else f": with {fewest * GIVE_UP_FACTOR} replicas p99 is {_ms(alone)}"
        return Sizing(rate_rps, slo_ms, 0, alone, reason=f"no number of replicas keeps p99 below the SLO{told}")
    return _settled(scenario, slo_ms, found)


def shared(scenario: Scenario, replicas: int, window_requests: int | None = None, draws: int | None = None) -> Estimate:
    """What so many replicas do together when each gets an even share of the traffic."""
    traffic = scenario.traffic
    # Requests that come together are spread over the replicas.
    group = 1 + (traffic.group - 1) / replicas
    one = replace(scenario, traffic=replace(traffic, rate_rps=traffic.rate_rps / replicas, group=group))
    options = {key: value for key, value in (("window_requests", window_requests), ("draws", draws)) if value}
    found = estimate(one, **options)
    capacity = found.capacity_rps
    whole = replace(
        capacity,
        value=capacity.value * replicas,
        low=capacity.low * replicas,
        high=None if capacity.high is None else capacity.high * replicas,
    )
    unstable = found.unstable
    if found.load_ratio >= 1:
        arriving = scenario.server_rps
        unstable = f"arrivals exceed what can be served: {arriving:,.0f} requests/s and {whole.value:,.0f}"
    return replace(found, rate_rps=traffic.rate_rps, capacity_rps=whole, unstable=unstable)


def _search(scenario: Scenario, slo_ms: float, fewest: int) -> int | None:
    """The fewest that a quick estimate holds to be enough, None when more do not help."""
    below, above = fewest - 1, fewest
    step = max(1, fewest // STEP_SHARE)
    while not _enough(scenario, slo_ms, above):
        if above >= fewest * GIVE_UP_FACTOR:
            return None
        below, above = above, min(above + step, fewest * GIVE_UP_FACTOR)
        step *= 2
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if _enough(scenario, slo_ms, middle) else (middle, above)
    return above


def _settled(scenario: Scenario, slo_ms: float, replicas: int) -> Sizing:
    """The quick answer estimated in full, and a little more where that shows it to have been too low."""
    found = shared(scenario, replicas)
    one_less = shared(scenario, replicas - 1) if replicas > 1 else None
    while not within(found, slo_ms):
        replicas += max(1, replicas // 100)
        one_less, found = found, shared(scenario, replicas)
    return Sizing(scenario.traffic.rate_rps, slo_ms, replicas, found, one_less)


def _enough(scenario: Scenario, slo_ms: float, replicas: int) -> bool:
    return within(shared(scenario, replicas, SEARCH_REQUESTS, QUICK_DRAWS), slo_ms)


def within(found: Estimate, slo_ms: float) -> bool:
    """Whether p99 stays below the SLO, its interval's upper end included."""
    return found.p99_ms is not None and found.p99_ms.high is not None and found.p99_ms.high <= slo_ms


def _ms(found: Estimate) -> str:
    return "not bounded" if found.p99_ms is None else f"{found.p99_ms.value:.0f} ms"
