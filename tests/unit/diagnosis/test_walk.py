"""The tree of the mission, walked on the numbers of the scene and on its classic false positives."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.playbooks import load
from latencydoctor.diagnosis.conditions import judge
from latencydoctor.diagnosis.walk import walk
from latencydoctor.model.diagnosis import Answer
from latencydoctor.model.playbook import Question
from tests.unit.builders import evidence, gap, values

PLAYBOOK = load(Path(__file__).parents[3] / "playbooks" / "latency-spike.yaml")
HEALTHY_GATES = {
    "settings_error": 0.0,
    "process_resets": 0.0,
    "settings_generation": 3.0,
    "accelerator_throttled_ratio": 0.0,
    "accelerator_clock_ratio": 1.0,
    "preprocess_share_ratio": 0.02,
    "preprocess_time_ms": 0.4,
    "network_time_ms": 2.0,
    "e2e_mean_ms": 1500.0,
    "server_time_ms": 1490.0,
    "compute_time_ms": 28.0,
    "execution_time_ms": 28.0,
}
BACKLOG = HEALTHY_GATES | {
    "queue_time_ms": 1400.0,
    "queue_depth": 400.0,
    "batch_size_mean": 8.0,
    "config_max_batch_size": 8.0,
    "config_dynamic_batching": 1.0,
    "accelerator_busy_ratio": 0.29,
    "cache_hit_ratio": 0.12,
    "cache_lookup_rate_rps": 350.0,
}
BASELINE = {
    "settings_generation": 3.0,
    "preprocess_time_ms": 0.4,
    "cache_hit_ratio": 0.12,
    "queue_time_ms": 3.0,
    "execution_time_ms": 22.0,
}


def cause(changes: dict[str, float], baseline: dict[str, float] | None = None, without: tuple[str, ...] = ()) -> str:
    numbers = {name: value for name, value in (BACKLOG | changes).items() if name not in without}
    before = BASELINE | (baseline or {})
    walked = walk(PLAYBOOK, evidence(*values(numbers, before)))
    return walked.verdict.cause or "cannot tell"


def test_scene_is_a_batching_failure_although_latency_would_suggest_more_devices() -> None:
    assert cause({}) == "batching-failed"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # Full batches on a busy device with a queue: capacity.
        ({"accelerator_busy_ratio": 0.96, "batch_size_mean": 31.5, "config_max_batch_size": 32.0}, "saturation"),
        # Busy, but batch 1 of 32: a GPU reads 100 % because nothing is batched.
        ({"accelerator_busy_ratio": 0.99, "batch_size_mean": 1.0, "config_max_batch_size": 32.0}, "batching-failed"),
        # Batching switched off altogether.
        (
            {
                "accelerator_busy_ratio": 0.99,
                "batch_size_mean": 1.0,
                "config_max_batch_size": 1.0,
                "config_dynamic_batching": 0.0,
            },
            "batching-failed",
        ),
        # Batch 1 without a backlog is legitimate.
        ({"batch_size_mean": 1.0, "queue_depth": 0.5, "queue_time_ms": 2.0}, "cannot tell"),
        ({"accelerator_throttled_ratio": 0.4}, "accelerator-throttled"),
        ({"accelerator_clock_ratio": 0.5}, "accelerator-throttled"),
        # A low clock on an idle device is no throttling.
        ({"accelerator_clock_ratio": 0.5, "accelerator_busy_ratio": 0.1}, "batching-failed"),
        ({"settings_error": 1.0}, "settings-failed-to-load"),
        ({"process_resets": 1.0}, "restart-in-progress"),
        ({"settings_generation": 4.0}, "recent-change"),
        ({"preprocess_share_ratio": 0.5, "preprocess_time_ms": 700.0}, "slow-preprocessing"),
        # A large share that was as large before is the workload, not the incident.
        ({"preprocess_share_ratio": 0.5, "preprocess_time_ms": 0.5}, "batching-failed"),
        ({"network_time_ms": 1200.0, "queue_time_ms": 10.0, "queue_depth": 1.0}, "network-or-front-end"),
        ({"network_time_ms": 1200.0}, "batching-failed"),
        (
            {
                "accelerator_busy_ratio": 0.95,
                "queue_time_ms": 20.0,
                "queue_depth": 1.0,
                "compute_time_ms": 1400.0,
                "batch_size_mean": 20.0,
                "config_max_batch_size": 32.0,
            },
            "compute-bound",
        ),
    ],
)
def test_causes(changes: dict[str, float], expected: str) -> None:
    assert cause(changes) == expected


def test_cache_that_collapsed_is_found_and_one_that_was_always_low_is_not() -> None:
    full = {"batch_size_mean": 20.0, "config_max_batch_size": 32.0}
    assert cause(full, {"cache_hit_ratio": 0.45}) == "cache-ineffective"
    assert cause(full, {"cache_hit_ratio": 0.12}) == "cannot tell"


def test_saturation_needs_the_device_and_says_unknown_without_it() -> None:
    full = {"batch_size_mean": 31.5, "config_max_batch_size": 32.0}
    assert cause(full, without=("accelerator_busy_ratio",)) == "cannot tell"


def test_unbatched_backlog_is_found_without_any_device_metric() -> None:
    without = ("accelerator_busy_ratio", "accelerator_clock_ratio", "accelerator_throttled_ratio")
    assert cause({"batch_size_mean": 1.0, "config_max_batch_size": 32.0}, without=without) == "batching-failed"


def test_without_any_evidence_every_question_is_unknown_and_no_cause_is_named() -> None:
    walked = walk(PLAYBOOK, evidence(gaps=(gap("queue_time_ms"),)))
    assert walked.verdict.cause is None
    assert {step.answer for step in walked.steps} == {Answer.UNKNOWN}


def test_every_step_keeps_the_question_its_answer_and_the_comparisons_behind_it() -> None:
    seen = evidence(*values(BACKLOG, BASELINE))
    walked = walk(PLAYBOOK, seen)
    thresholds = dict(PLAYBOOK.thresholds)
    asked = [PLAYBOOK.node(step.node) for step in walked.steps]
    assert [one.text for one in asked if isinstance(one, Question)] == [step.question for step in walked.steps]
    for step, one in zip(walked.steps, asked, strict=True):
        assert isinstance(one, Question)
        judged = judge(one.condition, seen, thresholds)
        assert (step.answer, step.findings) == (judged.answer, judged.findings)


def test_thresholds_can_be_overridden_by_name() -> None:
    seen = evidence(*values(BACKLOG, BASELINE))
    assert walk(PLAYBOOK, seen).verdict.cause == "batching-failed"
    # A deployment whose queue time of 1.4 s is normal.
    assert walk(PLAYBOOK, seen, (("queue_time_high_ms", 2000.0),)).verdict.cause is None


def test_the_four_questions_keep_the_missions_order() -> None:
    questions = [one.id for one in PLAYBOOK.questions if not one.gate]
    assert questions == ["saturated", "batching", "cache", "precision"]
