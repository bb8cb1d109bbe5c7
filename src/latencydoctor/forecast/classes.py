"""What each priority is expected to see with two levels, also where more arrives than can be served.

Then the second level gets what the first leaves, and its time limit decides who of it is answered.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.estimate import QUICK_DRAWS, Band, band_of, drawn
from latencydoctor.forecast.front import Front
from latencydoctor.forecast.histogram import shown_ms
from latencydoctor.forecast.priorities import TwoLevels
from latencydoctor.forecast.queue import SEED, SETTLING_SHARE, Batching, Scenario, percentile
from latencydoctor.forecast.whatif import curve_of, read_as
from latencydoctor.model.remedy import Prediction
from latencydoctor.percent import percent

REQUESTS = 4_000
"""Of both levels, as many as a window has that a p99 is told for."""

FULL_VIP_LOAD = 0.95
"""With VIP requests for more than this share of the capacity, levels no longer keep them from waiting."""

MOST_REQUESTS = 100_000
"""A stretch of more takes longer to simulate than a plan may take."""

LONGEST_FILL = 4.0
"""A flood that needs more times the limit to fill the queue turns little away: it is not waited for."""

LONGEST_LIMIT_MS = 2_000.0
"""With a longer limit the end of a stretch is cut off here: little is turned away then."""

SIGNALS = (("vip_p99_ms", "ms"), ("standard_p99_ms", "ms"), ("shed_ratio", "ratio"))


@dataclass(frozen=True, slots=True)
class Classes:
    """p99 of the VIP and of the standard requests that are answered, and the share of all that is turned away."""

    vip_p99_ms: Band
    standard_p99_ms: Band
    shed_ratio: Band


def by_class(scenario: Scenario, limit_ms: float, draws: int = QUICK_DRAWS) -> Classes | str:
    """With two levels, `limit_ms` for the second one, and the scenario's VIP share; a reason without a bound."""
    if not scenario.batching.enabled:
        return "without a batcher there are no levels"
    if scenario.server_rps <= 0:
        return "no requests reach the server"
    vip_load = scenario.load_ratio * scenario.vip_ratio
    if vip_load > FULL_VIP_LOAD:
        return f"VIP requests alone are {percent(vip_load, 0)} of what can be served, so they wait for each other"
    count = _count(scenario, limit_ms)
    if count > MOST_REQUESTS:
        return f"until they are turned away {count:,} requests would come, more than are simulated"
    found = [_stretch(one, limit_ms, count, SEED + number) for number, one in enumerate(drawn(scenario, draws))]
    vip, standard, shed = zip(*found, strict=True)
    told, first = ([one for one in level if one is not None] for level in (standard, vip))
    if len(told) < len(standard):
        return "hardly a standard request would be answered"
    if len(first) < len(vip):
        return "too few VIP requests come to tell what they would see"
    low, high = min(shed), max(shed)
    # A share scatters evenly, not like a latency; what is not known of the model is a share of what is served.
    reach = (high - low) / 2 + 0.05 * (1 - scenario.hit_ratio)
    middle = sorted(shed)[len(shed) // 2]
    return Classes(band_of(first, 0), band_of(told, 0), Band(middle, max(0.0, low - reach), min(1.0, high + reach)))


def _count(scenario: Scenario, limit_ms: float) -> int:
    """Requests of a stretch: so many that a flood has filled the queue up to its time limit when it has settled."""
    least, load = round(REQUESTS / (1 - SETTLING_SHARE)), scenario.load_ratio
    if load <= 1:
        return least
    # A backlog's time in the queue grows by what the flood exceeds the capacity.
    fills_ms = limit_ms * min(load / (load - 1), LONGEST_FILL)
    return max(least, math.ceil(scenario.server_rps * fills_ms / 1000 / SETTLING_SHARE))


def _stretch(scenario: Scenario, limit_ms: float, count: int, seed: int) -> tuple[float | None, float | None, float]:
    """One stretch: p99 of each level as the front sees it, and the share of all requests there that is turned away."""
    arrivals = replace(scenario.traffic, rate_rps=scenario.server_rps).times_ms(count, seed)
    dice = random.Random(seed + 1)
    first = [dice.random() < scenario.vip_ratio for _ in arrivals]
    times_ms = scenario.curve.table_ms(scenario.batching.maximum)
    server = TwoLevels(arrivals, times_ms, scenario.batching, scenario.instances, first=first, limit_ms=limit_ms)
    server.run()
    # Whoever came at the very end had no time to be turned away.
    begin_ms, end_ms = arrivals[round(count * SETTLING_SHARE)], arrivals[-1] - min(limit_ms, LONGEST_LIMIT_MS)
    came = sum(begin_ms <= arrived <= end_ms for arrived in arrivals)
    shed = sum(begin_ms <= arrived <= end_ms for arrived in server.shed) / max(came, 1)
    vip, standard = (_p99(level, scenario) for level in (server.first_latencies_ms, server.other_latencies_ms))
    return vip, standard, shed * (1 - scenario.hit_ratio)


def _p99(latencies_ms: Sequence[float], scenario: Scenario) -> float | None:
    settled = sorted(value + scenario.outside_ms for value in latencies_ms[round(len(latencies_ms) * SETTLING_SHARE) :])
    if not settled:
        return None
    shown = shown_ms(settled, 0.99, scenario.bounds_ms, scenario.hit_ratio, scenario.hit_ms)
    if shown is not None:
        return shown
    if scenario.hit_ratio >= 0.99:
        return scenario.hit_ms
    return percentile(settled, (0.99 - scenario.hit_ratio) / (1 - scenario.hit_ratio))


@dataclass(frozen=True, slots=True)
class ClassLoad:
    """What comes to the front of one server: requests a second, and the share of them that is VIP."""

    rate_rps: float
    vip_ratio: float
    front: Front


def predict_classes(
    measured: Mapping[str, float],
    load: ClassLoad | str,
    batching: Batching,
    limit_ms: float,
    times: Sequence[BatchTime] = (),
    instances: int = 1,
) -> tuple[Prediction, ...]:
    """p99 of each priority and the share that is turned away, before (as measured) and after; None with why not.

    `load` is a reason where it is not known.
    """
    known = curve_of(measured, times)
    reason = load if isinstance(load, str) else known if isinstance(known, str) else ""
    if reason or isinstance(load, str) or isinstance(known, str):
        return _untold(measured, reason)
    curve, told = known[0], known[1] + known[0].unseen(batching.largest)
    scenario = Scenario(
        Traffic(load.rate_rps),
        curve,
        batching,
        instances,
        hit_ratio=load.front.hit_ratio,
        outside_ms=load.front.outside_ms,
        vip_ratio=load.vip_ratio,
        bounds_ms=load.front.bounds_ms,
    )
    found = by_class(scenario, limit_ms)
    if isinstance(found, str):
        return _untold(measured, found)
    method = (
        f"simulated queue of two levels at {load.rate_rps:.0f} requests/s, {percent(load.vip_ratio, 1)} of them VIP, "
        f"{told}; {percent(scenario.load_ratio, 0)} of what can be served{read_as(load.front)}"
    )
    bands = (found.vip_p99_ms, found.standard_p99_ms, found.shed_ratio)
    return tuple(
        Prediction(signal, unit, measured.get(signal), band.value, band.low, band.high, method)
        for (signal, unit), band in zip(SIGNALS, bands, strict=True)
    )


def _untold(measured: Mapping[str, float], reason: str) -> tuple[Prediction, ...]:
    return tuple(
        Prediction(signal, unit, measured.get(signal), None, None, None, f"not predicted: {reason}")
        for signal, unit in SIGNALS
    )
