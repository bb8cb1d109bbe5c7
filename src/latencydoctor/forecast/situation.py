"""What is known of a running service that a forecast can start from: its load, its batcher, what an execution takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from latencydoctor.forecast.arrivals import Traffic, traffic
from latencydoctor.forecast.batcher import Batching
from latencydoctor.forecast.curve import LEAST_ERROR_RATIO, BatchTime, ServiceCurve
from latencydoctor.forecast.front import outside_ms
from latencydoctor.forecast.queue import Scenario
from latencydoctor.forecast.whatif import curve_of, of_one
from latencydoctor.model.evidence import Collected, Evidence, Fact, Gap, Measure

ENGINES = ("vllm", "sglang", "tgi")
"""Engines that admit requests to a running batch at every step; that is no queue of batches."""

HIDES_ARRIVALS = 0.9
"""Above this share of its capacity a server smooths or delays what arrives too much to see its burstiness."""

MOST_INSTANCES = 1024
"""No server has more of one model; each is a place in the simulation's memory."""

_CONFIG = ("config_dynamic_batching", "config_preferred_batch_size", "config_max_batch_size", "config_queue_delay_ms")

_EXECUTIONS = re.compile(r"batch_(\d{1,6})_executions")


@dataclass(frozen=True, slots=True)
class Situation:
    """A service as it was seen.

    `measured` are signals by name over the windows looked at; `rates_rps` the rate in each window of `window_s`;
    `times` executions by batch size; `batching` the settings in effect, None where no source says them. `missing` are
    signals that were looked for in vain, with what would have to be there. `replicas` share the measured rate.
    """

    measured: Mapping[str, float]
    batching: Batching | None = None
    instances: int = 1
    replicas: int = 1
    times: tuple[BatchTime, ...] = ()
    rates_rps: tuple[float, ...] = ()
    window_s: float = 0.0
    missing: tuple[tuple[str, str], ...] = ()
    engine: str = ""
    simulated: bool = False
    curve: ServiceCurve | None = None
    """Given by hand; then nothing is fitted."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    """Signals by name as they were before an incident, as far as they are known."""

    @property
    def rate_rps(self) -> float | None:
        """Requests per second at the front, of all replicas together."""
        rate = self.measured.get("request_rate_rps")
        return rate if rate is not None and rate > 0 else None

    @property
    def hit_ratio(self) -> float:
        """The share of them that a cache answers."""
        return min(1.0, max(0.0, self.measured.get("cache_hit_ratio", 0.0)))

    def need(self, *signals: str) -> str:
        """What would have to be there for these signals, in words."""
        needs = dict(self.missing)
        return "; ".join(f"{signal} ({needs[signal]})" if needs.get(signal) else signal for signal in signals)


def of(evidence: Evidence, collected: Collected, replicas: int = 1) -> Situation:
    """The situation behind some evidence and the record it was assembled from."""
    measured = {item.signal: item.value for item in evidence.measures}
    rates = next((item for item in collected.series if item.signal == "request_rate_rps"), None)
    inside = () if rates is None else zip(rates.times_s, rates.values, strict=True)
    return Situation(
        measured=of_one(measured, replicas),
        batching=_batching(measured),
        instances=instances_of(measured),
        replicas=replicas,
        times=batch_times(collected.facts),
        rates_rps=tuple(value for at_s, value in inside if evidence.window.holds(at_s)),
        window_s=collected.window_s,
        missing=tuple(_missing(evidence)),
        engine=next((name for name in ENGINES if name in evidence.dialects), ""),
        simulated=evidence.simulated,
        baseline={item.signal: item.baseline for item in evidence.measures if item.baseline is not None},
    )


def instances_of(measured: Mapping[str, float]) -> int:
    """The model's instances on one server, one where nothing tells them."""
    return round(min(MOST_INSTANCES, max(1.0, measured.get("config_instance_count", 1.0))))


def typed(host_ms: float, item_ms: float, replicas: int = 1) -> Situation:
    """A service of which only its times are known, because somebody says so: they count as exact."""
    return Situation({}, replicas=replicas, curve=ServiceCurve(host_ms, item_ms, LEAST_ERROR_RATIO, centre=1.0))


def scenario(known: Situation, rate_rps: float, batching: Batching) -> tuple[Scenario, str] | str:
    """One replica with this rate at the front, and what its curve rests on; a reason where there is no curve."""
    curve = (known.curve, "as given") if known.curve is not None else curve_of(known.measured, known.times)
    if isinstance(curve, str):
        return curve
    one = Scenario(
        Traffic(rate_rps),
        curve[0],
        batching,
        instances=known.instances,
        hit_ratio=known.hit_ratio,
        outside_ms=outside_ms(known.measured, known.baseline),
    )
    return replace(one, traffic=replace(_traffic(known, one), rate_rps=rate_rps)), curve[1] + curve[0].unseen(
        batching.largest
    )


def _traffic(known: Situation, one: Scenario) -> Traffic:
    """Arrivals as bursty as they were seen to be.

    Requests are counted when they are done: at its limit a server's own pace is seen, and nothing of what arrives.
    """
    rate_rps = known.rate_rps
    if rate_rps is None:
        return one.traffic
    now = replace(one, batching=known.batching or one.batching).at_rate(rate_rps / known.replicas)
    return one.traffic if now.load_ratio > HIDES_ARRIVALS else traffic(rate_rps, known.rates_rps, known.window_s)


def batch_times(facts: Iterable[Fact]) -> tuple[BatchTime, ...]:
    """Executions by batch size, as `sources/triton_stats.py` tells them: a count and a mean for each size."""
    values = {fact.signal: fact.value for fact in facts if fact.signal.startswith("batch_")}
    found = [
        BatchTime(int(match[1]), round(count), values.get(f"batch_{match[1]}_time_ms", 0.0))
        for signal, count in values.items()
        if (match := _EXECUTIONS.fullmatch(signal)) is not None
    ]
    return tuple(sorted((item for item in found if item.mean_ms > 0), key=lambda item: item.size))


def _batching(measured: Mapping[str, float]) -> Batching | None:
    if any(name not in measured for name in _CONFIG):
        return None
    enabled, preferred, maximum, wait_ms = (measured[name] for name in _CONFIG)
    return Batching(enabled > 0, round(preferred), max(1, round(maximum)), max(0.0, wait_ms))


def _missing(evidence: Evidence) -> Iterable[tuple[str, str]]:
    for signal in ("request_rate_rps", "compute_time_ms", "batch_size_mean", "execution_rate_eps", *_CONFIG):
        found: Measure | Gap = evidence.find(signal)
        if isinstance(found, Gap):
            yield signal, found.needs
    found = evidence.find("accelerator_busy_ratio")
    if isinstance(found, Gap):
        yield "accelerator_busy_ratio", found.needs
