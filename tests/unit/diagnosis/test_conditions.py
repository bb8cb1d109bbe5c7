"""Three-valued logic: absence is unknown, and every comparison keeps its numbers."""

from __future__ import annotations

import pytest

from latencydoctor.diagnosis.conditions import judge
from latencydoctor.model.diagnosis import Answer
from latencydoctor.model.evidence import GapReason
from latencydoctor.model.playbook import All, AnyOf, Basis, Comparison, Condition, FirstKnown, Leaf, LogLeaf, Not, Where
from tests.unit.builders import event, evidence, gap, measure
from tests.unit.diagnosis.rules import above

LIMITS = {"limit": 50.0, "twice": 2.0, "half": 0.5}
YES = Leaf("queue_time_ms", Comparison.ABOVE, Basis.VALUE, "limit", None)
NO = Leaf("queue_time_ms", Comparison.BELOW, Basis.VALUE, "limit", None)
UNKNOWN = Leaf("nowhere", Comparison.ABOVE, Basis.VALUE, "limit", None)
SEEN = evidence(measure("queue_time_ms", 80.0, 20.0), measure("e2e_mean_ms", 100.0), measure("idle_ms", 5.0, 0.0))


def answer(condition: Condition) -> Answer:
    return judge(condition, SEEN, LIMITS).answer


@pytest.mark.parametrize(
    ("comparison", "value", "expected"),
    [
        (Comparison.ABOVE, 50.0, Answer.NO),
        (Comparison.ABOVE, 50.001, Answer.YES),
        (Comparison.BELOW, 50.0, Answer.NO),
        (Comparison.BELOW, 49.999, Answer.YES),
        (Comparison.AT_LEAST, 50.0, Answer.YES),
        (Comparison.AT_LEAST, 49.999, Answer.NO),
        (Comparison.AT_MOST, 50.0, Answer.YES),
        (Comparison.AT_MOST, 50.001, Answer.NO),
    ],
)
def test_each_comparison_at_its_threshold(comparison: Comparison, value: float, expected: Answer) -> None:
    seen = evidence(measure("queue_time_ms", value))
    leaf = Leaf("queue_time_ms", comparison, Basis.VALUE, "limit", None)
    assert judge(leaf, seen, LIMITS).answer is expected


@pytest.mark.parametrize(
    ("first", "second", "both", "either"),
    [
        (YES, YES, Answer.YES, Answer.YES),
        (YES, NO, Answer.NO, Answer.YES),
        (YES, UNKNOWN, Answer.UNKNOWN, Answer.YES),
        (NO, NO, Answer.NO, Answer.NO),
        (NO, UNKNOWN, Answer.NO, Answer.UNKNOWN),
        (UNKNOWN, UNKNOWN, Answer.UNKNOWN, Answer.UNKNOWN),
    ],
)
def test_truth_table(first: Leaf, second: Leaf, both: Answer, either: Answer) -> None:
    for left, right in ((first, second), (second, first)):
        assert answer(All((left, right))) is both
        assert answer(AnyOf((left, right))) is either


def test_not_turns_yes_and_no_and_keeps_unknown() -> None:
    assert answer(Not(YES)) is Answer.NO
    assert answer(Not(NO)) is Answer.YES
    assert answer(Not(UNKNOWN)) is Answer.UNKNOWN


def test_absent_signal_names_its_gap_and_gives_no_value() -> None:
    seen = evidence(gaps=(gap("queue_time_ms", GapReason.UNREACHABLE),))
    (finding,) = judge(YES, seen, LIMITS).findings
    assert finding.answer is Answer.UNKNOWN
    assert finding.value is None
    assert finding.gap is not None
    assert finding.gap.reason is GapReason.UNREACHABLE


def test_ratio_to_baseline_is_shown_in_the_signals_own_unit() -> None:
    leaf = Leaf("queue_time_ms", Comparison.ABOVE, Basis.RATIO_TO_BASELINE, "twice", None)
    (finding,) = judge(leaf, SEEN, LIMITS).findings
    assert finding.answer is Answer.YES
    assert (finding.value, finding.threshold, finding.baseline, finding.unit) == (80.0, 40.0, 20.0, "ms")


@pytest.mark.parametrize("signal", ["e2e_mean_ms", "idle_ms"])
def test_ratio_without_a_baseline_or_to_zero_is_unknown(signal: str) -> None:
    leaf = Leaf(signal, Comparison.ABOVE, Basis.RATIO_TO_BASELINE, "twice", None)
    (finding,) = judge(leaf, SEEN, LIMITS).findings
    assert finding.answer is Answer.UNKNOWN
    assert finding.gap is not None
    assert finding.gap.reason is GapReason.TOO_FEW_SAMPLES


def test_baseline_itself_can_be_compared() -> None:
    assert answer(Leaf("queue_time_ms", Comparison.BELOW, Basis.BASELINE, "limit", None)) is Answer.YES
    assert answer(Leaf("e2e_mean_ms", Comparison.BELOW, Basis.BASELINE, "limit", None)) is Answer.UNKNOWN


def test_comparison_with_another_signal_times_a_threshold() -> None:
    leaf = Leaf("queue_time_ms", Comparison.ABOVE, Basis.VALUE, None, "e2e_mean_ms", "half")
    (finding,) = judge(leaf, SEEN, LIMITS).findings
    assert (finding.answer, finding.threshold) == (Answer.YES, 50.0)
    plain = Leaf("queue_time_ms", Comparison.ABOVE, Basis.VALUE, None, "e2e_mean_ms")
    assert answer(plain) is Answer.NO


def test_comparison_with_an_absent_signal_is_unknown_but_keeps_the_value() -> None:
    (finding,) = judge(Leaf("queue_time_ms", Comparison.ABOVE, Basis.VALUE, None, "nowhere"), SEEN, LIMITS).findings
    assert finding.answer is Answer.UNKNOWN
    assert finding.value == 80.0
    assert finding.proof is not None


def test_every_part_is_looked_at_and_keeps_its_order() -> None:
    judged = judge(All((NO, UNKNOWN, AnyOf((YES, Not(NO))))), SEEN, LIMITS)
    assert [one.answer for one in judged.findings] == [Answer.NO, Answer.UNKNOWN, Answer.YES, Answer.NO]


def test_log_events_are_counted_over_all_copies() -> None:
    seen = evidence(events=(event("gpu_oom", 2), event("gpu_oom", 1), event("queue_delay", 9)))
    assert judge(LogLeaf("gpu_oom", 3), seen, {}).answer is Answer.YES
    assert judge(LogLeaf("gpu_oom", 4), seen, {}).answer is Answer.NO
    (finding,) = judge(LogLeaf("gpu_oom", 3), seen, {}).findings
    assert finding.value == 3.0
    assert finding.proof is not None
    assert finding.proof.query == "gateway.log:7"


def test_no_log_at_all_is_unknown_not_no() -> None:
    assert judge(LogLeaf("gpu_oom", 1), evidence(), {}).answer is Answer.NO
    assert judge(LogLeaf("gpu_oom", 1), evidence(gaps=(gap("logs"),)), {}).answer is Answer.UNKNOWN


def test_the_first_way_that_can_be_told_decides_and_only_its_comparisons_are_shown() -> None:
    ways = FirstKnown((above("absent"), above("queue_time_ms"), above("cache_time_ms")))
    seen = evidence(measure("queue_time_ms", 5), measure("cache_time_ms", 50), gaps=(gap("absent"),))
    judged = judge(ways, seen, {"limit": 10.0})
    assert (judged.answer, [one.signal for one in judged.findings]) == (Answer.NO, ["queue_time_ms"])
    nothing = judge(ways, evidence(gaps=(gap("absent"),)), {"limit": 10.0})
    assert (nothing.answer, len(nothing.findings)) == (Answer.UNKNOWN, 3)


def test_a_part_that_applies_to_some_servers_is_unknown_on_the_others() -> None:
    part = Where("batch_size_mean", above("queue_time_ms"))
    queue = measure("queue_time_ms", 50)
    assert judge(part, evidence(queue, measure("batch_size_mean", 3)), {"limit": 10.0}).answer is Answer.YES
    elsewhere = judge(part, evidence(queue, gaps=(gap("batch_size_mean"),)), {"limit": 10.0})
    assert (elsewhere.answer, [one.signal for one in elsewhere.findings]) == (Answer.UNKNOWN, ["batch_size_mean"])


def test_never_where_a_signal_is_measured_is_a_no_that_says_so() -> None:
    never = Where("batch_size_mean", AnyOf(()))
    judged = judge(never, evidence(measure("batch_size_mean", 3)), {})
    (finding,) = judged.findings
    assert (judged.answer, finding.signal, finding.value, finding.comparison) == (
        Answer.NO,
        "batch_size_mean",
        3,
        "measured",
    )


def test_a_rise_is_told_in_the_signals_own_unit() -> None:
    rise = above("queue_time_ms", basis=Basis.RISE)
    (finding,) = judge(rise, evidence(measure("queue_time_ms", 50, 30)), {"limit": 10.0}).findings
    assert (finding.answer, finding.value, finding.threshold) == (Answer.YES, 50, 40)
    assert judge(rise, evidence(measure("queue_time_ms", 50)), {"limit": 10.0}).answer is Answer.UNKNOWN
