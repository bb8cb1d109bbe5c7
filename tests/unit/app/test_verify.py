"""When windows lie, and what a metrics source has to show before anything is believed."""

from __future__ import annotations

import dataclasses
import math

import pytest

from latencydoctor.app.ports import Cancelled, Progress
from latencydoctor.app.treat import never
from latencydoctor.app.verify import Schedule, Watch, measure, verify, wait_until
from latencydoctor.model.evidence import Window
from latencydoctor.model.reached import Executions
from latencydoctor.model.remedy import Check, Decision, Plan, Prediction, Reading, Requirement, Verification
from latencydoctor.remedy.judge import JudgePolicy
from tests.fakes.clock import FakeClock
from tests.fakes.verifier import GOOD, NOTHING, FakeVerifier

PLAN = Plan(
    1, "f", "", "t", 0.0, (), (), "", "", (), (), "", (), (Requirement("e2e_p99_ms", "ms", 1000.0),), (), False, ""
)
START_S = FakeClock().start_s


def run(
    *readings: Reading, cancelled: Cancelled = never
) -> tuple[Verification | None, list[Window], list[Check], list[str]]:
    said: list[Progress] = []
    verifier, checks = FakeVerifier(*readings), list[Check]()
    watch = Watch(verifier, FakeClock(), said.append, cancelled, Schedule(6.0, 10.0, 2.0), JudgePolicy())
    found = verify(PLAN, watch, checks.append)
    return found, verifier.windows, checks, [progress.text for progress in said]


def test_windows_begin_after_the_backlog_has_drained_and_do_not_overlap() -> None:
    found, windows, checks, said = run(GOOD)
    assert found is not None
    assert (found.decision, len(found.checks)) == (Decision.KEEP, 3)
    assert found.checks == tuple(checks)
    assert [(round(w.start_s - START_S, 3), round(w.end_s - START_S, 3)) for w in windows] == [
        (6, 16),
        (16, 26),
        (26, 36),
    ]
    assert said[0] == "check 1 passed: p99 120 ms, errors 0.00 %"


def test_what_was_predicted_stands_beside_what_was_measured_and_batches_are_counted_from_the_change() -> None:
    counts = iter((Executions(((8, 5),), 16), Executions(((8, 6), (16, 9)), 16)))
    seen = dataclasses.replace(GOOD, also=(("instance_busy_ratio", 0.5), ("batch_size_mean", math.nan)))
    plan = dataclasses.replace(
        PLAN,
        predictions=(
            Prediction("instance_busy_ratio", "instances", None, 0.55, None, None, ""),
            Prediction("batch_size_mean", "items", None, 16.0, None, None, ""),
            Prediction("e2e_p99_ms", "ms", None, 100.0, 90.0, 130.0, ""),
        ),
    )
    watch = Watch(
        FakeVerifier(seen), FakeClock(), lambda _: None, never, Schedule(), JudgePolicy(), lambda: next(counts)
    )
    found = verify(plan, watch, lambda _: None)
    assert found is not None
    assert [(one.measured, one.within) for one in found.reached] == [(0.5, None), (None, None), (120.0, True)]
    assert found.batches is not None
    assert (found.batches.executions, found.batches.share_at_floor_ratio) == (((8, 1), (16, 9)), 0.9)


def test_a_window_with_too_few_requests_grows_until_there_are_enough() -> None:
    few = dataclasses.replace(GOOD, requests=120.0)
    _, windows, checks, said = run(few, GOOD)
    assert [round(w.length_s) for w in windows] == [10, 20, 10, 10]
    assert [check.conclusive for check in checks] == [False, True, True, True]
    assert "(120 requests of the 200 needed: 80 more)" in said[0]


def test_a_window_with_too_few_vip_requests_grows_until_there_are_enough() -> None:
    plan = dataclasses.replace(PLAN, requirements=(Requirement("vip_p99_ms", "ms", 500.0),))
    few = dataclasses.replace(GOOD, also=(("vip_requests", 60.0),))
    verifier = FakeVerifier(few, dataclasses.replace(GOOD, also=(("vip_requests", 120.0), ("vip_p99_ms", 90.0))))
    watch = Watch(verifier, FakeClock(), lambda _: None, never, Schedule(), JudgePolicy())
    assert verify(plan, watch, lambda _: None) is not None
    assert [round(w.length_s) for w in verifier.windows] == [10, 20, 10, 10]


def test_a_restart_spoils_the_window_it_is_in_and_no_other() -> None:
    restarted = dataclasses.replace(GOOD, requests=900.0, note="the server was restarted inside the window")
    found, windows, _, _ = run(restarted, GOOD)
    assert found is not None
    assert found.decision is Decision.KEEP
    assert [round(w.length_s) for w in windows] == [10, 10, 10, 10]


def test_no_data_at_all_does_not_grow_and_is_held() -> None:
    found, windows, _, said = run(NOTHING)
    assert found is not None
    assert found.decision is Decision.HOLD
    assert {round(w.length_s) for w in windows} == {10}
    assert said[0] == "check 1 inconclusive: no p99, no error ratio (no data on requests)"


def test_an_interrupt_ends_it_without_a_decision() -> None:
    assert run(GOOD, cancelled=lambda: True)[0] is None
    watch = Watch(FakeVerifier(GOOD), FakeClock(), lambda _: None, lambda: True, Schedule(), JudgePolicy())
    assert measure(PLAN, watch) is None


@pytest.mark.parametrize("asked_after", [0, 3])
def test_waiting_stops_within_a_slice(asked_after: int) -> None:
    clock = FakeClock()
    answers = iter([False] * asked_after)
    assert not wait_until(clock.now_s() + 60, clock, lambda: next(answers, True))
    assert clock.slept_s <= asked_after * 0.2 + 1e-6


@pytest.mark.parametrize(("deadline_ms", "settle_s"), [(None, 6.0), (2000.0, 6.0), (8000.0, 9.0)])
def test_a_fix_is_not_judged_by_requests_that_waited_before_it(deadline_ms: float | None, settle_s: float) -> None:
    schedule = Schedule().after_backlog(deadline_ms)
    assert (schedule.settle_s, schedule.window_s) == (settle_s, Schedule().window_s)
