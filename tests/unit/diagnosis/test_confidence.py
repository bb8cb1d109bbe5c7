"""Confidence is earned by witnesses and lost by whatever could still overturn the cause."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.diagnosis.confidence import confidence_in
from latencydoctor.diagnosis.examine import examine
from latencydoctor.diagnosis.suspects import rank
from latencydoctor.model.cause import CauseRule
from latencydoctor.model.diagnosis import Answer, Confidence, Forecasted, TreeAnswer
from latencydoctor.model.evidence import Evidence, Measure
from latencydoctor.model.playbook import All
from tests.unit.builders import evidence, gap, measure
from tests.unit.diagnosis.rules import above, rule

QUEUE = replace(measure("queue_time_ms", 50, 2), family="server")
BUSY = replace(measure("accelerator_busy_ratio", 50, 2), family="accelerator")
DEPTH = replace(measure("queue_depth", 50, 2), family="server")
TWO = rule("two", 50, All((above("queue_time_ms"), above("accelerator_busy_ratio"))))
UPSTREAM = rule("upstream", 10, above("network_time_ms"), explains=("two",))
AGREES, DISAGREES = (TreeAnswer("two", answer, "") for answer in (Answer.YES, Answer.NO))


def confidence(rules: list[CauseRule], seen: Evidence, tree: TreeAnswer = AGREES) -> Confidence:
    examined = examine(rules, seen)
    top = next(one for one in examined if one.rule.id == "two")
    return confidence_in(top, rank(examined), examined, tree, seen)


def test_two_witnesses_and_nothing_against_it_is_high() -> None:
    assert confidence([TWO], evidence(QUEUE, BUSY)) is Confidence.HIGH


def test_two_signals_of_one_observer_are_one_witness() -> None:
    one = rule("two", 50, All((above("queue_time_ms"), above("queue_depth"))))
    assert confidence([one], evidence(QUEUE, DEPTH)) is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("rules", "measures", "expected"),
    [
        ([UPSTREAM, TWO], (), Confidence.MEDIUM),
        ([UPSTREAM, TWO], (measure("network_time_ms", 1, 2),), Confidence.HIGH),
        ([TWO, rule("besides", 60, above("queue_time_ms"))], (), Confidence.MEDIUM),
    ],
    ids=["what would explain it away is unknown", "it is ruled out", "another cause holds"],
)
def test_what_could_overturn_it_is_a_reservation(
    rules: list[CauseRule], measures: tuple[Measure, ...], expected: Confidence
) -> None:
    assert confidence(rules, evidence(QUEUE, BUSY, *measures, gaps=(gap("nothing"),))) is expected


def test_where_the_time_goes_without_the_reason_is_an_open_question() -> None:
    where = replace(TWO, is_generic=True)
    blind, seen = evidence(QUEUE, BUSY, gaps=(gap("nothing"),)), evidence(QUEUE, BUSY, measure("network_time_ms", 1, 2))
    assert confidence([UPSTREAM, where], blind) is Confidence.LOW
    assert confidence([UPSTREAM, where], seen) is Confidence.HIGH


def test_a_forecast_is_a_witness_and_its_no_is_a_reservation() -> None:
    one = rule("two", 50, above("queue_time_ms"))
    seen = evidence(QUEUE)
    for rules, answer, expected in (
        ([one], Answer.UNKNOWN, Confidence.MEDIUM),
        ([one], Answer.YES, Confidence.HIGH),
        ([one], Answer.NO, Confidence.LOW),
    ):
        examined = examine(rules, seen)
        said = Forecasted(answer, "in numbers")
        assert confidence_in(examined[0], rank(examined), examined, AGREES, seen, said) is expected


def test_a_tree_that_disagrees_and_a_missing_baseline_are_reservations() -> None:
    assert confidence([TWO], evidence(QUEUE, BUSY), DISAGREES) is Confidence.MEDIUM
    blind = replace(evidence(QUEUE, BUSY), baseline_window=None)
    assert confidence([TWO], blind) is Confidence.MEDIUM
    assert confidence([TWO], blind, DISAGREES) is Confidence.LOW


def test_more_reservations_than_two_are_no_worse_than_low() -> None:
    one = rule("two", 50, above("queue_time_ms"))
    blind = replace(evidence(QUEUE), baseline_window=None)
    assert confidence([one, UPSTREAM], blind, DISAGREES) is Confidence.LOW


def test_what_no_rule_confirms_is_low() -> None:
    doubtful = rule("two", 50, All((above("queue_time_ms"), above("accelerator_busy_ratio"))), refute=above("x"))
    assert confidence([doubtful], evidence(QUEUE, BUSY)) is Confidence.LOW
