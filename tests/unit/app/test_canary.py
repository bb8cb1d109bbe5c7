"""Watching a canary: how windows grow, what is said meanwhile, and what is never a pass."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from latencydoctor.app.canary import LONGEST_WINDOW_S, CanaryWatch, watch_canary
from latencydoctor.app.ports import Progress
from latencydoctor.app.verify import Schedule
from latencydoctor.model.canary import CanaryCheck, CanaryKind, CanaryTrial
from latencydoctor.model.remedy import Decision, Reading
from latencydoctor.remedy.canary import CanaryPolicy
from latencydoctor.remedy.staging import Stage
from tests.fakes.arms import BETTER, SILENT, WORSE, FakeArms
from tests.fakes.clock import FakeClock
from tests.fakes.verifier import GOOD, SLOW

STAGE = Stage(CanaryKind.REPLICA, 0.5, (), "one of two")


class Bedside:
    """A watch, what it heard, and what it said."""

    def __init__(self, *pairs: tuple[Reading, Reading], absent: str = "", until_s: float = 1e12) -> None:
        self.arms, self.clock = FakeArms(*pairs), FakeClock()
        self.checks: list[CanaryCheck] = []
        self.said: list[str] = []
        self.absent = absent
        self.end_s = self.clock.now_s() + until_s

    def watch(self, *earlier: CanaryCheck) -> CanaryTrial | None:
        watch = CanaryWatch(
            self.arms, self.clock, self.hear, lambda: self.clock.now_s() > self.end_s,
            Schedule(), CanaryPolicy(), lambda: self.absent,
        )  # fmt: skip
        return watch_canary(STAGE, watch, self.checks.append, earlier)

    def hear(self, progress: Progress) -> None:
        assert progress.phase == "canary"
        self.said.append(progress.text)


def few(requests: float) -> Reading:
    return replace(GOOD, requests=requests)


def test_five_good_windows_promote_and_follow_each_other_without_a_gap() -> None:
    bedside = Bedside(BETTER)
    trial = bedside.watch()
    assert trial is not None
    assert (trial.decision, len(trial.checks), trial.kind, trial.share_ratio) == (
        Decision.KEEP, 5, CanaryKind.REPLICA, 0.5,
    )  # fmt: skip
    assert tuple(bedside.checks) == trial.checks
    spans = [(window.start_s, window.end_s) for window in bedside.arms.windows]
    assert all(end == start for (_, end), (start, _) in pairwise(spans))
    assert all(end - start == 10.0 for start, end in spans)
    assert bedside.said[0] == ("window 1: p99 120 ms, its peers 1500 ms; errors 0.00 %, 0.00 %; 3000 and 3000 requests")
    assert bedside.said[1] == "2 more windows before the first look; at least 4 more, about 40 s"


def test_a_canary_that_is_worse_is_rolled_back_below_every_limit() -> None:
    trial = Bedside(WORSE).watch()
    assert trial is not None
    assert trial.decision is Decision.ROLL_BACK
    assert "p99 is 4.00 times the baseline's" in trial.reason
    assert len(trial.checks) == 3


def test_failures_in_a_row_are_counted_in_each_window_and_count_on_after_a_restart() -> None:
    bedside = Bedside((SLOW, SLOW), (SLOW, SLOW), (few(5.0), few(5.0)), (SLOW, SLOW), until_s=40.0)
    assert bedside.watch() is None
    assert [check.failures_in_a_row for check in bedside.checks] == [1, 2, 2]
    again = Bedside((SLOW, SLOW), until_s=20.0)
    assert again.watch(*bedside.checks) is None
    assert [check.failures_in_a_row for check in again.checks] == [3]


def test_no_data_is_never_a_pass_and_three_windows_of_it_hold() -> None:
    trial = Bedside(SILENT).watch()
    assert trial is not None
    assert (trial.decision, len(trial.checks)) == (Decision.HOLD, 3)
    assert trial.reason == "no data in 3 windows in a row: canary: no data on requests"


def test_a_canary_that_does_not_run_has_shown_nothing() -> None:
    trial = Bedside(BETTER, absent="replica 2: max_batch_size: 32 asked for, 8 in effect").watch()
    assert trial is not None
    assert trial.decision is Decision.HOLD
    assert "replica 2: max_batch_size" in trial.reason


def test_a_window_with_too_few_requests_grows_by_what_is_lacking_and_says_until_when() -> None:
    bedside = Bedside((few(50.0), few(400.0)), (few(210.0), few(1600.0)), BETTER)
    trial = bedside.watch()
    assert trial is not None
    assert trial.decision is Decision.KEEP
    first, second = bedside.arms.windows[:2]
    assert first.start_s == second.start_s == trial.checks[0].start_s
    # 150 are lacking at 5 a second, and a tenth is added.
    assert second.end_s - first.end_s == 33.0
    assert bedside.said[0] == "50 on the canary and 400 beside it of the 200 requests needed on each; about 33 s more"
    assert trial.checks[0].note == ""


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        (0.0, "no requests come on one of the sides: not waited for"),
        (2.0, "at this rate enough requests would take 19 min more: not waited for"),
    ],
)
def test_traffic_that_would_take_too_long_is_not_waited_for(requests: float, told: str) -> None:
    bedside = Bedside((few(requests), GOOD))
    before_s = bedside.clock.now_s()
    trial = bedside.watch()
    assert trial is not None
    assert trial.decision is Decision.HOLD
    assert f"canary: {requests:.0f} requests of the 200 needed: {200 - requests:.0f} more" in trial.reason
    assert bedside.clock.now_s() - before_s < LONGEST_WINDOW_S
    assert bedside.said[0] == told


def test_an_interrupt_is_heard_while_it_waits() -> None:
    bedside = Bedside(BETTER, until_s=3.0)
    assert bedside.watch() is None
    assert bedside.checks == []


def test_close_to_the_limit_and_not_worse_than_its_peers_is_held_in_the_end() -> None:
    trial = Bedside((SLOW, SLOW)).watch()
    assert trial is not None
    assert (trial.decision, len(trial.checks)) == (Decision.HOLD, 15)
    assert "not yet healthy" in trial.reason
