"""What lies between a server and whoever measures its requests: a cache, the way there and back, a histogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

_STAGES = ("preprocess_time_ms", "cache_time_ms", "response_time_ms")
"""Stages of a front end that times its own work; each is 0 where it has none."""

NOTHING_BEFORE: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Front:
    """The share of requests that a cache answers, what the others take beside the server (ms, on average), and the
    upper bounds of the histogram that latency is read from (ms, ascending; empty where it is not read from one).

    `between_ms` is the part of that time which passes between front end and server, None where it is not measured.
    """

    hit_ratio: float = 0.0
    outside_ms: float = 0.0
    bounds_ms: tuple[float, ...] = ()
    between_ms: float | None = None


def front_of(
    measured: Mapping[str, float], baseline: Mapping[str, float] = NOTHING_BEFORE, bounds_ms: Sequence[float] = ()
) -> Front:
    """The front end behind some figures; `baseline` are those from before an incident, as far as they are known."""
    hit_ratio = min(1.0, max(0.0, measured.get("cache_hit_ratio", 0.0)))
    return Front(hit_ratio, outside_ms(measured, baseline), tuple(bounds_ms), _between_ms(measured, baseline))


def outside_ms(measured: Mapping[str, float], baseline: Mapping[str, float] = NOTHING_BEFORE) -> float:
    """What a request takes beside the server, on average, ms; 0 where it is not known."""
    between_ms = _between_ms(measured, baseline)
    if between_ms is not None:
        return between_ms + sum(max(0.0, measured.get(stage, 0.0)) for stage in _STAGES)
    return max(0.0, measured.get("e2e_mean_ms", 0.0) - measured.get("server_time_ms", float("inf")))


def _between_ms(measured: Mapping[str, float], baseline: Mapping[str, float]) -> float | None:
    """The way to the server and back is what two observers differ by. They are not read at one moment, so while a queue
    climbs they differ by what it climbs in between: the figure from before says more.
    """
    between_ms = baseline.get("network_time_ms", measured.get("network_time_ms"))
    return None if between_ms is None else max(0.0, between_ms)
