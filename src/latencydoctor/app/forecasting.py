"""Use case: what a service would do under other settings or another load. Reads and simulates; changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from latencydoctor.errors import CannotTell, UsageError
from latencydoctor.forecast.capacity import Sizing, replicas_for, shared
from latencydoctor.forecast.estimate import Estimate
from latencydoctor.forecast.queue import Batching, Scenario
from latencydoctor.forecast.situation import Situation, scenario
from latencydoctor.percent import percent

ENABLED = "inference.batching.enabled"
PREFERRED = "inference.batching.preferred_batch_size"
MAXIMUM = "inference.batching.max_batch_size"
WAIT = "inference.batching.timeout_micros"
REPLICAS = "inference.replicas"
INSTANCES = "inference.instances"
HIT_RATIO = "cache.hit_ratio"

BOUNDS: Mapping[str, tuple[float, float]] = {
    PREFERRED: (0, 1024),
    MAXIMUM: (1, 1024),
    WAIT: (0, 10_000_000),
    REPLICAS: (1, 100_000),
    INSTANCES: (1, 64),
    HIT_RATIO: (0, 1),
}
"""Settings that a forecast understands beside `enabled`, and the values each may have."""

AT_THE_LIMIT = 0.95
"""Above this load a server is counted to serve what it can, whatever arrives."""

ALL_BATCHING = (MAXIMUM, PREFERRED, WAIT)
SAID = f"--set {MAXIMUM}=32 --set {PREFERRED}=16 --set {WAIT}=100000"
"""A whole batcher, as it is set."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: settings by dotted key, rates (requests/s at the front), an SLO.

    Without `rates_rps` it is the measured rate. `times` multiplies every rate. With `slo_ms` the answer is how many
    replicas are needed, each loaded to `max_load_ratio` at most. `vip_ratio` above 0 asks for two priority levels.
    """

    values: tuple[tuple[str, str], ...] = ()
    rates_rps: tuple[float, ...] = ()
    times: float = 1.0
    slo_ms: float | None = None
    max_load_ratio: float = 0.85
    vip_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """One forecast: the label of its settings, the rate and what is expected."""

    settings: str
    replicas: int
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Forecast:
    """The answer. `basis` says what it rests on, `notes` what is not in it; `sizing` answers a capacity question."""

    rows: tuple[Row, ...]
    sizing: tuple[Sizing, ...]
    basis: tuple[str, ...]
    notes: tuple[str, ...]
    simulated: bool
    measured_p99_ms: float | None = None


def forecast(known: Situation, question: Question) -> Forecast:
    """Answers a question.

    Raises UsageError for a setting or a value that is none, CannotTell naming the missing signal where there is no
    rate, no curve or no batcher to simulate.
    """
    values = checked(question.values)
    _refuse_engine(known)
    now = known.batching
    batching = batching_of(now, values)
    if batching is None:
        needed = known.need("config_max_batch_size")
        raise CannotTell(
            f"the batcher's settings are not known: {needed}",
            hint=f"Give Triton's gRPC address with --triton, or say all of it: {SAID}.",
        )
    rates = _rates(known, question)
    replicas = round(float(values.get(REPLICAS, known.replicas)))
    base = [_scenario(known, rate, batching, values, question.vip_ratio) for rate in rates]
    told = base[0][1]
    basis = (f"an execution takes {told}", _traffic(base[0][0]), f"batcher: {words(batching)}")
    if question.slo_ms is not None:
        sizing = tuple(replicas_for(one, question.slo_ms, question.max_load_ratio) for one, _ in base)
        return Forecast((), sizing, basis, _notes(known, question), known.simulated, _p99(known))
    rows: list[Row] = []
    if now is not None and values and known.rate_rps is not None:
        present, _ = _scenario(known, known.rate_rps, now, {}, 0.0)
        rows.append(Row(f"as it is: {words(now)}", known.replicas, shared(present, known.replicas)))
    label = (
        words(batching)
        if not values
        else ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in question.values)
    )
    rows += [Row(label, replicas, shared(one, replicas)) for one, _ in base]
    return Forecast(tuple(rows), (), basis, _notes(known, question), known.simulated, _p99(known))


def checked(values: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Settings by key; UsageError for an unknown key or a value out of bounds."""
    for key, value in values:
        if key == ENABLED:
            if value not in ("true", "false"):
                raise UsageError(f"{key} is true or false, not {value!r}", hint="Write --set KEY=true or KEY=false.")
            continue
        if key not in BOUNDS:
            listed = ", ".join((ENABLED, *BOUNDS))
            raise UsageError(f"a forecast knows no setting {key!r}", hint=f"It knows: {listed}.")
        low, high = BOUNDS[key]
        whole = key != HIT_RATIO
        number = _number(value, whole=whole)
        if number is None or not low <= number <= high:
            kind = "a whole number" if whole else "a number"
            raise UsageError(f"{key} is {kind} from {low:g} to {high:g}, not {value!r}", hint="Correct the --set.")
    return dict(values)


def _number(text: str, *, whole: bool) -> float | None:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return None


def batching_of(now: Batching | None, values: Mapping[str, str]) -> Batching | None:
    """The settings in effect with some of them changed; None where neither says all of them."""
    if now is None:
        if any(key not in values for key in ALL_BATCHING) and values.get(ENABLED) != "false":
            return None
        now = Batching(True, 0, 1, 0.0)
    maximum = int(values.get(MAXIMUM, now.maximum))
    preferred = int(values.get(PREFERRED, now.preferred))
    if preferred > maximum and PREFERRED in values:
        raise UsageError(
            f"the preferred batch size {preferred} is above the largest, {maximum}", hint=f"Set {MAXIMUM} as well."
        )
    return Batching(
        values.get(ENABLED, "true" if now.enabled else "false") == "true",
        min(preferred, maximum),
        maximum,
        int(values[WAIT]) / 1000 if WAIT in values else now.wait_ms,
    )


def words(batching: Batching) -> str:
    """The batcher's settings in words."""
    if not batching.enabled:
        return "no dynamic batching, one request an execution"
    preferred = f"preferred {batching.preferred}" if batching.preferred else "none preferred"
    return f"at most {batching.maximum}, {preferred}, waits {batching.wait_ms:g} ms"


def _refuse_engine(known: Situation) -> None:
    if known.engine:
        raise CannotTell(
            f"{known.engine} admits requests to a running batch at every step, which is not simulated here",
            hint="A forecast needs a server that executes one batch after the other, as Triton's dynamic batcher does.",
        )


def _rates(known: Situation, question: Question) -> list[float]:
    rates = question.rates_rps or ((known.rate_rps,) if known.rate_rps is not None else ())
    if not rates:
        raise CannotTell(
            f"the arrival rate is not known: {known.need('request_rate_rps')}",
            hint="Give it with --rate N (requests/s).",
        )
    return [rate * question.times for rate in rates]


def _scenario(
    known: Situation, rate_rps: float, batching: Batching, values: Mapping[str, str], vip_ratio: float
) -> tuple[Scenario, str]:
    found = scenario(known, rate_rps, batching)
    if isinstance(found, str):
        raise CannotTell(
            f"what an execution takes cannot be told: {found}",
            hint="Give Triton's gRPC address with --triton, or the times themselves with --service-time, as 20ms+1ms.",
        )
    one, told = found
    changed = replace(
        one,
        instances=int(values.get(INSTANCES, one.instances)),
        hit_ratio=float(values.get(HIT_RATIO, one.hit_ratio)),
        vip_ratio=vip_ratio,
    )
    return changed, told


def _traffic(one: Scenario) -> str:
    traffic = one.traffic
    told = "arrivals independent of each other"
    if traffic.group > 1:
        told = f"arrivals in groups of {traffic.group:.1f} on average, as measured"
    if traffic.swing > 0:
        told = f"a rate that swings by {percent(traffic.swing, 0)} every {traffic.dwell_s:g} s, as measured"
    hits = f", {percent(one.hit_ratio, 0)} answered by the cache" if one.hit_ratio > 0 else ""
    return f"{told}{hits}, {one.outside_ms:.1f} ms outside the server"


def _notes(known: Situation, question: Question) -> tuple[str, ...]:
    """What the figures leave out, or rest on badly."""
    notes = [
        "The model is Triton's dynamic batcher; queue time-outs, a full queue, memory and a busy host are not in it."
    ]
    if not known.times and known.curve is None:
        notes.append("Times come from rates, not from executions by batch size: the intervals are wider for it.")
    if INSTANCES in dict(question.values):
        notes.append("Each instance is taken to keep its speed; on one device they slow each other down.")
    if not question.rates_rps and known.batching is not None and known.rate_rps is not None:
        found = scenario(known, known.rate_rps / known.replicas, known.batching)
        if not isinstance(found, str) and found[0].load_ratio > AT_THE_LIMIT:
            notes.append("The server is at its limit: more may arrive than it is counted to serve. Give --rate.")
    return tuple(notes)


def _p99(known: Situation) -> float | None:
    return known.measured.get("e2e_p99_ms")
