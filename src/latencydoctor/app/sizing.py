"""How many replicas or instances a target needs: the forecast's capacity question, asked of what a plan rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from latencydoctor.forecast.capacity import MAX_LOAD_RATIO, Sizing, replicas_for, within
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.estimate import estimate
from latencydoctor.forecast.front import Front, front_of
from latencydoctor.forecast.queue import Batching, Scenario
from latencydoctor.forecast.situation import Situation, instances_of, scenario
from latencydoctor.forecast.whatif import of_one
from latencydoctor.model.evidence import Measure
from latencydoctor.percent import percent
from latencydoctor.remedy.scale_out import MOST_INSTANCES, Need

CLIMBS_RATIO = 1.6
"""A queue that climbs in a straight line is twice its mean at the end, one that stays is its mean all the time."""


def replicas_needed(
    measured: Mapping[str, float],
    times: Sequence[BatchTime],
    batching: Batching,
    replicas: int,
    slo_p99_ms: float,
    front: Front | None = None,
) -> Need:
    """What the queue model says, from the figures of so many replicas under this batching.

    The SLO is held to what requests take, not to what a histogram shows of it, which ends at its last bound. Without
    `front` the front end follows from the figures.
    """
    found = _scenario(measured, times, batching, replicas, front)
    return found if isinstance(found, Need) else _told(replicas_for(found, slo_p99_ms), slo_p99_ms)


def instances_needed(
    measured: Mapping[str, float],
    times: Sequence[BatchTime],
    batching: Batching,
    slo_p99_ms: float,
    front: Front | None = None,
) -> Need:
    """The same for instances, which take batches from one queue; as many as `scale_out.MOST_INSTANCES` are tried."""
    found = _scenario(measured, times, batching, 1, front)
    if isinstance(found, Need):
        return found
    at = f"at {found.traffic.rate_rps:.0f} requests/s"
    for count in range(1, MOST_INSTANCES + 1):
        several = replace(found, instances=count)
        if several.load_ratio <= MAX_LOAD_RATIO and within(estimate(several), slo_p99_ms):
            word = "instance holds" if count == 1 else "instances hold"
            load = f"each loaded to {percent(several.load_ratio, 0)}"
            return Need(count, f"{at} {count} {word} p99 below {slo_p99_ms:,.0f} ms, {load}")
    return Need(0, f"{at} not even {MOST_INSTANCES} instances hold p99 below {slo_p99_ms:,.0f} ms")


def _scenario(
    measured: Mapping[str, float],
    times: Sequence[BatchTime],
    batching: Batching,
    replicas: int,
    front: Front | None,
) -> Scenario | Need:
    """One server with the whole traffic before it, or what of it is not known."""
    rate_rps = measured.get("request_rate_rps", 0.0)
    if rate_rps <= 0:
        return Need(None, "how many are needed is not known: the arrival rate is not measured")
    instances = instances_of(measured)
    known = Situation(of_one(measured, replicas), batching, instances, replicas, tuple(times))
    found = scenario(known, rate_rps, batching)
    if isinstance(found, str):
        return Need(None, f"how many are needed is not known: {found}")
    seen = front_of(measured) if front is None else front
    return replace(found[0], outside_ms=seen.outside_ms)


def arriving(measured: Mapping[str, float], depth: Measure | None) -> tuple[Mapping[str, float], str]:
    """The figures with the rate that arrives in place of the rate that is answered, and a word on it; "" if the same.

    Some front ends count what arrives. Others count requests when they are answered: while a queue climbs steadily,
    what arrives is more by what it grows.
    """
    rate, counted = measured.get("request_rate_rps"), measured.get("arrival_rate_rps")
    if rate is not None and counted is not None:
        told = f"{rate:.0f} requests/s are answered and {counted:.0f}/s arrive." if counted > rate else ""
        return {**measured, "request_rate_rps": max(rate, counted)}, told
    if depth is None or rate is None or depth.value <= 0 or depth.worst < CLIMBS_RATIO * depth.value:
        return measured, ""
    # From where it was to twice its mean, in a straight line.
    growth_rps = 2 * (depth.value - (depth.baseline or 0.0)) / (depth.window.end_s - depth.window.start_s)
    missed = 1 - measured.get("cache_hit_ratio", 0.0)
    if growth_rps <= 0 or missed <= 0:
        return measured, ""
    whole = rate + growth_rps / missed
    told = f"{rate:.0f} requests/s are answered and the queue grows by {growth_rps:.0f}/s, so {whole:.0f}/s arrive."
    return {**measured, "request_rate_rps": whole}, told


def _told(sizing: Sizing, slo_p99_ms: float) -> Need:
    at = f"at {sizing.rate_rps:.0f} requests/s"
    if sizing.reason:
        return Need(0, f"{at} {sizing.reason}")
    word = "replica holds" if sizing.replicas == 1 else "replicas hold"
    estimate = sizing.estimate
    if estimate is None or estimate.p99_ms is None:
        return Need(sizing.replicas, f"{at} {sizing.replicas} {word} p99 below {slo_p99_ms:,.0f} ms")
    p99 = f"p99 about {estimate.p99_ms.value:,.0f} ms, each loaded to {percent(estimate.load_ratio, 0)}"
    return Need(sizing.replicas, f"{at} {sizing.replicas} {word} p99 below {slo_p99_ms:,.0f} ms: {p99}")
