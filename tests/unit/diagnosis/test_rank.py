"""From a walk to one diagnosis: cause, confidence, symptoms, what is ruled out and what is missing."""

from __future__ import annotations

from latencydoctor.diagnosis.rank import diagnose
from latencydoctor.model.cause import CauseKind, CauseRule
from latencydoctor.model.diagnosis import Answer, Confidence, Diagnosis, Forecasted
from latencydoctor.model.evidence import Evidence, Gap, IncidentState
from tests.unit.builders import evidence, gap, measure, values
from tests.unit.diagnosis.test_walk import BACKLOG, BASELINE
from tests.unit.shipped import KNOWLEDGE


def found(changes: dict[str, float] | None = None, gaps: tuple[Gap, ...] = (), drop: tuple[str, ...] = ()) -> Diagnosis:
    numbers = {name: value for name, value in (BACKLOG | (changes or {})).items() if name not in drop}
    return diagnose(evidence(*values(numbers, BASELINE), gaps=gaps), KNOWLEDGE)


def test_the_cause_carries_value_threshold_baseline_window_and_query() -> None:
    result = found()
    assert result.cause is not None
    assert result.cause.id == "batching-failed"
    assert result.next_command == "latencydoctor plan batch-floor -o plan.json"
    queue = next(one for one in result.cause.evidence if one.signal == "queue_time_ms")
    assert (queue.value, queue.threshold, queue.baseline, queue.unit) == (1400.0, 50.0, 3.0, "ms")
    assert queue.proof is not None
    assert queue.proof.query == "query_of_queue_time_ms"
    assert queue.window.length_s == 25


def test_what_was_ruled_out_keeps_its_numbers() -> None:
    ruled_out = {step.node: step for step in found().ruled_out}
    assert "saturated" in ruled_out
    busy = next(one for one in ruled_out["saturated"].findings if one.signal == "accelerator_busy_ratio")
    assert (busy.answer, busy.value, busy.threshold) == (Answer.NO, 0.29, 0.85)


def test_what_kept_a_question_from_an_answer_is_named_first_among_what_is_missing() -> None:
    result = found(
        gaps=(gap("response_time_ms"), gap("kv_cache_usage_ratio"), gap("logs"), gap("settings_error")),
        drop=("settings_error",),
    )
    assert [one.signal for one in result.missing] == ["settings_error", "response_time_ms", "logs"]


def test_rules_that_could_not_be_looked_at_say_what_they_need_and_cost_confidence() -> None:
    result = found()
    assert result.cause is not None
    assert result.cause.confidence is Confidence.MEDIUM
    needs = {one.id: [item.signal for item in one.needs] for one in result.not_evaluable}
    assert needs["pinned-memory-exhausted"] == ["pinned_memory_used_ratio"]
    assert result.deciding is not None


def test_the_tree_and_the_cause_agree_or_the_disagreement_is_told() -> None:
    result = found()
    assert result.tree is not None
    assert (result.tree.cause, result.tree.agrees) == ("batching-failed", Answer.YES)
    # The tree asks for throttling by itself; the rule also wants executions that take longer.
    result = found({"accelerator_throttled_ratio": 0.5, "execution_time_ms": 24.0})
    assert result.tree is not None
    assert result.cause is not None
    assert (result.cause.id, result.tree.cause, result.tree.agrees) == (
        "batching-failed",
        "accelerator-throttled",
        Answer.NO,
    )
    assert result.cause.confidence is Confidence.LOW


def test_every_other_cause_is_ruled_out_with_a_comparison_or_not_evaluable() -> None:
    result = found()
    looked_at = {one.id for one in (*result.causes_ruled_out, *result.contributing)}
    looked_at |= {one.id for one in result.not_evaluable}
    causes = {one.id for one in KNOWLEDGE.causes if one.kind is CauseKind.CAUSE}
    folded = {one.id for one in result.cause.folded} if result.cause else set()
    assert looked_at | folded | {"batching-failed"} == causes
    assert all(one.findings for one in result.causes_ruled_out)


def test_healthy_has_no_cause_no_path_and_no_next_command() -> None:
    result = diagnose(evidence(*values(BACKLOG), state=IncidentState.HEALTHY), KNOWLEDGE)
    assert (result.cause, result.path, result.next_command) == (None, (), "")


def test_cannot_tell_points_to_the_sources() -> None:
    result = diagnose(evidence(state=IncidentState.CANNOT_TELL), KNOWLEDGE)
    assert result.cause is None
    assert result.next_command == "latencydoctor config check"


def test_an_incident_without_a_known_cause_says_so() -> None:
    result = diagnose(evidence(measure("e2e_p99_ms", 2000.0)), KNOWLEDGE)
    assert result.cause is None
    assert result.inconclusive
    assert result.next_command == "latencydoctor diagnose --save incident.json.gz"


def test_symptoms_are_signals_that_moved_and_are_folded_under_the_cause() -> None:
    numbers = BACKLOG | {"e2e_p99_ms": 2140.0}
    result = diagnose(evidence(*values(numbers, BASELINE | {"e2e_p99_ms": 70.0})), KNOWLEDGE)
    assert result.cause is not None
    assert [(one.signal, one.baseline, one.value) for one in result.cause.symptoms] == [("e2e_p99_ms", 70.0, 2140.0)]


def test_simulated_evidence_makes_a_simulated_diagnosis() -> None:
    assert not found().simulated
    seen = evidence(measure("accelerator_busy_ratio", 0.3, simulated=True))
    assert diagnose(seen, KNOWLEDGE).simulated


def test_the_forecast_is_asked_about_the_cause_that_is_named_and_told_with_it() -> None:
    asked: list[str] = []

    def forecast(rule: CauseRule, seen: Evidence) -> Forecasted:
        asked.append(rule.id)
        assert seen.incident.state is IncidentState.INCIDENT
        return Forecasted(Answer.YES, "p99 is expected at 120 ms", 1500.0, 120.0, 1000.0)

    result = diagnose(evidence(*values(BACKLOG, BASELINE)), KNOWLEDGE, forecast)
    assert result.cause is not None
    assert asked == [result.cause.id]
    assert result.cause.forecast == Forecasted(Answer.YES, "p99 is expected at 120 ms", 1500.0, 120.0, 1000.0)
    assert result.cause.witnesses[-1] == "forecast"
    diagnose(evidence(state=IncidentState.HEALTHY), KNOWLEDGE, forecast)
    assert len(asked) == 1
