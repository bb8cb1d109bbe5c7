"""What a change of the batcher's settings is expected to do, each figure with how it was reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.curve import BatchTime, ServiceCurve, calibrate, fit
from latencydoctor.forecast.estimate import Band, Estimate, capacity_band, estimate
from latencydoctor.forecast.front import Front, front_of
from latencydoctor.forecast.histogram import around_ms
from latencydoctor.forecast.queue import Batching, Scenario, simulate
from latencydoctor.model.remedy import Prediction
from latencydoctor.percent import percent

LOW_LOAD_SHARE = 0.01
"""Traffic at night, as a share of what the new settings can serve."""

LOW_LOAD_REQUESTS = 400

TELLING_RATIO = 0.05
"""A histogram that shows p99 nearer to what it is than this is not worth a word."""

_FORMS = (("capacity_rps", "requests/s"), ("e2e_p99_ms", "ms"))


def curve_of(measured: Mapping[str, float], times: Sequence[BatchTime] = ()) -> tuple[ServiceCurve, str] | str:
    """The service curve and what it rests on; a reason where there is none.

    Executions by batch size say most; the rates of a window are taken where a server does not tell them, or where all
    its executions had one size.
    """
    fitted = fit(times) if times else "executions by batch size are not known (Triton's statistics API tells them)"
    if isinstance(fitted, ServiceCurve):
        count = sum(item.executions for item in times)
        return fitted, f"{_told(fitted)}, fitted to {count} executions of {len(times)} batch sizes"
    rates = calibrate(measured)
    if isinstance(rates, ServiceCurve):
        return rates, f"{_told(rates)}, calibrated from the incident's own metrics"
    return f"{rates}; {fitted}" if times else rates


def predict(
    measured: Mapping[str, float],
    arrival_rps: float | None,
    before: Batching,
    after: Batching,
    times: Sequence[BatchTime] = (),
    instances: tuple[int, int] = (1, 1),
    replicas: tuple[int, int] = (1, 1),
    speedup: float = 1.0,
    front: Front | None = None,
) -> tuple[Prediction, ...]:
    """Capacity, p99, p50, p95, load and the cost at low load, before and after; capacity and p99 come first.

    Where a figure cannot be computed it is None and `method` says why. `arrival_rps` is what reaches the servers, of
    which there are so many `replicas` before and after, each with an even share and so many `instances`; `speedup` is
    how many times faster an execution becomes. `front` is what lies before them, else it follows from the figures.
    """
    (was, will), (had, has) = replicas, instances
    known = curve_of(of_one(measured, was), times)
    if isinstance(known, str):
        reason = f"not predicted: {known}"
        return tuple(Prediction(name, unit, None, None, None, None, reason) for name, unit in _FORMS)
    curve, told = known[0], known[1] + known[0].unseen(after.largest)
    front = front_of(measured) if front is None else front
    whole = Scenario(Traffic(arrival_rps or 0.0), curve, after, has, outside_ms=front.outside_ms)
    base = replace(whole.at_rate(whole.traffic.rate_rps / will), curve=curve.scaled(1 / speedup))
    now = replace(whole.at_rate(whole.traffic.rate_rps / was), batching=before, instances=had)
    told += f", {will} replicas with an even share each" if replicas != (1, 1) else ""
    told += f", {has} instances that do not slow each other down" if had != has else ""
    if arrival_rps is None:
        reason = "not predicted: the arrival rate is not known"
        nothing = Prediction("e2e_p99_ms", "ms", measured.get("e2e_p99_ms"), None, None, None, reason)
        return (_capacity(now, base, told, replicas), nothing, _low_load(now, base, told))
    found = estimate(_seen_from(front, base))
    at = f"simulated queue at {base.traffic.rate_rps:.0f} requests/s, {told}{read_as(front)}"
    percentiles = (
        _latency("e2e_p99_ms", measured, found, found.p99_ms, at + _p99_read(front, found)),
        _latency("e2e_p50_ms", measured, found, found.p50_ms, at),
        _latency("e2e_p95_ms", measured, found, found.p95_ms, at),
    )
    return (
        _capacity(now, base, told, replicas),
        *percentiles,
        _load(now, base, told),
        _low_load(now, base, told),
        _simulated("instance_busy_ratio", "", measured, _times(found.busy_ratio, has), told),
        _simulated("batch_size_mean", "items", measured, found.batch_size_mean, told),
        *_reckoned_with(front, measured, arrival_rps),
    )


def _reckoned_with(front: Front, measured: Mapping[str, float], arrival_rps: float) -> Iterator[Prediction]:
    """What the latency rests on besides: where another one is measured, these tell whether they were others, too."""
    if front.hit_ratio < 1:
        rate_rps, before = arrival_rps / (1 - front.hit_ratio), measured.get("request_rate_rps")
        yield Prediction("request_rate_rps", "requests/s", before, rate_rps, None, None, "taken to go on")
    if front.between_ms is not None:
        before = measured.get("network_time_ms")
        yield Prediction("network_time_ms", "ms", before, front.between_ms, None, None, "as before the incident")


def _seen_from(front: Front, server: Scenario) -> Scenario:
    """The same server with its cache before it, as the front end's histogram shows it."""
    rate_rps = server.traffic.rate_rps
    if front.hit_ratio >= 1:
        return replace(server, bounds_ms=front.bounds_ms)
    seen = replace(server, hit_ratio=front.hit_ratio, bounds_ms=front.bounds_ms)
    return seen.at_rate(rate_rps / (1 - front.hit_ratio))


def _told(curve: ServiceCurve) -> str:
    if curve.knots:
        first, last = curve.knots[0], curve.knots[-1]
        return f"{first[1]:.1f} ms for {first[0]} to {last[1]:.1f} ms for {last[0]} requests"
    return f"{curve.host_ms:.1f} ms + {curve.item_ms:.2f} ms a request"


def of_one(measured: Mapping[str, float], replicas: int) -> dict[str, float]:
    """What one of several replicas was seen to do: executions are counted over all, a device's busy time is one's."""
    found = dict(measured)
    if "execution_rate_eps" in found:
        found["execution_rate_eps"] /= replicas
    return found


def _capacity(now: Scenario, after: Scenario, told: str, replicas: tuple[int, int]) -> Prediction:
    band, (was, will) = capacity_band(after), replicas
    method = f"batch size / execution time, {told}; interval: how well that is known"
    high = None if band.high is None else band.high * will
    return Prediction(
        "capacity_rps", "requests/s", now.capacity_rps * was, band.value * will, band.low * will, high, method
    )


def read_as(front: Front) -> str:
    """What lies between the server and whoever measures, in words."""
    cache = f", {percent(front.hit_ratio, 0)} beside them answered by the cache" if front.hit_ratio > 0 else ""
    return f"{cache}, as the front end's histogram shows it" if front.bounds_ms else cache


def _p99_read(front: Front, found: Estimate) -> str:
    """Where a histogram shows another p99 than requests have: between which bounds it cannot tell."""
    if found.p99_ms is None or found.exact_p99_ms is None or not front.bounds_ms:
        return ""
    exact_ms = found.exact_p99_ms
    if exact_ms > front.bounds_ms[-1]:
        return f", which has no bound above {front.bounds_ms[-1]:g} ms and cannot"
    if abs(found.p99_ms.value / exact_ms - 1) < TELLING_RATIO:
        return ""
    low_ms, high_ms = around_ms(exact_ms, front.bounds_ms)
    return f" ({exact_ms:.0f} ms by itself, but it has no bound between {low_ms:g} and {high_ms:g} ms)"


def _latency(signal: str, measured: Mapping[str, float], found: Estimate, band: Band | None, at: str) -> Prediction:
    before = measured.get(signal)
    if band is None:
        reason = found.unstable.removeprefix("arrivals exceed what can be served: ")
        reason = reason.removeprefix("no bound: ")
        return Prediction(signal, "ms", before, None, None, None, f"no bound: {reason}; add capacity too")
    method = f"{at}; interval: 95 % of such windows, with what is not known of times, rate and model"
    return Prediction(signal, "ms", before, band.value, band.low, band.high, method)


def _load(now: Scenario, after: Scenario, told: str) -> Prediction:
    method = f"requests that arrive over requests that can be served, {told}"
    return Prediction("load_ratio", "ratio", now.load_ratio, after.load_ratio, None, None, method)


def _times(ratio: float | None, instances: int) -> float | None:
    return None if ratio is None else ratio * instances


def _simulated(signal: str, unit: str, measured: Mapping[str, float], after: float | None, told: str) -> Prediction:
    """What the queue does at the same time; small batches keep an instance as busy as large ones."""
    reason = f"simulated queue, {told}" if after is not None else "not predicted: there is no bound on latency"
    return Prediction(signal, unit, measured.get(signal), after, None, None, reason)


def _low_load(now: Scenario, after: Scenario, told: str) -> Prediction:
    """The other side of waiting for company: what a request takes when there is none."""
    rate_rps = max(0.01, after.capacity_rps * LOW_LOAD_SHARE)
    values: list[float | None] = []
    for scenario in (now, after):
        alone = simulate(scenario.at_rate(rate_rps), LOW_LOAD_REQUESTS)
        values.append(None if alone is None else alone.percentile_ms(0.5))
    method = f"simulated queue at {rate_rps:.3g} requests/s, {told}"
    return Prediction("low_load_p50_ms", "ms", values[0], values[1], None, None, method)


def and_before(times: tuple[BatchTime, ...], baseline: Mapping[str, float]) -> tuple[BatchTime, ...]:
    """With the executions from before the change, which ran the sizes that a queue under the old settings will run.

    A server that was loaded anew knows only those of the settings that are to go. Both count alike.
    """
    size, time_ms = baseline.get("batch_size_mean"), baseline.get("compute_time_ms")
    if not times or size is None or time_ms is None or size < 1 or time_ms <= 0:
        return times
    return (*times, BatchTime(round(size), sum(one.executions for one in times), time_ms))
