"""How many replicas a load needs, quickly, and when none are enough."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.capacity import MOST_REPLICAS, replicas_for, shared
from latencydoctor.forecast.curve import ServiceCurve
from latencydoctor.forecast.queue import Batching, Scenario

SMALL = ServiceCurve(20.0, 1.0, error_ratio=0.01, slope_error_ms=0.02, centre=12.0)
GOOD = Batching(True, 16, 32, 100.0)


def scenario(rate_rps: float) -> Scenario:
    return Scenario(Traffic(rate_rps), SMALL, GOOD, outside_ms=2.0)


def test_the_scene_at_five_times_its_traffic() -> None:
    """120,000 sessions that ask once in two minutes, five times that: 5,000/s, and one replica does 615/s."""
    began_s = time.process_time()
    found = replicas_for(scenario(5_000.0), 1_000.0)
    assert time.process_time() - began_s < 2.0
    assert found.replicas == 10
    assert found.estimate is not None
    assert found.estimate.load_ratio == pytest.approx(5_000 / 10 / 615.4, rel=0.01)
    assert found.estimate.p99_ms is not None
    assert (found.estimate.p99_ms.high or 1e9) < 1_000
    assert found.estimate.capacity_rps.value == pytest.approx(6_154, rel=0.01)
    assert found.one_less is not None
    assert found.one_less.load_ratio > 0.85


def test_a_tighter_slo_needs_more() -> None:
    loose, tight = (replicas_for(scenario(3_000.0), slo_ms).replicas for slo_ms in (1_000.0, 130.0))
    assert 0 < loose < tight


def test_more_load_may_be_allowed() -> None:
    assert replicas_for(scenario(5_000.0), 1_000.0, max_load_ratio=0.95).replicas == 9


def test_an_slo_below_what_a_lonely_request_takes_is_out_of_reach() -> None:
    found = replicas_for(scenario(1_000.0), 50.0)
    assert found.replicas == 0
    assert found.reason.startswith("no number of replicas keeps p99 below the SLO: with 8 replicas p99 is ")


def test_what_no_fleet_could_carry_is_said() -> None:
    found = replicas_for(scenario(1e9), 1_000.0)
    assert (found.replicas, found.estimate) == (0, None)
    assert found.reason == f"more than {MOST_REPLICAS:,} replicas would be needed"


def test_nothing_to_serve_needs_one() -> None:
    found = replicas_for(replace(scenario(100.0), hit_ratio=1.0), 1_000.0)
    assert found.replicas == 1


def test_replicas_share_what_arrives() -> None:
    alone, three = shared(scenario(400.0), 1), shared(scenario(1_200.0), 3)
    assert three.rate_rps == 1_200.0
    assert three.load_ratio == pytest.approx(alone.load_ratio)
    assert three.capacity_rps.value == pytest.approx(3 * alone.capacity_rps.value)
    assert three.p99_ms == alone.p99_ms


def test_an_overload_of_all_is_told_in_sums() -> None:
    found = shared(scenario(2_000.0), 3)
    assert found.unstable == "arrivals exceed what can be served: 2,000 requests/s and 1,846"


def test_groups_are_spread_over_replicas() -> None:
    grouped = replace(scenario(1_200.0), traffic=Traffic(1_200.0, group=5.0))
    together, spread = shared(replace(grouped, traffic=Traffic(400.0, group=5.0)), 1), shared(grouped, 3)
    assert together.p99_ms is not None
    assert spread.p99_ms is not None
    assert spread.p99_ms.value < together.p99_ms.value
