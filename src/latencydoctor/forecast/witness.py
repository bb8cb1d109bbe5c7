"""A witness for a diagnosis: would latency be healthy again if one suspected cause, and nothing else, were undone?

The queue model knows nothing of how the suspicion arose, so its word is independent. It speaks only where it can first
explain the incident itself: with the figures as they are, it must expect latency about as bad as it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.curve import BatchTime, ServiceCurve
from latencydoctor.forecast.estimate import QUICK_DRAWS, Estimate, estimate
from latencydoctor.forecast.front import outside_ms
from latencydoctor.forecast.queue import Batching, Scenario
from latencydoctor.forecast.whatif import curve_of
from latencydoctor.model.diagnosis import Answer

WITHIN_BASELINE = 1.5
"""So many times the baseline's p99 still is as it was."""

EXPLAINS_SHARE = 0.5
"""The model explains an incident when it expects at least this share of the measured p99, or no bound at all."""

GOOD = Batching(enabled=True, preferred=16, maximum=32, wait_ms=100.0)
"""A batch floor that the fix `batch-floor` sets by default; capped at what fits a device by the caller if need be."""

REQUESTS = 2_000

AT_THE_LIMIT = 0.93
"""Above this share of its capacity a server may hold more than it is counted to serve: any latency is explained."""


class Knob(StrEnum):
    """What a suspected cause has turned, and what undoing it sets back."""

    BATCHING = "batching"
    HIT_RATIO = "hit ratio"
    RATE = "rate"
    EXECUTION_TIME = "execution time"


@dataclass(frozen=True, slots=True)
class Testimony:
    """What the witness says: the answer, why in numbers, and the figures behind it (ms; None: no bound or not known).

    `explained_p99_ms` is expected with everything as it was, `undone_p99_ms` with the knob set back, `limit_ms` what
    would count as healthy.
    """

    knob: Knob
    answer: Answer
    reason: str
    measured_p99_ms: float | None = None
    explained_p99_ms: float | None = None
    undone_p99_ms: float | None = None
    limit_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The incident as measured: signals by name now and in the baseline (absent: not known), and the settings.

    `batching` are the settings in effect, None where no source says them; `times` executions by batch size during the
    incident; `slo_ms` the limit of p99. `replicas` share the rate.
    """

    now: Mapping[str, float]
    baseline: Mapping[str, float]
    batching: Batching | None
    slo_ms: float
    times: Sequence[BatchTime] = ()
    instances: int = 1
    replicas: int = 1


def bear_witness(seen: Seen, knob: Knob, good: Batching = GOOD) -> Testimony:
    """Whether p99 would come back under the SLO, or to 1.5 times the baseline's, with this knob alone set back."""
    measured = seen.now.get("e2e_p99_ms")
    if measured is None:
        return Testimony(knob, Answer.UNKNOWN, "p99 was not measured: e2e_p99_ms")
    if seen.batching is None:
        return Testimony(knob, Answer.UNKNOWN, "the batcher's settings are not known: config_max_batch_size", measured)
    known = curve_of(seen.now, seen.times)
    if isinstance(known, str):
        return Testimony(knob, Answer.UNKNOWN, known, measured)
    present = _present(seen, known[0], seen.batching)
    if isinstance(present, str):
        return Testimony(knob, Answer.UNKNOWN, present, measured)
    undone = _undone(seen, knob, present, good)
    if isinstance(undone, str):
        return Testimony(knob, Answer.UNKNOWN, undone, measured)
    before = _estimate(present)
    explained = before.p99_ms.value if before.p99_ms else None
    if explained is not None and explained < EXPLAINS_SHARE * measured and before.load_ratio < AT_THE_LIMIT:
        reason = f"a queue explains {explained:,.0f} of the {measured:,.0f} ms measured: something else makes it slow"
        return Testimony(knob, Answer.UNKNOWN, reason, measured, explained)
    unseen = undone.curve.unseen(undone.batching.largest) if undone.batching != present.batching else ""
    return _judged(seen, knob, measured, explained, _estimate(undone), unseen)


def _judged(
    seen: Seen, knob: Knob, measured: float, explained: float | None, after: Estimate, unseen: str
) -> Testimony:
    usual = seen.baseline.get("e2e_p99_ms")
    limit_ms = max(seen.slo_ms, WITHIN_BASELINE * usual) if usual is not None else seen.slo_ms
    if after.p99_ms is None:
        reason = f"with the {knob.value} set back: {after.unstable}{unseen}"
        # Where it may carry the load or may not, nothing speaks against the suspicion.
        answer = Answer.NO if after.load_ratio >= 1 else Answer.UNKNOWN
        return Testimony(knob, answer, reason, measured, explained, None, limit_ms)
    band = after.p99_ms
    high = "no bound" if band.high is None else f"{band.high:,.0f} ms"
    reason = (
        f"with the {knob.value} set back p99 is expected at {band.value:,.0f} ms ({band.low:,.0f} ms to {high}), "
        f"measured {measured:,.0f} ms, limit {limit_ms:,.0f} ms{unseen}"
    )
    if band.high is not None and band.high <= limit_ms:
        answer = Answer.YES
    elif band.low > limit_ms:
        answer = Answer.NO
    else:
        answer = Answer.YES if band.high is not None and band.value <= limit_ms else Answer.UNKNOWN
    return Testimony(knob, answer, reason, measured, explained, band.value, limit_ms)


def _estimate(scenario: Scenario) -> Estimate:
    return estimate(scenario, REQUESTS, QUICK_DRAWS)


def _present(seen: Seen, curve: ServiceCurve, batching: Batching) -> Scenario | str:
    """One replica as it was during the incident."""
    rate = seen.now.get("request_rate_rps")
    if rate is None or rate <= 0:
        return "the arrival rate is not known: request_rate_rps"
    return Scenario(
        Traffic(rate / seen.replicas),
        curve,
        batching,
        instances=seen.instances,
        hit_ratio=_ratio(seen.now.get("cache_hit_ratio", 0.0)),
        outside_ms=outside_ms(seen.now, seen.baseline),
    )


def _undone(seen: Seen, knob: Knob, present: Scenario, good: Batching) -> Scenario | str:
    """The same with one knob set back; a reason where what it was before is not known."""
    if knob is Knob.BATCHING:
        # What the settings already do beyond a good floor is no part of the suspicion.
        maximum = max(good.maximum, present.batching.maximum)
        return replace(present, batching=replace(good, maximum=maximum))
    signal = {
        Knob.HIT_RATIO: "cache_hit_ratio",
        Knob.RATE: "request_rate_rps",
        Knob.EXECUTION_TIME: "compute_time_ms",
    }[knob]
    usual, now = seen.baseline.get(signal), seen.now.get(signal)
    if usual is None or now is None or (usual <= 0 and knob is not Knob.HIT_RATIO):
        return f"what it was before is not known: {signal} has no baseline"
    if knob is Knob.HIT_RATIO:
        return replace(present, hit_ratio=_ratio(usual))
    if knob is Knob.RATE:
        return present.at_rate(usual / seen.replicas)
    return _at_usual_times(seen, present, usual, now)


def _at_usual_times(seen: Seen, present: Scenario, usual_ms: float, now_ms: float) -> Scenario | str:
    """Executions as quick as before; what their time owes to another batch size is not part of it."""
    sizes = seen.now.get("batch_size_mean"), seen.baseline.get("batch_size_mean")
    if sizes[0] is None or sizes[1] is None:
        return "what it was before is not known: batch_size_mean has no baseline"
    if now_ms <= 0 or min(sizes[0], sizes[1]) <= 0:
        return "what executions take is not known: compute_time_ms, batch_size_mean"
    factor = (usual_ms / present.curve.batch_ms(sizes[1])) / (now_ms / present.curve.batch_ms(sizes[0]))
    return replace(present, curve=present.curve.scaled(factor))


def _ratio(value: float) -> float:
    return min(1.0, max(0.0, value))
