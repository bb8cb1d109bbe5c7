"""Three-valued logic: absence is unknown, and every comparison keeps its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.diagnosis.conditions import judge
from latencydoctor.model.diagnosis import Answer, Finding
from latencydoctor.model.evidence import Evidence, Gap, GapReason, Measure, Proof
from latencydoctor.model.playbook import All, AnyOf, Basis, Comparison, Condition, FirstKnown, Leaf, LogLeaf, Not, Where
from tests.unit.builders import WINDOW, event, evidence, gap, measure
from tests.unit.diagnosis.rules import above

LIMITS = {"limit": 50.0, "twice": 2.0, "half": 0.5}
YES = Leaf("queue_time_ms", Comparison.ABOVE, Basis.VALUE, "limit", None)
NO = Leaf("queue_time_ms", Comparison.BELOW, Basis.VALUE, "limit", None)
UNKNOWN = Leaf("nowhere", Comparison.ABOVE, Basis.VALUE, "limit", None)
SEEN = evidence(measure("queue_time_ms", 80.0, 20.0), measure("e2e_mean_ms", 100.0), measure("idle_ms", 5.0, 0.0))

# Every field differs from what a finding has where nothing is said.
QUEUE = replace(
    measure("queue_time_ms", 80.0, 20.0, simulated=True), window=replace(WINDOW, start_s=1.0), family="server"
)


def answer(condition: Condition) -> Answer:
    return judge(condition, SEEN, LIMITS).answer


def only(condition: Condition, seen: Evidence) -> Finding:
    (finding,) = judge(condition, seen, LIMITS).findings
    return finding


def as_seen(one: Measure, said: Answer, comparison: str, threshold: float | None, gap: Gap | None = None) -> Finding:
    """The finding that takes all it can from the measure."""
    return Finding(
        one.signal,
        said,
        comparison,
        one.value,
        threshold,
        one.baseline,
        one.unit,
        one.window,
        one.proof,
        gap,
        one.simulated,
        one.family,
    )


def as_absent(signal: str, comparison: str, gap: Gap) -> Finding:
    """The finding of which nothing is known but why, and when it was looked for."""
    return Finding(signal, Answer.UNKNOWN, comparison, None, None, None, "", WINDOW, None, gap, False, "")


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
    assert only(Leaf("queue_time_ms", Comparison.BELOW, Basis.BASELINE, "limit", None), SEEN).value == 20.0
    # A baseline of zero is a number like any other.
    assert only(Leaf("idle_ms", Comparison.BELOW, Basis.BASELINE, "limit", None), SEEN).value == 0.0


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


@pytest.mark.parametrize("comparison", [one for one in Comparison if one is not Comparison.MEASURED])
def test_a_comparison_keeps_all_that_is_known_of_its_signal(comparison: Comparison) -> None:
    found = only(Leaf("queue_time_ms", comparison, Basis.VALUE, "limit", None), evidence(QUEUE))
    said = Answer.YES if comparison in (Comparison.ABOVE, Comparison.AT_LEAST) else Answer.NO
    assert found == as_seen(QUEUE, said, comparison.value, 50.0)


def test_a_comparison_without_a_baseline_keeps_all_that_is_known_and_says_what_it_needs() -> None:
    alone = replace(QUEUE, baseline=None)
    found = only(Leaf("queue_time_ms", Comparison.ABOVE, Basis.RISE, "limit", None), evidence(alone))
    needs = Gap(
        "queue_time_ms", GapReason.TOO_FEW_SAMPLES, "no baseline to compare with", "a calm stretch or --baseline"
    )
    assert found == as_seen(alone, Answer.UNKNOWN, "above", None, needs)


def test_a_comparison_with_an_absent_signal_says_that_this_one_is_absent() -> None:
    other = gap("e2e_mean_ms", GapReason.DEADLINE)
    found = only(
        Leaf("queue_time_ms", Comparison.BELOW, Basis.VALUE, None, "e2e_mean_ms"), evidence(QUEUE, gaps=(other,))
    )
    assert found == as_seen(QUEUE, Answer.UNKNOWN, "below", None, other)


def test_of_an_absent_signal_nothing_is_told_but_the_gap() -> None:
    absent = gap("queue_time_ms", GapReason.UNREACHABLE)
    found = only(Leaf("queue_time_ms", Comparison.AT_MOST, Basis.VALUE, "limit", None), evidence(gaps=(absent,)))
    assert found == as_absent("queue_time_ms", "at_most", absent)


def test_a_comparison_with_another_signal_is_with_its_plain_value() -> None:
    seen = evidence(measure("queue_time_ms", 80.0), measure("e2e_mean_ms", 100.0))
    assert only(Leaf("queue_time_ms", Comparison.ABOVE, Basis.VALUE, None, "e2e_mean_ms"), seen).threshold == 100.0


def test_a_rise_is_the_value_less_its_baseline() -> None:
    rise = Leaf("queue_time_ms", Comparison.ABOVE, Basis.RISE, "limit", None)
    assert judge(rise, evidence(measure("queue_time_ms", 75, 20)), LIMITS).answer is Answer.YES
    assert judge(rise, evidence(measure("queue_time_ms", 70, 20)), LIMITS).answer is Answer.NO
    # 45 and 20 together would be more than 50.
    assert judge(rise, evidence(measure("queue_time_ms", 45, 20)), LIMITS).answer is Answer.NO


def test_where_a_signal_is_measured_and_nothing_is_compared_the_measure_is_the_reason() -> None:
    assert only(Where("queue_time_ms", All(())), evidence(QUEUE)) == as_seen(QUEUE, Answer.YES, "measured", None)


def test_where_a_signal_is_not_measured_its_gap_is_the_reason() -> None:
    absent = gap("queue_time_ms", GapReason.NOT_SUPPORTED)
    assert only(Where("queue_time_ms", YES), evidence(gaps=(absent,))) == as_absent("queue_time_ms", "measured", absent)


LOGS = gap("logs", GapReason.NOT_CONFIGURED)
PLACE = Proof("logs", "gateway.log:7")


@pytest.mark.parametrize(
    ("counts", "gaps", "said", "value", "proof", "why"),
    [
        ((2, 1), (), Answer.YES, 3.0, PLACE, None),
        ((2,), (), Answer.NO, 2.0, PLACE, None),
        ((), (), Answer.NO, 0.0, None, None),
        # Some of the logs could not be read: what was found counts, what was not found does not speak against it.
        ((3,), (LOGS,), Answer.YES, 3.0, PLACE, None),
        ((2,), (LOGS,), Answer.UNKNOWN, 2.0, PLACE, LOGS),
        ((), (LOGS,), Answer.UNKNOWN, None, None, LOGS),
        # Another gap is not about the logs.
        ((), (gap("metrics"),), Answer.NO, 0.0, None, None),
    ],
)
def test_a_count_of_log_events_and_what_it_rests_on(
    counts: tuple[int, ...],
    gaps: tuple[Gap, ...],
    said: Answer,
    value: float | None,
    proof: Proof | None,
    why: Gap | None,
) -> None:
    seen = replace(evidence(gaps=gaps, events=tuple(event("gpu_oom", count) for count in counts)), window=QUEUE.window)
    assert only(LogLeaf("gpu_oom", 3), seen) == Finding(
        "log:gpu_oom", said, "at_least", value, 3.0, None, "events", QUEUE.window, proof, why, False, "logs"
    )
