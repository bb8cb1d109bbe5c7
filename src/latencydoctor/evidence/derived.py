"""Measures that follow from others: sums, differences and ratios of what was read, for the incident and before it.

Their proof is the formula with the queries of its parts. A measure of which a part is missing does not exist; the gap
of the part says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from latencydoctor.model.evidence import Measure, Proof


@dataclass(frozen=True, slots=True)
class _Derived:
    """`formula` names its parts as the reader sees them; `compute` gets their values in that order."""

    signal: str
    unit: str
    formula: str
    parts: tuple[str, ...]
    compute: Callable[[Sequence[float]], float | None]


def _difference(values: Sequence[float]) -> float | None:
    return values[0] - sum(values[1:])


def _ratio(values: Sequence[float]) -> float | None:
    return values[0] / values[1] if values[1] > 0 else None


def _product(values: Sequence[float]) -> float | None:
    return values[0] * values[1]


def _same(values: Sequence[float]) -> float | None:
    return values[0]


_DERIVED = (
    # The time of one execution, whatever the server calls it: an engine's step, or a batch's.
    _Derived("execution_time_ms", "ms", "inter_token_latency_mean_ms", ("inter_token_latency_mean_ms",), _same),
    _Derived("execution_time_ms", "ms", "compute_time_ms", ("compute_time_ms",), _same),
    _Derived(
        "executed_item_rate_ips",
        "items/s",
        "execution_rate_eps x batch_size_mean",
        ("execution_rate_eps", "batch_size_mean"),
        _product,
    ),
    _Derived(
        "executed_item_rate_ips",
        "items/s",
        "execution_rate_eps x tokens_per_execution",
        ("execution_rate_eps", "tokens_per_execution"),
        _product,
    ),
    _Derived(
        "outside_server_time_ms",
        "ms",
        "e2e_mean_ms - server_time_ms",
        ("e2e_mean_ms", "server_time_ms"),
        _difference,
    ),
    _Derived(
        "copy_time_ms",
        "ms",
        "compute_input_time_ms + compute_output_time_ms",
        ("compute_input_time_ms", "compute_output_time_ms"),
        sum,
    ),
    _Derived(
        "unexplained_server_time_ms",
        "ms",
        "server_time_ms - queue_time_ms - compute_time_ms - compute_input_time_ms - compute_output_time_ms",
        ("server_time_ms", "queue_time_ms", "compute_time_ms", "compute_input_time_ms", "compute_output_time_ms"),
        _difference,
    ),
    _Derived(
        "instance_busy_share_ratio",
        "ratio",
        "instance_busy_ratio / config_instance_count",
        ("instance_busy_ratio", "config_instance_count"),
        _ratio,
    ),
    _Derived(
        "inter_token_tail_ratio",
        "",
        "inter_token_latency_p99_ms / inter_token_latency_p50_ms",
        ("inter_token_latency_p99_ms", "inter_token_latency_p50_ms"),
        _ratio,
    ),
    _Derived(
        "accelerator_memory_used_ratio",
        "ratio",
        "accelerator_memory_used_bytes / accelerator_memory_total_bytes",
        ("accelerator_memory_used_bytes", "accelerator_memory_total_bytes"),
        _ratio,
    ),
    _Derived(
        "compute_time_per_item_ms",
        "ms",
        "compute_time_ms / batch_size_mean",
        ("compute_time_ms", "batch_size_mean"),
        _ratio,
    ),
    _Derived(
        "requests_per_replica_rps",
        "requests/s",
        "request_rate_rps / replica_count",
        ("request_rate_rps", "replica_count"),
        _ratio,
    ),
)

SLOWDOWN = "execution_slowdown_ratio"

SIZES = ("batch_size_mean", "tokens_per_execution", "requests_running")
"""What an execution's size is counted in, the closest to its work first."""

DERIVED_SIGNALS = (
    *((one.signal, one.parts) for one in _DERIVED),
    (SLOWDOWN, ("execution_time_ms", "batch_size_mean")),
)
"""Each derived signal with the signals it is made of, the preferred way first."""


def derive(measures: Sequence[Measure]) -> list[Measure]:
    """The derived measures whose parts are all there; one that a source gives by itself is left alone."""
    known = {measure.signal: measure for measure in measures}
    made: dict[str, Measure] = {}
    for one in _DERIVED:
        measure = _derive(one, known) if one.signal not in known and one.signal not in made else None
        if measure is not None:
            made[one.signal] = measure
    slower = _slowdown(known | made)
    return [*made.values(), *([slower] if slower is not None else [])]


def _derive(derived: _Derived, known: Mapping[str, Measure]) -> Measure | None:
    if any(part not in known for part in derived.parts):
        return None
    parts = [known[part] for part in derived.parts]
    value = derived.compute([part.value for part in parts])
    if value is None:
        return None
    before = [part.value if part.constant else part.baseline for part in parts]
    held = [number for number in before if number is not None]
    baseline = derived.compute(held) if len(held) == len(parts) else None
    windows = [part.baseline_window for part in parts if part.baseline_window is not None]
    queries = "; ".join(f"{part.signal}: {part.proof.query}" for part in parts)
    return Measure(
        signal=derived.signal,
        unit=derived.unit,
        value=value,
        baseline=baseline,
        worst=value,
        window=parts[0].window,
        baseline_window=windows[0] if windows and baseline is not None else None,
        proof=Proof("derived", f"{derived.formula} of {queries}"),
        simulated=any(part.simulated for part in parts),
        family=parts[0].family,
    )


def _slowdown(known: Mapping[str, Measure]) -> Measure | None:
    """How much slower an execution became than its size explains; 1 before the onset by definition.

    A batch of twice the items takes at most twice the time, so growth up to that proportion is not held against the
    device: what is above it is a slowdown for certain, what is below may hide one.
    """
    time = known.get("execution_time_ms")
    sizes = (known.get(name) for name in SIZES)
    size = next((one for one in sizes if one is not None), None)
    if time is None or size is None or not time.baseline or not size.baseline:
        return None
    value = time.value / time.baseline / max(1.0, size.value / size.baseline)
    query = (
        f"(execution_time_ms / before) / max(1, {size.signal} / before) of execution_time_ms: {time.proof.query}; "
        f"{size.signal}: {size.proof.query}"
    )
    return replace(
        time, signal=SLOWDOWN, unit="", value=value, baseline=1.0, worst=value, proof=Proof("derived", query)
    )
