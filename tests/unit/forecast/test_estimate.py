"""Estimates: the interval holds what other windows show, and overload is said, never a number."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.curve import ServiceCurve
from latencydoctor.forecast.estimate import Band, estimate
from latencydoctor.forecast.queue import Batching, Scenario, simulate

SMALL = ServiceCurve(20.0, 1.0, error_ratio=0.01, slope_error_ms=0.02, centre=12.0)
GOOD = Batching(True, 16, 32, 100.0)
BAD = Batching(True, 0, 8, 0.0)


def scenario(rate_rps: float, batching: Batching = GOOD) -> Scenario:
    return Scenario(Traffic(rate_rps), SMALL, batching, outside_ms=2.0)


def p99(found: Band | None) -> Band:
    assert found is not None
    return found


@pytest.mark.parametrize(("rate_rps", "batching"), [(310.0, GOOD), (260.0, BAD)])
def test_the_interval_holds_other_windows_with_other_curves(rate_rps: float, batching: Batching) -> None:
    one = scenario(rate_rps, batching)
    band = p99(estimate(one).p99_ms)
    dice = Random(3)
    held = 0
    for seed in range(40):
        other = replace(one, curve=SMALL.shifted(dice.gauss(0, 1), dice.gauss(0, 1)))
        seen = simulate(other, 4_000, seed=1000 + seed)
        assert seen is not None
        held += band.low <= seen.percentile_ms(0.99) <= (band.high or float("inf"))
    assert held >= 36


def test_the_interval_is_narrow_where_there_is_room() -> None:
    band = p99(estimate(scenario(310.0)).p99_ms)
    assert band.high is not None
    assert (band.high - band.low) / band.value < 0.35


def test_it_widens_towards_the_limit() -> None:
    def width(rate_rps: float) -> float:
        band = p99(estimate(scenario(rate_rps, BAD)).p99_ms)
        return float("inf") if band.high is None else (band.high - band.low) / band.value

    assert width(180.0) < width(250.0) < width(270.0) < width(281.0)


def test_overload_is_said_and_has_no_figure() -> None:
    found = estimate(scenario(300.0, BAD))
    assert found.unstable == "arrivals exceed what can be served: 300 requests/s arrive and 286 can be served"
    assert (found.p50_ms, found.p95_ms, found.p99_ms, found.busy_ratio) == (None, None, None, None)
    assert found.load_ratio == pytest.approx(1.05, abs=0.01)
    assert found.capacity_rps.value == pytest.approx(285.7, abs=0.1)


def test_what_cannot_be_told_from_the_limit_is_said() -> None:
    assert "cannot be told from the limit" in estimate(scenario(285.5, BAD)).unstable


def test_nothing_arrives() -> None:
    assert estimate(scenario(0.0)).unstable == "no requests arrive, so there is nothing to forecast"
    all_hits = replace(scenario(100.0), hit_ratio=1.0)
    assert "no requests arrive" in estimate(all_hits).unstable


def test_the_same_question_gets_the_same_answer() -> None:
    assert estimate(scenario(400.0)) == estimate(scenario(400.0))


def test_what_executions_hold_and_how_busy_they_keep_the_instances() -> None:
    found = estimate(scenario(310.0))
    assert found.batch_size_mean == pytest.approx(16.0, abs=0.3)
    assert found.busy_ratio == pytest.approx(310 / 16 * 0.036, rel=0.05)


def test_levels_have_percentiles_of_their_own() -> None:
    found = estimate(replace(scenario(260.0, BAD), vip_ratio=0.2))
    vip, standard, whole = p99(found.vip_p99_ms), p99(found.standard_p99_ms), p99(found.p99_ms)
    assert vip.value < 0.8 * standard.value
    assert vip.value < whole.value <= standard.value
    assert estimate(scenario(260.0, BAD)).vip_p99_ms is None


def test_levels_count_what_the_cache_answers_as_the_whole_does() -> None:
    """Else both of them were slower than all requests together."""
    cached = estimate(replace(scenario(300.0, Batching(True, 16, 32, 10.0)), hit_ratio=0.6, vip_ratio=0.3))
    vip, standard, whole = p99(cached.vip_p99_ms), p99(cached.standard_p99_ms), p99(cached.p99_ms)
    assert min(vip.value, standard.value) <= whole.value
    alone = estimate(replace(scenario(300.0), hit_ratio=0.995, vip_ratio=0.3), 20_000, 3)
    assert p99(alone.vip_p99_ms).value == pytest.approx(1.0)


@pytest.mark.parametrize(("share", "requests"), [(0.003, 400), (0.006, 400), (0.01, 200)])
def test_too_few_requests_of_a_level_have_no_percentile_of_their_own(share: float, requests: int) -> None:
    found = estimate(replace(scenario(100.0), vip_ratio=share), requests)
    assert found.p99_ms is not None
    assert (found.vip_p99_ms, found.standard_p99_ms) == (None, None)
