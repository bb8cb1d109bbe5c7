"""From a walk to one diagnosis: cause, confidence, symptoms, what is ruled out and what is missing."""

from __future__ import annotations

from pathlib import Path

from latencydoctor.content.playbooks import load
from latencydoctor.diagnosis.rank import diagnose
from latencydoctor.model.diagnosis import Answer, Confidence, Diagnosis
from latencydoctor.model.evidence import Gap, IncidentState
from tests.unit.builders import evidence, gap, measure, values
from tests.unit.diagnosis.test_walk import BACKLOG, BASELINE

PLAYBOOK = load(Path(__file__).parents[3] / "playbooks" / "latency-spike.yaml")


def found(changes: dict[str, float] | None = None, gaps: tuple[Gap, ...] = (), drop: tuple[str, ...] = ()) -> Diagnosis:
    numbers = {name: value for name, value in (BACKLOG | (changes or {})).items() if name not in drop}
    return diagnose(evidence(*values(numbers, BASELINE), gaps=gaps), PLAYBOOK)


def test_the_cause_carries_value_threshold_baseline_window_and_query() -> None:
    result = found()
    assert result.cause is not None
    assert result.cause.id == "batching-failed"
    assert result.cause.confidence is Confidence.HIGH
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


def test_an_unanswered_gate_lowers_confidence_and_is_named_first_among_what_is_missing() -> None:
    gaps = (gap("response_time_ms"), gap("network_time_ms"))
    result = found(gaps=gaps, drop=("network_time_ms",))
    assert result.cause is not None
    # Queue time alone answers the gate's question with no, so a missing network time changes nothing here.
    assert result.cause.confidence is Confidence.HIGH
    result = found(
        gaps=(gap("response_time_ms"), gap("kv_cache_usage_ratio"), gap("logs"), gap("settings_error")),
        drop=("settings_error",),
    )
    assert result.cause is not None
    assert result.cause.confidence is Confidence.MEDIUM
    assert [one.signal for one in result.missing] == ["settings_error", "response_time_ms", "logs"]


def test_healthy_has_no_cause_no_path_and_no_next_command() -> None:
    result = diagnose(evidence(*values(BACKLOG), state=IncidentState.HEALTHY), PLAYBOOK)
    assert (result.cause, result.path, result.next_command) == (None, (), "")


def test_cannot_tell_points_to_the_sources() -> None:
    result = diagnose(evidence(state=IncidentState.CANNOT_TELL), PLAYBOOK)
    assert result.cause is None
    assert result.next_command == "latencydoctor config check"


def test_an_incident_without_a_known_cause_says_so() -> None:
    result = diagnose(evidence(measure("e2e_p99_ms", 2000.0)), PLAYBOOK)
    assert result.cause is None
    assert result.inconclusive
    assert result.next_command == "latencydoctor diagnose --save incident.json.gz"


def test_symptoms_are_signals_that_moved_and_are_folded_under_the_cause() -> None:
    numbers = BACKLOG | {"e2e_p99_ms": 2140.0}
    result = diagnose(evidence(*values(numbers, BASELINE | {"e2e_p99_ms": 70.0})), PLAYBOOK)
    assert result.cause is not None
    assert [(one.signal, one.baseline, one.value) for one in result.cause.symptoms] == [("e2e_p99_ms", 70.0, 2140.0)]


def test_simulated_evidence_makes_a_simulated_diagnosis() -> None:
    assert not found().simulated
    seen = evidence(measure("accelerator_busy_ratio", 0.3, simulated=True))
    assert diagnose(seen, PLAYBOOK).simulated
