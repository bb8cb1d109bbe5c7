"""The series the gateway exports; their names are the stack's public surface."""

from __future__ import annotations

from collections.abc import Callable

from latencydoctor.stack.gateway.metrics import Counter, Histogram, Registry
from latencydoctor.stack.gateway.refusals import SHED_REASONS

REQUEST_BOUNDS_S = (
    0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.055, 0.06, 0.067, 0.075, 0.082, 0.09,
    0.1, 0.11, 0.12, 0.135, 0.15, 0.165, 0.18, 0.2, 0.22, 0.24, 0.27, 0.3, 0.33, 0.36, 0.4, 0.45, 0.5, 0.55, 0.6, 0.67,
    0.75, 0.82, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 5, 7.5, 10,
)  # fmt: skip
"""From 50 ms to the SLO and a half a tenth apart: a percentile is read by a line between two bounds, and requests that
leave in batches lie close together, wherever in between. With bounds at 150 and 200 ms a p99 of 163 ms read as 194."""
STAGE_BOUNDS_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1, 2, 5, 10)

STAGES = ("cache", "preprocess", "inference", "response")
ARMS = ("stable", "canary")
PRIORITIES = ("standard", "vip")


class GatewaySeries:
    """Every counter and histogram of the gateway, bound to its labels beforehand so that counting is one call."""

    def __init__(self) -> None:
        self.registry = Registry()
        counter = self.registry.counter
        self._requests: dict[tuple[int, str, str, bool], Counter] = {}
        self.durations: dict[tuple[str, str], Histogram] = {
            (arm, priority): self.registry.histogram(
                "gateway_request_duration_seconds",
                "Time from the arrival of an accepted question to its answer or its failure.",
                REQUEST_BOUNDS_S,
                arm=arm,
                priority=priority,
            )
            for arm in ARMS
            for priority in PRIORITIES
        }
        self.stages: dict[str, Histogram] = {
            stage: self.registry.histogram(
                "gateway_stage_duration_seconds", "Time by stage of a question.", STAGE_BOUNDS_S, stage=stage
            )
            for stage in STAGES
        }
        self.cache_hits = counter("gateway_cache_hits_total", "Questions answered from the cache.")
        self.cache_misses = counter("gateway_cache_misses_total", "Questions the cache had no answer to.")
        self.cache_errors = counter("gateway_cache_errors_total", "Cache operations that failed or were too slow.")
        self.joined = counter("gateway_single_flight_joined_total", "Questions that waited for another's inference.")
        self.arrived = {
            priority: counter("gateway_arrived_total", "Questions that came, counted at once.", priority=priority)
            for priority in PRIORITIES
        }
        self.shed = {(one, reason): self._shed(one, reason) for one in PRIORITIES for reason in SHED_REASONS}
        self.events: dict[str, Counter] = {}
        for priority in PRIORITIES:
            self.request(200, priority, "stable", cached=False)

    def request(self, status: int, priority: str, arm: str, *, cached: bool) -> Counter:
        """The counter of requests that ended so."""
        key = (status, priority, arm, cached)
        found = self._requests.get(key)
        if found is None:
            found = self._requests[key] = self.registry.counter(
                "gateway_requests_total",
                "Requests by outcome.",
                status=str(status),
                priority=priority,
                arm=arm,
                cached="true" if cached else "false",
            )
        return found

    def _shed(self, priority: str, reason: str) -> Counter:
        meaning = "Questions turned away because there was too much to do."
        return self.registry.counter("gateway_shed_total", meaning, priority=priority, reason=reason)

    def event(self, name: str) -> Counter:
        """The counter of log events of that name; names come from the code, never from a request."""
        found = self.events.get(name)
        if found is None:
            found = self.events[name] = self.registry.counter(
                "gateway_events_total", "Log events, also those folded into one line.", event=name
            )
        return found

    def gauges(
        self, *, inflight: Callable[[], float], generation: Callable[[], float], share: Callable[[], float]
    ) -> None:
        """Adds the values that are read when the page is."""
        gauge = self.registry.gauge
        gauge("gateway_inflight_requests", "Questions being answered now.", inflight)
        gauge("gateway_settings_generation", "Generation of the settings file in effect in the gateway.", generation)
        gauge("gateway_canary_share_ratio", "Share of the sessions that are sent to the canary.", share)
