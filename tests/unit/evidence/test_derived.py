"""Measures that follow from others, with their baselines and proofs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.derived import DERIVED_SIGNALS, derive
from latencydoctor.model.evidence import Measure
from tests.unit.builders import measure


def derived(*measures: Measure) -> dict[str, Measure]:
    return {one.signal: one for one in derive(measures)}


def test_a_sum_has_the_sum_of_the_baselines_and_a_proof_that_names_its_parts() -> None:
    found = derived(measure("compute_input_time_ms", 5, 1), measure("compute_output_time_ms", 7, 2))["copy_time_ms"]
    assert (found.value, found.baseline, found.unit) == (12, 3, "ms")
    assert found.proof.source == "derived"
    assert "query_of_compute_input_time_ms" in found.proof.query
    assert "query_of_compute_output_time_ms" in found.proof.query


def test_a_missing_part_makes_no_measure_and_a_missing_baseline_makes_none() -> None:
    assert derived(measure("compute_input_time_ms", 5, 1)) == {}
    found = derived(measure("compute_input_time_ms", 5, 1), measure("compute_output_time_ms", 7))["copy_time_ms"]
    assert (found.baseline, found.baseline_window) == (None, None)


def test_a_setting_counts_as_its_own_baseline() -> None:
    instances = replace(measure("config_instance_count", 2), constant=True)
    found = derived(measure("instance_busy_ratio", 1.8, 0.4), instances)["instance_busy_share_ratio"]
    assert found.value == pytest.approx(0.9)
    assert found.baseline == pytest.approx(0.2)


def test_a_ratio_over_nothing_does_not_exist() -> None:
    assert "instance_busy_share_ratio" not in derived(
        measure("instance_busy_ratio", 1.8, 0.4), measure("config_instance_count", 0)
    )


def test_an_engines_step_comes_before_a_batch_as_the_time_of_an_execution() -> None:
    step, batch = measure("inter_token_latency_mean_ms", 40, 20), measure("compute_time_ms", 900, 500)
    assert derived(step, batch)["execution_time_ms"].value == 40
    assert derived(batch)["execution_time_ms"].value == 900


@pytest.mark.parametrize(
    ("size", "slowdown"),
    [((8.0, 8.0), 2.0), ((16.0, 8.0), 1.0), ((4.0, 8.0), 2.0)],
    ids=["same size", "twice the size may take twice the time", "smaller is no excuse"],
)
def test_growth_in_size_is_not_held_against_the_device(size: tuple[float, float], slowdown: float) -> None:
    found = derived(measure("compute_time_ms", 50, 25), measure("batch_size_mean", *size))
    assert found["execution_slowdown_ratio"].value == pytest.approx(slowdown)
    assert found["execution_slowdown_ratio"].baseline == 1.0


def test_no_slowdown_without_a_size_or_a_baseline() -> None:
    assert "execution_slowdown_ratio" not in derived(measure("compute_time_ms", 50, 25))
    assert "execution_slowdown_ratio" not in derived(measure("compute_time_ms", 50), measure("batch_size_mean", 8, 8))


def test_what_a_source_gives_by_itself_is_left_alone() -> None:
    assert "copy_time_ms" not in derived(
        measure("copy_time_ms", 1), measure("compute_input_time_ms", 5), measure("compute_output_time_ms", 7)
    )


def test_a_simulated_part_makes_it_simulated() -> None:
    parts = measure("compute_input_time_ms", 5, simulated=True), measure("compute_output_time_ms", 7)
    assert derived(*parts)["copy_time_ms"].simulated


def test_every_derived_signal_has_a_name_of_the_same_unit_and_known_parts() -> None:
    names = {name.id for name in read_signals(locate())[0]}
    assert {signal for signal, _ in DERIVED_SIGNALS} <= names
    assert {part for _, parts in DERIVED_SIGNALS for part in parts} <= names
