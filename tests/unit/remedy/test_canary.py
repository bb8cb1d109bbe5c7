"""The judge of a canary: compared with its peers, never promoted without data, never rolled back for what both have."""

from __future__ import annotations

import math
import time

import pytest

from latencydoctor.model.remedy import Decision, Reading
from latencydoctor.remedy.canary import (
    CanaryPolicy,
    CanaryRuling,
    CanaryWindow,
    binomial_tail,
    failures_in_a_row,
    judge_canary,
    missing,
    windows_left,
)

POLICY = CanaryPolicy()


def reading(
    p99_ms: float | None, errors: float | None = 0.0, requests: float | None = 600, memory: float | None = None
) -> Reading:
    return Reading(p99_ms, errors, memory, requests)


def window(canary_ms: float, baseline_ms: float, errors: float = 0.0, peers: float = 0.0) -> CanaryWindow:
    return CanaryWindow(reading(canary_ms, errors), reading(baseline_ms, peers, 2400))


def after(*windows: CanaryWindow, policy: CanaryPolicy = POLICY) -> CanaryRuling:
    return judge_canary(windows, policy)


def test_an_equal_canary_is_promoted_after_its_windows_and_not_before() -> None:
    steady = [window(500, 500)] * 5
    assert [after(*steady[:count]).decision for count in range(6)] == [None, None, None, None, None, Decision.KEEP]


def test_a_worse_canary_is_rolled_back_far_below_the_limit_at_the_first_look() -> None:
    assert after(*[window(300, 200)] * 2).decision is None
    ruling = after(*[window(300, 200)] * 3)
    assert ruling.decision is Decision.ROLL_BACK
    assert "1.50 times the baseline's" in ruling.reason
    assert ruling.ratio is not None
    assert ruling.ratio[0] == pytest.approx(1.5)


def test_what_slows_both_alike_is_no_fault_of_the_canary() -> None:
    noisy = [window(500 * load, 490 * load) for load in (1.0, 1.8, 0.9, 1.7, 1.0)]
    assert after(*noisy).decision is Decision.KEEP


def test_above_the_limit_but_not_worse_than_its_peers_is_held_in_the_end_and_never_rolled_back() -> None:
    bad = [window(1100, 1100)] * POLICY.max_windows
    rulings = [after(*bad[: count + 1]) for count in range(len(bad))]
    assert [one.decision for one in rulings[:-1]] == [None] * (len(bad) - 1)
    assert rulings[-1].decision is Decision.HOLD
    assert "not worse than the baseline" in rulings[-1].reason


def test_three_failures_in_a_row_are_a_second_witness_and_fail_fail_pass_fail_is_none() -> None:
    failing = [window(1000 * r, 1000 * r / 1.16) for r in (1.01, 1.02, 1.01)]
    below = [window(600 * r, 600 * r / 1.16) for r in (1.01, 1.02, 1.01)]
    assert after(*failing).decision is Decision.ROLL_BACK
    assert "its checks fail" in after(*failing).reason
    assert after(*below).decision is None
    assert after(failing[0], failing[1], window(990, 990 / 1.16), failing[2]).decision is None


def test_clearly_more_errors_roll_back_and_a_few_by_chance_do_not() -> None:
    ruling = after(*[window(500, 500, errors=0.01, peers=0.001)] * 3)
    assert ruling.decision is Decision.ROLL_BACK
    assert ruling.reason == "errors 1.00 %, the baseline has 0.10 %"
    assert after(*[window(500, 500, errors=1 / 600, peers=0.001)] * 3).decision is None
    assert after(*[window(500, 500, errors=0.004, peers=0.003)] * 3).decision is None


def test_errors_that_the_baseline_has_as_well_are_held_not_rolled_back() -> None:
    both = [window(500, 500, errors=0.02, peers=0.02)] * POLICY.max_windows
    assert after(*both).decision is Decision.HOLD


@pytest.mark.parametrize(
    ("canary", "baseline", "said"),
    [
        (Reading(None, None, None, None, "no samples"), reading(500), "canary: no samples"),
        (reading(500), Reading(None, None, None, None, "stale"), "baseline: stale"),
        (reading(math.nan), reading(500), "canary: no data on p99"),
        (reading(0.0), reading(500), "canary: no data on p99"),
        (reading(-500), reading(500), "canary: no data on p99"),
        (reading(500), reading(500, -0.1), "baseline: no data on errors"),
        (reading(500, None), reading(500), "canary: no data on errors"),
        (reading(500, requests=None), reading(500), "canary: no data on requests"),
        (reading(500, requests=150), reading(500), "canary: 150 requests of the 200 needed: 50 more"),
        (reading(500), reading(500, requests=math.inf), "baseline: no data on requests"),
    ],
)
def test_no_data_is_never_a_pass_and_three_in_a_row_are_held(canary: Reading, baseline: Reading, said: str) -> None:
    blind = CanaryWindow(canary, baseline)
    assert missing(blind, POLICY) == said
    good = [window(500, 500)] * 4
    assert after(*good, blind).decision is None
    assert said in after(*good, blind).reason
    assert after(*good, blind, blind, blind).decision is Decision.HOLD
    assert after(*[blind] * 20).decision is Decision.HOLD


def test_memory_that_is_not_stable_rolls_back_at_once_and_unknown_memory_is_no_pass() -> None:
    policy = CanaryPolicy(memory_limit_bytes=1000.0)
    full = CanaryWindow(reading(500, memory=1001.0), reading(500))
    assert after(full, policy=policy).decision is Decision.ROLL_BACK
    assert missing(window(500, 500), policy) == "canary: no data on memory"


def test_a_wide_spread_is_not_enough_evidence() -> None:
    wild = [window(500 * one, 500) for one in (0.7, 1.9, 0.6, 1.8, 0.9) * 3]
    ruling = after(*wild)
    assert ruling.decision is Decision.HOLD
    assert "not enough evidence" in ruling.reason


@pytest.mark.parametrize(
    ("at_least", "of", "share", "expected"),
    [(0, 5, 0.2, 1.0), (1, 1, 0.2, 0.2), (2, 2, 0.5, 0.25), (1, 2, 0.5, 0.75), (3, 2, 0.5, 0.0)],
)
def test_the_tail_of_a_binomial(at_least: int, of: int, share: float, expected: float) -> None:
    assert binomial_tail(at_least, of, share) == pytest.approx(expected)


def test_the_tail_of_thousands_neither_overflows_nor_leaves_its_range() -> None:
    assert 0.4 < binomial_tail(1000, 5000, 0.2) < 0.6
    assert binomial_tail(5000, 5000, 0.2) == pytest.approx(0.0)


def test_the_tail_of_a_busy_service_is_found_at_once() -> None:
    """The canary is in place while the judge thinks."""
    started_s = time.process_time()
    assert binomial_tail(500_000_000, 1_000_000_000, 0.5) == pytest.approx(0.5, abs=0.001)
    assert binomial_tail(500_100_000, 1_000_000_000, 0.5) == pytest.approx(1.27e-10, rel=0.02)
    assert time.process_time() - started_s < 10
    assert binomial_tail(1, 1, 1.0) == 1.0


def test_a_window_without_data_neither_fails_nor_ends_a_row_of_failures() -> None:
    bad, good = window(1500, 1500), window(300, 300)
    blind = CanaryWindow(reading(None), reading(300))
    assert failures_in_a_row([], POLICY) == 0
    assert failures_in_a_row([good, bad, blind, bad, blind], POLICY) == 2
    assert failures_in_a_row([bad, bad, good, bad], POLICY) == 1


def test_how_many_windows_a_promotion_takes_at_least() -> None:
    bad, good = window(1500, 1500), window(300, 300)
    assert windows_left([], POLICY) == 5
    assert windows_left([good] * 3, POLICY) == 2
    assert windows_left([good] * 9 + [bad], POLICY) == 3
    assert windows_left([good] * 7, POLICY) == 1


def test_a_canary_that_fails_its_customers_is_not_watched_for_three_windows() -> None:
    ruling = after(window(300, 300, errors=0.2))
    assert ruling.decision is Decision.ROLL_BACK
    assert ruling.reason == "errors 20.00 %, the baseline has 0.00 %"
    # In the incident both may fail, and a few failures more are left to the first look.
    assert after(window(300, 300, errors=0.2, peers=0.2)).decision is None
    assert after(window(300, 300, errors=0.03)).decision is None
    few = CanaryWindow(reading(300, 0.25, 8.0), reading(300, 0.0, 2400))
    assert after(few, policy=CanaryPolicy(min_requests=4)).decision is None
