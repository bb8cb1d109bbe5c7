"""From a collected record to evidence: measures, baselines, gaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.evidence.assemble import assemble
from latencydoctor.evidence.derived import DERIVED_SIGNALS
from latencydoctor.evidence.series import make_grid, place
from latencydoctor.model.configuration import Slo
from latencydoctor.model.evidence import Evidence, Fact, Gap, GapReason, IncidentState, Measure, Proof, Window
from latencydoctor.model.rule import SignalName, Summary
from tests.unit.series_builders import NOW_S, WINDOW_S, collected, series


def name(signal: str, *, worse: bool = True, summary: Summary = Summary.MEDIAN, unit: str = "ms") -> SignalName:
    return SignalName(signal, unit, "a title", f"what gives {signal}", worse, summary)


NAMES = (
    name("e2e_p99_ms"),
    name("request_rate_rps", worse=False, unit="requests/s"),
    name("queue_time_ms"),
    name("batch_size_mean", worse=False, unit="items"),
    name("process_resets", summary=Summary.LARGEST, unit=""),
    name("settings_generation", summary=Summary.LATEST, unit=""),
    name("config_max_batch_size", unit="items"),
    name("accelerator_busy_ratio", unit="ratio"),
)
P99 = series("e2e_p99_ms", [100.0] * 10 + [2000.0] * 6)
RATE = series("request_rate_rps", [50.0] * 16)


def measure(evidence: object, signal: str) -> Measure:
    found = evidence.find(signal)  # type: ignore[attr-defined]  # keeps the many assertions short
    assert isinstance(found, Measure), found
    return found


def test_values_are_medians_of_the_incident_beside_those_of_the_baseline() -> None:
    queue = series("queue_time_ms", [2.0, 3.0] * 5 + [900.0, 1000.0, 5000.0, 1100.0, 1200.0, 1000.0])
    evidence = assemble(collected(P99, RATE, queue), Slo(), NAMES)
    assert evidence.incident.state is IncidentState.INCIDENT
    found = measure(evidence, "queue_time_ms")
    assert (found.value, found.baseline, found.worst) == (1050.0, 2.5, 5000.0)
    assert (found.window.start_s, found.window.end_s) == (NOW_S - 6 * WINDOW_S, NOW_S)
    assert found.baseline_window is not None
    assert (found.baseline_window.start_s, found.baseline_window.end_s) == (NOW_S - 12 * WINDOW_S, NOW_S - 60)
    assert found.proof == queue.proof
    assert evidence.first_movers[0][1] == NOW_S - 60


def test_the_worst_value_lies_furthest_from_the_baseline_or_at_the_bad_end() -> None:
    batch = series("batch_size_mean", [8.0] * 10 + [4.0, 2.0, 3.0, 7.0, 3.0, 3.0])
    assert measure(assemble(collected(P99, RATE, batch), Slo(), NAMES), "batch_size_mean").worst == 2.0
    fresh = series("batch_size_mean", [None] * 10 + [4.0, 2.0, 3.0, 7.0, 3.0, 3.0])
    found = measure(assemble(collected(P99, RATE, fresh), Slo(), NAMES), "batch_size_mean")
    assert (found.worst, found.baseline, found.baseline_window) == (2.0, None, None)
    queue = series("queue_time_ms", [None] * 10 + [4.0, 2.0, 3.0, 7.0, 3.0, 3.0])
    assert measure(assemble(collected(P99, RATE, queue), Slo(), NAMES), "queue_time_ms").worst == 7.0


def test_resets_are_counted_by_the_largest_and_settings_by_the_latest() -> None:
    resets = series("process_resets", [0.0] * 12 + [1.0, 1.0, 0.0, 0.0])
    generation = series("settings_generation", [3.0] * 14 + [4.0, 4.0])
    evidence = assemble(collected(P99, RATE, resets, generation), Slo(), NAMES)
    assert (measure(evidence, "process_resets").value, measure(evidence, "process_resets").baseline) == (1.0, 0.0)
    found = measure(evidence, "settings_generation")
    assert (found.value, found.baseline) == (4.0, 3.0)


def test_a_fact_is_a_measure_without_a_baseline_and_gives_way_to_a_series() -> None:
    proof = Proof("nvml", "a call")
    facts = (
        Fact("accelerator_busy_ratio", "ratio", 0.1, proof),
        Fact("config_max_batch_size", "items", 8.0, Proof("triton", "ModelConfig(m)")),
    )
    busy = series("accelerator_busy_ratio", [0.3] * 16, "ratio", simulated=True)
    evidence = assemble(collected(P99, RATE, busy, facts=facts), Slo(), NAMES)
    assert measure(evidence, "accelerator_busy_ratio").value == pytest.approx(0.3)
    assert evidence.simulated
    config = measure(evidence, "config_max_batch_size")
    assert (config.value, config.baseline, config.worst) == (8.0, None, 8.0)
    alone = assemble(collected(P99, RATE, facts=facts), Slo(), NAMES)
    assert measure(alone, "accelerator_busy_ratio").proof == proof


def test_gaps_keep_their_reason_and_vanish_when_another_source_knows() -> None:
    gaps = (
        Gap("config_max_batch_size", GapReason.UNREACHABLE, "refused"),
        Gap("accelerator_busy_ratio", GapReason.NO_SERIES, "no exporter", "an exporter"),
        Gap("accelerator_busy_ratio", GapReason.NOT_SUPPORTED, "no NVML"),
        Gap("logs", GapReason.NOT_CONFIGURED, "no log files were named", "--log PATH"),
    )
    fact = Fact("config_max_batch_size", "items", 8.0, Proof("triton", "ModelConfig(m)"))
    evidence = assemble(collected(P99, RATE, facts=(fact,), gaps=gaps), Slo(), NAMES)
    by_signal = {gap.signal: gap for gap in evidence.gaps}
    assert "config_max_batch_size" not in by_signal
    assert by_signal["accelerator_busy_ratio"] == gaps[1]
    assert by_signal["logs"] == gaps[3]
    assert by_signal["queue_time_ms"] == Gap(
        "queue_time_ms", GapReason.NOT_CONFIGURED, "no source that was read offers it", "what gives queue_time_ms"
    )
    assert list(by_signal) == sorted(by_signal)


def test_a_source_that_failed_is_told_before_metrics_that_never_had_it() -> None:
    gaps = (
        Gap("config_max_batch_size", GapReason.NO_SERIES, "no metric for it was found"),
        Gap("config_max_batch_size", GapReason.UNREACHABLE, "refused", "the right address"),
    )
    evidence = assemble(replace(collected(P99, RATE), gaps=gaps), Slo(), NAMES)
    assert evidence.find("config_max_batch_size") == gaps[1]


def test_a_series_without_values_in_the_incident_is_a_gap() -> None:
    queue = series("queue_time_ms", [2.0] * 10 + [None] * 6)
    found = assemble(collected(P99, RATE, queue), Slo(), NAMES).find("queue_time_ms")
    assert isinstance(found, Gap)
    assert found.reason is GapReason.TOO_FEW_SAMPLES


def test_signals_of_another_release_and_points_off_the_grid_are_left_out() -> None:
    odd = replace(series("queue_time_ms", [2.0] * 16), times_s=tuple(t + 3.3 for t in series("x", [2.0] * 16).times_s))
    evidence = assemble(collected(P99, RATE, series("of_tomorrow", [1.0] * 16), odd), Slo(), NAMES)
    assert isinstance(evidence.find("of_tomorrow"), Gap)
    assert isinstance(evidence.find("queue_time_ms"), Gap)


def test_an_empty_record_is_evidence_of_nothing() -> None:
    evidence = assemble(collected(), Slo(), NAMES)
    assert evidence.incident.state is IncidentState.CANNOT_TELL
    assert evidence.measures == ()
    assert evidence.window.end_s == NOW_S
    assert evidence.baseline_window is None


def test_the_same_record_gives_the_same_evidence_in_any_order_of_series() -> None:
    queue = series("queue_time_ms", [2.0] * 10 + [900.0] * 6)
    one = assemble(collected(P99, RATE, queue), Slo(), NAMES)
    other = assemble(collected(queue, RATE, P99), Slo(), NAMES)
    assert one == other


def test_a_grid_reaches_back_to_the_oldest_point() -> None:
    built = series("x", [1.0, None, 3.0])
    grid = make_grid(NOW_S, WINDOW_S, [built])
    held = place(built, grid)
    assert grid.ends_s == (NOW_S - 20, NOW_S - 10, NOW_S)
    assert dict(held.at) == {0: 1.0, 2: 3.0}
    assert held.inside(0, 1) == [1.0]


OUTSIDE = Window(NOW_S - 90_000, NOW_S - 86_400)


def beside(values: list[float], usual: list[float], **others: list[float]) -> Evidence:
    """Evidence of a latency and of what is usual for it, named by the user."""
    rate = series("request_rate_rps", [50.0] * len(values))
    found = collected(series("e2e_p99_ms", values), rate)
    before = (series("e2e_p99_ms", usual), *(series(signal, held) for signal, held in others.items()))
    return assemble(replace(found, baseline=OUTSIDE, baseline_series=before), Slo(), NAMES)


def test_a_named_baseline_counts_where_the_range_holds_none() -> None:
    evidence = beside([2000.0] * 12, [100.0, 110.0, 120.0])
    assert evidence.baseline_window == OUTSIDE
    found = measure(evidence, "e2e_p99_ms")
    assert (found.value, found.baseline, found.baseline_window) == (2000.0, 110.0, OUTSIDE)
    # Nothing was named for the rate.
    assert measure(evidence, "request_rate_rps").baseline is None


def test_twice_what_is_usual_is_an_incident_also_below_the_slo() -> None:
    assert beside([400.0] * 12, [200.0] * 5).incident.state is IncidentState.INCIDENT
    assert beside([399.0] * 12, [200.0] * 5).incident.state is IncidentState.HEALTHY
    assert beside([400.0] * 12, []).incident.state is IncidentState.HEALTHY


def test_the_time_before_the_onset_beats_a_named_baseline() -> None:
    evidence = beside([100.0] * 10 + [2000.0] * 6, [900.0] * 5)
    assert measure(evidence, "e2e_p99_ms").baseline == 100.0
    assert evidence.baseline_window is not None
    assert evidence.baseline_window != OUTSIDE


def test_what_follows_from_signals_that_could_not_be_asked_is_not_said_to_be_unconfigured() -> None:
    away = tuple(Gap(signal, GapReason.UNREACHABLE, "no answer") for signal in ("e2e_p99_ms", "queue_time_ms"))
    derived = {signal: of for signal, of in reversed(DERIVED_SIGNALS) if "queue_time_ms" in of}
    assert derived
    names = (*NAMES, *(name(signal) for signal in derived))
    evidence = assemble(replace(collected(), gaps=away), Slo(), names)
    told = {gap.signal: gap for gap in evidence.gaps}
    for signal, of in derived.items():
        assert told[signal].reason is GapReason.UNREACHABLE
        assert told[signal].detail == f"it follows from {' and '.join(of)}"
    assert told["process_resets"].reason is GapReason.NOT_CONFIGURED
