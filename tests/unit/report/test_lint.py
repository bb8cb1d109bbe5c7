"""A claim without its proof is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.diagnosis.rank import Knowledge, diagnose
from latencydoctor.model.diagnosis import Diagnosis, Finding
from latencydoctor.model.evidence import Proof, Window
from latencydoctor.model.playbook import All, Playbook, Verdict
from latencydoctor.report.lint import unproven
from tests.unit.builders import evidence, gap, measure
from tests.unit.diagnosis.rules import above, rule

TREE = Playbook("tree", "", "", "end", (), (), (Verdict("end", None, "nothing", "nothing", "look"),))
RULES = (
    rule("up", 10, above("queue_time_ms"), explains=("down",), symptoms=("e2e_p99_ms",)),
    rule("down", 20, above("compute_time_ms")),
    rule("besides", 30, above("cache_time_ms")),
    rule("out", 40, above("network_time_ms")),
    rule("unseen", 50, All((above("response_time_ms"), above("queue_time_ms")))),
)


def diagnosed() -> Diagnosis:
    moved = (measure(signal, 50, 2) for signal in ("queue_time_ms", "compute_time_ms", "cache_time_ms", "e2e_p99_ms"))
    seen = evidence(*moved, measure("network_time_ms", 1, 1), gaps=(gap("response_time_ms"),))
    return diagnose(seen, Knowledge(TREE, RULES))


def test_a_proven_diagnosis_has_nothing_to_say() -> None:
    assert unproven(diagnosed()) == ()


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        ({"value": None}, "value"),
        ({"threshold": None}, "threshold"),
        ({"proof": None}, "query"),
        ({"proof": Proof("prometheus", "")}, "query"),
        ({"window": Window(5, 5)}, "window"),
    ],
)
def test_each_missing_part_of_a_proof_is_named(change: dict[str, object], lacks: str) -> None:
    result = diagnosed()
    assert result.cause is not None
    finding: Finding = replace(result.cause.evidence[0], **change)  # type: ignore[arg-type]  # One field at a time.
    broken = replace(result, cause=replace(result.cause, evidence=(finding,)))
    assert unproven(broken) == (f"cause up: queue_time_ms has no {lacks}",)


def test_symptoms_need_their_baseline_and_every_other_cause_its_comparisons() -> None:
    result = diagnosed()
    assert result.cause is not None
    symptom = replace(result.cause.symptoms[0], baseline=None)
    assert unproven(replace(result, cause=replace(result.cause, symptoms=(symptom,)))) == (
        "symptoms of up: e2e_p99_ms has no baseline",
    )
    bare = replace(result.contributing[0], findings=())
    assert unproven(replace(result, contributing=(bare,))) == ("contributing besides: no comparison at all",)
    unseen = replace(result.not_evaluable[0], needs=())
    assert unproven(replace(result, not_evaluable=(unseen,))) == (
        "not evaluable unseen: it does not say what it needs",
    )
