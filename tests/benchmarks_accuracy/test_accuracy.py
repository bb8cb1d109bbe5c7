"""The scores of the fault matrix: what counts as right, as sure, and as advising replicas."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.accuracy_baselines import largest_change, literal_tree
from benchmarks.accuracy_score import Told, figures
from benchmarks.accuracy_sources import FAMILIES, Pruned, Settings, families_of
from benchmarks.faults import Case, load_cases
from latencydoctor.model.evidence import Selection
from latencydoctor.model.readings import Discovery
from tests.unit.builders import evidence, measure

CASES = {case.id: case for case in load_cases()}
FAULT, HEALTHY = CASES["thermal"], CASES["healthy-idle"]


def told(
    case: Case = FAULT, cause: str | None = "thermal-throttling", confidence: str = "high", **more: object
) -> Told:
    one = Told(
        case=case,
        engine="triton",
        seed=0,
        removed="",
        state="incident",
        cause=cause,
        confidence=confidence if cause else "",
        scaling="wrong" if cause else "",
        ranked=(cause,) if cause else (),
        literal="saturation",
        largest=None,
        unproven=0,
    )
    return replace(one, **more)  # type: ignore[arg-type]  # Any field by name.


def test_a_fault_is_right_with_its_cause_and_a_healthy_case_without_an_incident() -> None:
    assert told().right
    assert not told(cause="saturation").right
    assert not told(cause=None).right
    assert told(HEALTHY, None, state="healthy").right
    assert told(HEALTHY, None, state="cannot tell").right
    assert not told(HEALTHY, None).right


def test_figures_are_shares_of_the_runs_they_are_about() -> None:
    runs = [
        told(),
        told(cause="saturation", ranked=("saturation", "thermal-throttling"), scaling="cures"),
        told(HEALTHY, None, state="healthy"),
        told(HEALTHY, None),
        told(cause="saturation", removed="accelerator"),
        told(cause="saturation", removed="accelerator", confidence="medium"),
    ]
    found = figures(runs)
    assert (found["top1"], found["top3"], found["false_alarm"]) == (0.5, 1.0, 0.5)
    assert found["wrong_confident"] == 0.5
    assert found["scale_out_on_do_not_scale"] == pytest.approx(1 / sum(one.case.do_not_scale for one in runs))
    assert (found["literal_tree_top1"], found["chance"]) == (0.0, 1.0)


def test_the_baselines_name_what_a_hasty_reader_would() -> None:
    busy = measure("accelerator_busy_ratio", 0.9, 0.5)
    assert literal_tree(evidence(busy)) == "saturation"
    assert literal_tree(evidence(measure("batch_size_mean", 1.1, 1.1))) == "batching-failed"
    assert literal_tree(evidence(measure("cache_hit_ratio", 0.1, 0.1))) == "cache-ineffective"
    assert literal_tree(evidence()) == "compute-bound"
    assert largest_change(evidence(busy, measure("cache_hit_ratio", 0.1, 0.9))) == "cache-ineffective"
    assert largest_change(evidence(busy, measure("retry_ratio", 0.1, 0.0))) == "retry-storm"
    assert largest_change(evidence()) is None


class Everything:
    """A source that has two names."""

    def discover(self, dialects: object, selection: object, at_s: float) -> Discovery:
        del dialects, selection, at_s
        names = frozenset({"DCGM_FI_DEV_GPU_UTIL", "nv_inference_count"})
        return Discovery(names, (), 15.0, None, (), (), names)

    def collect(self, queries: object) -> object:
        return queries


def test_a_family_taken_away_is_never_heard_of() -> None:
    found = Pruned(Everything(), "accelerator").discover((), Selection(""), 0.0)  # type: ignore[arg-type]  # Two methods.
    assert found.names == found.shared_names == {"nv_inference_count"}


def test_only_families_that_an_engine_could_have_are_taken_away() -> None:
    assert "tokens" in families_of("vllm")
    assert "tokens" not in families_of("triton")
    assert {name for engine in ("triton", "vllm", "torchserve") for name in families_of(engine)} == set(FAMILIES)


def test_settings_are_facts_with_their_units() -> None:
    (fact,) = Settings({"config_queue_delay_ms": 5.0}, {"config_queue_delay_ms": "ms"}).read(Selection("")).facts
    assert (fact.signal, fact.value, fact.unit) == ("config_queue_delay_ms", 5.0, "ms")


def test_every_label_of_the_matrix_is_a_cause_that_the_program_can_name() -> None:
    rules = {path.stem for path in (Path(__file__).parents[2] / "rules" / "causes").glob("*.yaml")}
    labels = {label for case in CASES.values() for label in (case.cause, *case.also_right) if label}
    assert labels <= rules
