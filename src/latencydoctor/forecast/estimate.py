"""A forecast with its uncertainty: many short stretches, each with a curve and a rate that are as likely.

An observer sees a window, not eternity, so an interval holds what one window's percentile scatters by itself, and on
top of it how well curve, rate and model are known.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median, stdev

from latencydoctor.forecast.queue import SEED, Outcome, Scenario, capacity_rps, simulate

WINDOW_REQUESTS = 4_000
"""The window that a percentile is forecast for, where nobody says another: 40 requests above a p99."""

DRAWS = 21
QUICK_DRAWS = 7

DEVIATIONS_BELOW, DEVIATIONS_ABOVE = 2.2, 3.0
"""Standard deviations of the logarithm that 95 % of windows lie within: the upper tail is longer than a lognormal's."""

RATE_ERROR_RATIO = 0.01
"""Standard error of the rate that will arrive, beside its own chance."""

MODEL_ERROR_RATIO = 0.07
"""Widens each end: what is not simulated (a busy host, jitter of executions). From `make bench-forecast`."""

OPEN_SHARE = 0.1
"""With more than this share of unstable draws there is no upper end."""

TOLD_SHARE = 2 / 3
"""With fewer stable draws than this share there is no figure at all."""


@dataclass(frozen=True, slots=True)
class Band:
    """A figure and its interval; `high` None means that it is open: some likely parameters cannot carry the load."""

    value: float
    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a scenario is expected to do.

    `load_ratio` is arrivals over capacity, `busy_ratio` the share of time that instances execute (small batches keep
    them as busy as large ones). Without a bound, `unstable` says why and there are no percentiles. `vip_p99_ms` and
    `standard_p99_ms` are there with priority levels only. `exact_p99_ms` is p99 as requests take it, whatever a
    histogram makes of it.
    """

    rate_rps: float
    capacity_rps: Band
    load_ratio: float
    unstable: str = ""
    busy_ratio: float | None = None
    batch_size_mean: float | None = None
    p50_ms: Band | None = None
    p95_ms: Band | None = None
    p99_ms: Band | None = None
    vip_p99_ms: Band | None = None
    standard_p99_ms: Band | None = None
    exact_p99_ms: float | None = None


def estimate(scenario: Scenario, window_requests: int = WINDOW_REQUESTS, draws: int = DRAWS) -> Estimate:
    """Percentiles over a window of so many requests at the server, with their intervals."""
    capacity = capacity_band(scenario)
    plain = Estimate(scenario.traffic.rate_rps, capacity, scenario.load_ratio)
    if scenario.server_rps <= 0:
        return replace(plain, unstable="no requests arrive, so there is nothing to forecast")
    if scenario.load_ratio >= 1:
        said = f"{scenario.server_rps:,.0f} requests/s arrive and {capacity.value:,.0f} can be served"
        return replace(plain, unstable=f"arrivals exceed what can be served: {said}")
    return _summed(plain, _outcomes(scenario, window_requests, draws))


def capacity_band(scenario: Scenario) -> Band:
    """Requests/s at the server that can be sustained, as well as the curve is known at the size a backlog leaves in."""
    size = scenario.batching.size_under_load
    value = capacity_rps(scenario.curve, scenario.batching, scenario.instances)
    quicker, slower = scenario.curve.reach(size)
    return Band(value, value / slower, value / quicker)


def drawn(scenario: Scenario, draws: int) -> list[Scenario]:
    """As many scenarios that are as likely. Normal quantiles, each parameter's in its own order, so that few do."""
    quantiles = [NormalDist().inv_cdf((number + 0.5) / draws) for number in range(draws)]
    dice = random.Random(SEED)
    levels, slopes, rates, bends = (dice.sample(quantiles, draws) for _ in range(4))
    return [
        replace(scenario, curve=scenario.curve.shifted(level, slope, bend)).at_rate(
            scenario.traffic.rate_rps * (1 + rate * RATE_ERROR_RATIO)
        )
        for level, slope, rate, bend in zip(levels, slopes, rates, bends, strict=True)
    ]


def _outcomes(scenario: Scenario, window_requests: int, draws: int) -> list[Outcome | None]:
    """One stretch for each draw."""
    return [simulate(one, window_requests, SEED + number) for number, one in enumerate(drawn(scenario, draws))]


def _summed(plain: Estimate, found: Sequence[Outcome | None]) -> Estimate:
    stable = [outcome for outcome in found if outcome is not None]
    if len(stable) < TOLD_SHARE * len(found):
        return replace(plain, unstable="no bound: within what is known of it, the load cannot be told from the limit")
    unstable = len(found) - len(stable)

    def band(of: Callable[[Outcome], float]) -> Band:
        return band_of([of(outcome) for outcome in stable], unstable)

    levels = all(outcome.vip_ms and outcome.standard_ms for outcome in stable)
    return replace(
        plain,
        busy_ratio=median(outcome.utilisation_ratio for outcome in stable),
        batch_size_mean=median(outcome.batch_size_mean for outcome in stable),
        p50_ms=band(lambda outcome: outcome.percentile_ms(0.50)),
        p95_ms=band(lambda outcome: outcome.percentile_ms(0.95)),
        p99_ms=band(lambda outcome: outcome.percentile_ms(0.99)),
        vip_p99_ms=band(lambda outcome: outcome.level_ms(outcome.vip_ms, 0.99)) if levels else None,
        standard_p99_ms=band(lambda outcome: outcome.level_ms(outcome.standard_ms, 0.99)) if levels else None,
        exact_p99_ms=band(lambda outcome: outcome.exact_ms(0.99)).value,
    )


def band_of(values: Sequence[float], unstable: int) -> Band:
    """Median and interval; draws that could not be served count as above all others.

    Percentiles of windows scatter about like a lognormal.
    """
    ordered = sorted(values)
    value = ordered[min(len(ordered) - 1, (len(ordered) + unstable - 1) // 2)]
    spread = stdev(math.log(max(one, 1e-9)) for one in ordered) if len(ordered) > 1 else 0.0
    low = min(ordered[0], value / math.exp(DEVIATIONS_BELOW * spread)) * (1 - MODEL_ERROR_RATIO)
    if unstable > OPEN_SHARE * (len(ordered) + unstable):
        return Band(value, low, None)
    return Band(value, low, max(ordered[-1], value * math.exp(DEVIATIONS_ABOVE * spread)) * (1 + MODEL_ERROR_RATIO))
