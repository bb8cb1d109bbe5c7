"""A prediction beside what verification measured of it, and the batches that ran since the change."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from latencydoctor.model.reached import BatchesRun, Executions, Reached
from latencydoctor.model.remedy import Check, Decision, Prediction, Verification
from latencydoctor.remedy.reached import batches_run, reached
from latencydoctor.report import change, machine, markdown
from latencydoctor.report.reached import sizes_line, why_outside
from tests.unit.app.test_drill import PLAN


def check(hit_ratio: float | None, *, conclusive: bool = True, busy: float | None = None) -> Check:
    also = () if busy is None else (("accelerator_busy_ratio", busy),)
    return Check(0.0, 200.0, 0.0, None, 3000.0, True, conclusive, "", hit_ratio, also)


CHECKS = (check(0.40, busy=0.6), check(0.46, busy=0.7), check(0.47), check(0.9, conclusive=False, busy=0.99))
PREDICTIONS = (
    Prediction("cache_hit_ratio", "ratio", 0.12, 0.45, 0.43, 0.47, "counted"),
    Prediction("e2e_p99_ms", "ms", 2000.0, 100.0, 90.0, 110.0, "simulated"),
    Prediction("capacity_rps", "requests/s", 1.0, 2.0, None, None, "fitted"),
    Prediction("accelerator_busy_ratio", "ratio", 0.29, None, None, None, "not predicted"),
)
P99_OUTSIDE = Reached("e2e_p99_ms", "ms", 161.0, 149.0, 174.0, 196.0, within=False)
RAN = BatchesRun(16, ((4, 10), (16, 70), (24, 20)), 100, 16.4, 0.9)


def test_it_is_the_middle_of_the_conclusive_checks_beside_what_was_predicted() -> None:
    found = {one.signal: one for one in reached(PREDICTIONS, CHECKS)}
    assert (found["cache_hit_ratio"].measured, found["cache_hit_ratio"].within) == (0.46, True)
    assert (found["e2e_p99_ms"].measured, found["e2e_p99_ms"].within) == (200.0, False)
    assert found["accelerator_busy_ratio"].measured == pytest.approx(0.65)
    assert found["accelerator_busy_ratio"].within is None


@pytest.mark.parametrize(("measured", "within"), [(0.05, False), (0.3, True), (1.0, True)])
def test_an_interval_without_an_upper_end_holds_all_above_its_lower(measured: float, within: bool) -> None:
    told = Prediction("cache_hit_ratio", "ratio", 0.1, 0.2, 0.1, None, "some load cannot be carried")
    assert reached([told], [check(measured)])[0].within is within


def test_what_no_check_measures_is_not_known() -> None:
    found = {one.signal: one for one in reached(PREDICTIONS, (check(None), check(None, conclusive=False)))}
    assert (found["capacity_rps"].measured, found["capacity_rps"].within) == (None, None)
    assert (found["cache_hit_ratio"].measured, found["cache_hit_ratio"].within) == (None, None)
    assert [one.measured for one in reached(PREDICTIONS, ())] == [None] * 4


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # The model was loaded with the change: all that is counted ran since.
        (None, {4: 10, 16: 70, 24: 20}, ((4, 10), (16, 70), (24, 20))),
        ({16: 30}, {4: 10, 16: 100, 24: 20}, ((4, 10), (16, 70), (24, 20))),
        ({16: 70}, {16: 70, 24: 1}, ((24, 1),)),
        # Loaded anew in between: a count fell, or a size is gone.
        ({16: 500}, {16: 100}, ((16, 100),)),
        ({8: 500}, {16: 600}, ((16, 600),)),
    ],
)
def test_batches_are_counted_from_the_change_on(
    before: dict[int, int] | None, after: dict[int, int], expected: tuple[tuple[int, int], ...]
) -> None:
    ran = batches_run(None if before is None else counts(before), counts(after))
    assert ran is not None
    assert ran.executions == expected


def counts(by_size: dict[int, int], floor: int | None = 16) -> Executions:
    return Executions(tuple(sorted(by_size.items())), floor)


def test_the_share_at_the_floor_and_the_mean_are_of_executions() -> None:
    ran = batches_run(counts({}), counts({4: 10, 16: 70, 24: 20}))
    assert ran is not None
    assert (ran.count, ran.share_at_floor_ratio) == (100, 0.9)
    assert ran.mean_size == pytest.approx(16.4)
    without = batches_run(counts({}), counts({4: 10}, floor=None))
    assert without is not None
    assert without.share_at_floor_ratio is None


def test_without_counts_or_without_an_execution_nothing_is_claimed() -> None:
    assert batches_run(counts({4: 1}), None) is None
    assert batches_run(counts({4: 1}), counts({4: 1})) is None


def verified(batches: BatchesRun | None = RAN) -> Verification:
    return Verification(Decision.KEEP, "three passed", CHECKS, reached(PREDICTIONS, CHECKS), batches)


def test_both_are_shown_on_one_line_and_the_batches_below() -> None:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    change.show_reached(verified(), console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "cache hit ratio: predicted 45 %, reached 46 %, within the interval",
        "p99 latency: predicted 100 ms, reached 200 ms, outside the interval",
        "accelerator busy: not predicted, reached 65 %",
        "why outside: not known, what else was predicted came as predicted: cache hit ratio",
        "batches: 100 executions since the change, 16.4 items on average; 90 % held at least the preferred 16",
        "  executions by size: 4: 10, 16: 70, 24: 20",
    ]


def outside(*others: Reached) -> list[str]:
    console = Console(file=io.StringIO(), width=160, color_system=None)
    change.show_reached(dataclasses.replace(verified(None), reached=(P99_OUTSIDE, *others)), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_p99_outside_its_interval_is_told_with_what_else_came_otherwise() -> None:
    way = Reached("network_time_ms", "ms", 0.8, None, None, 5.0, None)
    rate = Reached("request_rate_rps", "requests/s", 325.0, None, None, 370.0, None)
    size = Reached("batch_size_mean", "items", 14.2, None, None, 14.4, None)
    unknown = Reached("instance_busy_ratio", "", None, None, None, 0.6, None)
    told = outside(way, rate, size, unknown)
    assert told[0] == "p99 latency: predicted 161 ms, reached 196 ms, outside the interval"
    assert told[-1] == (
        "why outside: time outside the server is 5 ms and not 0.8 ms, "
        "request rate is 370 requests/s and not 325 requests/s"
    )
    assert outside(size)[-1] == "why outside: not known, what else was predicted came as predicted: mean batch size"
    assert outside()[-1] == "why outside: not known, nothing else that was predicted is measured"
    inside = dataclasses.replace(
        verified(None), reached=(Reached("e2e_p99_ms", "ms", 1.0, 0.9, 1.1, 1.0, within=True), way)
    )
    assert why_outside(inside.reached) == ""
    document = "\n".join(markdown._plan(PLAN, dataclasses.replace(verified(None), reached=(P99_OUTSIDE, way))))
    assert "Why p99 lies outside its interval: time outside the server is 5 ms and not 0.8 ms." in document


def test_of_many_sizes_those_are_shown_that_ran_most() -> None:
    many = tuple((size, 1000 * (size % 5)) for size in range(1, 31))
    line = sizes_line(BatchesRun(16, many, 60_000, 15.0, 0.5), 3)
    assert line == "executions by size: 4: 4,000, 9: 4,000, 14: 4,000 and 27 more sizes"


def test_the_report_and_the_data_hold_the_same() -> None:
    told = "\n".join((*markdown._plan(PLAN, None), *markdown._verification(verified())))
    assert (
        "Batches: 100 executions since the change, 16.4 items on average; 90 % held at least the preferred 16." in told
    )
    assert "Executions by size: 4: 10, 16: 70, 24: 20." in told
    plain = machine.plain(verified())
    assert isinstance(plain, dict)
    batches, found = plain["batches"], plain["reached"]
    assert isinstance(batches, dict)
    assert isinstance(found, list)
    assert batches["share_at_floor_ratio"] == 0.9
    assert found[0] == {
        "signal": "cache_hit_ratio", "unit": "ratio", "predicted": 0.45, "low": 0.43, "high": 0.47,
        "measured": 0.46, "within": True,
    }  # fmt: skip
    assert "no floor is set" in "\n".join(markdown._verification(verified(BatchesRun(None, ((1, 3),), 3, 1.0, None))))
