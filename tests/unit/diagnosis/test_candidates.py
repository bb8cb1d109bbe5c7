"""What it may be where that is not settled: the nearest causes, each with what keeps it from holding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.diagnosis.candidates import MOST, candidates, most_asked_for, nearness_ratio
from latencydoctor.diagnosis.examine import examine
from latencydoctor.model.cause import CauseKind, CauseRule
from latencydoctor.model.evidence import Evidence, Measure
from latencydoctor.model.playbook import All, AnyOf, Condition, FirstKnown, Not, Where
from tests.unit.builders import evidence, measure
from tests.unit.diagnosis.rules import above, rule

A, B, C, D = "queue_time_ms", "compute_time_ms", "network_time_ms", "response_time_ms"


def high(signal: str) -> Measure:
    return measure(signal, 50, 2)


def low(signal: str) -> Measure:
    return measure(signal, 1, 2)


def near(rules: list[CauseRule], seen: Evidence, top: str = "") -> list[str]:
    examined = examine(rules, seen)
    named = next((one for one in examined if one.rule.id == top), None)
    return [one.id for one in candidates(examined, named, seen)]


def test_one_no_among_many_yes_is_near_and_says_which_no() -> None:
    seen = evidence(high(A), high(B), low(C))
    found = examine([rule("nearly", 10, All((above(A), above(B), above(C))))], seen)
    (one,) = candidates(found, None, seen)
    assert one.id == "nearly"
    assert [said.signal for said in one.speaking] == [A, B]
    assert [said.signal for said in one.against] == [C]
    assert one.needs == ()


def test_one_that_waits_for_a_metric_says_which() -> None:
    seen = evidence(high(A), high(B))
    found = examine([rule("blind", 10, All((above(A), above(B), above(C))))], seen)
    (one,) = candidates(found, None, seen)
    assert one.against == ()
    assert [gap.signal for gap in one.needs] == [C]


def test_the_nearest_come_first_and_no_more_than_can_be_looked_into() -> None:
    rules = [rule(f"r{number}", number, All((above(A), above(B), above(C)))) for number in range(1, MOST + 3)]
    rules.append(rule("nearest", 90, All((above(A), above(A), above(B), above(D), above(C)))))
    seen = evidence(high(A), high(B), low(C), high(D))
    assert near(rules, seen) == ["nearest", "r1", "r2"]


def test_what_is_far_refuted_or_only_a_setting_is_none() -> None:
    far = rule("far", 10, All((above(A), above(B), above(C))))
    refuted = rule("refuted", 20, All((above(A), above(D), above(C))), refute=above(D))
    setting = rule("setting", 30, All((above("config_queue_size"), above("config_queue_size"), above(B))))
    contributor = rule("lesser", 40, All((above(A), above(D), above(B))), kind=CauseKind.CONTRIBUTOR)
    doubts = [far, refuted, setting, contributor]
    seen = evidence(high(A), low(B), low(C), high(D), replace(measure("config_queue_size", 50), family="config"))
    assert near(doubts, seen) == []


def test_what_most_of_them_wait_for_would_decide() -> None:
    one = rule("one", 10, All((above(A), above(A), above("x"), above(B))))
    two = rule("two", 20, All((above(A), above(A), above(B), above("y"))))
    ruled_out = rule("out", 30, All((above(A), above(A), above(A), above(C), above("z"))))
    seen = evidence(high(A), low(C))
    found = candidates(examine([one, two, ruled_out], seen), None, seen)
    asked = most_asked_for(found)
    assert asked is not None
    assert asked.signal == B
    assert most_asked_for(()) is None


def test_a_deployments_own_threshold_counts() -> None:
    nearly = rule("nearly", 10, All((above(A), above(B), above(C))))
    seen, overrides = evidence(high(A), high(B), low(C)), (("nearly.limit", 100.0),)
    assert candidates(examine([nearly], seen, overrides), None, seen, overrides) == ()


def test_beside_a_cause_only_what_would_explain_it_counts() -> None:
    confirm = All((above(A), above(A), above(B)))
    rules = [
        rule("why", 10, confirm, explains=("where",)),
        rule("else", 20, confirm),
        rule("where", 30, above(A)),
    ]
    assert near(rules, evidence(high(A)), top="where") == ["why"]
    assert near(rules, evidence(high(A), low(B)), top="where") == []
    assert near(rules, evidence(high(A))) == ["why", "else"]


@pytest.mark.parametrize(
    ("condition", "ratio"),
    [
        (above(A), 1.0),
        (above(B), 0.0),
        (above(C), 0.5),
        (All((above(A), above(B))), 0.5),
        (All((above(A), above(C))), 0.75),
        (AnyOf((above(B), above(C))), 0.5),
        (FirstKnown((above(C), above(B))), 0.0),
        (FirstKnown((above(C), above(C))), 0.5),
        (Where(A, All((above(A), above(B)))), 0.5),
        (Where(C, above(A)), 0.5),
        (Not(above(A)), 0.0),
        (All(()), 1.0),
        (AnyOf(()), 0.0),
    ],
)
def test_nearness_is_the_share_that_holds(condition: Condition, ratio: float) -> None:
    assert nearness_ratio(condition, evidence(high(A), low(B)), {"limit": 10.0}) == ratio
