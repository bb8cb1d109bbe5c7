"""Whole scenarios: against figures measured on a real Triton, against arithmetic, and what a cache hides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.curve import ServiceCurve
from latencydoctor.forecast.queue import REQUESTS, Batching, Scenario, capacity_rps, simulate

SMALL = ServiceCurve(20.0, 1.0)
GOOD = Batching(enabled=True, preferred=16, maximum=32, wait_ms=100.0)
BAD = Batching(enabled=True, preferred=0, maximum=8, wait_ms=0.0)
SHORT = Batching(enabled=True, preferred=16, maximum=32, wait_ms=20.0)


def p99_ms(rate_rps: float, batching: Batching, requests: int = REQUESTS) -> float | None:
    found = simulate(Scenario(Traffic(rate_rps), SMALL, batching), requests)
    return None if found is None else found.percentile_ms(0.99)


@pytest.mark.parametrize(
    ("batching", "rate", "measured_ms"), [(GOOD, 270.0, 118.0), (GOOD, 310.0, 114.0), (GOOD, 330.0, 105.0)]
)
def test_p99_is_near_what_a_real_triton_gave(batching: Batching, rate: float, measured_ms: float) -> None:
    """Measured on Triton 2.51 with the same simulated times: design notes of the bundled stack."""
    assert p99_ms(rate, batching) == pytest.approx(measured_ms, rel=0.15)


def test_a_delay_that_runs_out_while_the_instance_is_busy() -> None:
    """Measured on Triton 2.51 at 400/s: 99 and 119 ms with about 3 ms outside; a batcher that only waits gives 65."""
    found = p99_ms(400.0, SHORT)
    assert found is not None
    assert 95 < found < 116


def test_overload_has_no_p99() -> None:
    assert capacity_rps(SMALL, BAD) == pytest.approx(285.7, abs=0.1)
    assert p99_ms(300.0, BAD) is None
    assert p99_ms(0.0, BAD) is None
    near = p99_ms(270.0, BAD)
    assert near is not None
    assert near > 100.0


def test_capacity_counts_what_a_backlog_leaves_in() -> None:
    assert capacity_rps(SMALL, GOOD) == pytest.approx(32 / 52 * 1000)
    assert capacity_rps(SMALL, GOOD, instances=3) == pytest.approx(96 / 52 * 1000)
    ceiling = Batching(enabled=True, preferred=16, maximum=32, wait_ms=0.0)
    assert capacity_rps(SMALL, ceiling) == pytest.approx(16 / 36 * 1000)
    assert capacity_rps(SMALL, Batching(False, 16, 32, 100.0)) == pytest.approx(1 / 21 * 1000)


@pytest.mark.parametrize("batching", [GOOD, BAD, SHORT, Batching(True, 16, 32, 0.0), Batching(False, 0, 32, 0.0)])
def test_capacity_is_where_the_queue_begins_to_grow(batching: Batching) -> None:
    """Twice as many requests of an overload wait longer at the end; just below capacity they do not."""
    limit_rps = capacity_rps(SMALL, batching)
    below = [simulate(Scenario(Traffic(limit_rps * 0.9), SMALL, batching), count) for count in (10_000, 40_000)]
    medians = [outcome.percentile_ms(0.5) for outcome in below if outcome is not None]
    assert medians[1] < medians[0] * 1.3
    quicker = SMALL.scaled(1 / 1.1)
    served = simulate(Scenario(Traffic(limit_rps * 1.05), quicker, batching), 10_000)
    assert served is not None
    assert served.utilisation_ratio > 0.9


def test_a_lonely_request_waits_as_long_as_it_may() -> None:
    found = p99_ms(0.1, GOOD, requests=200)
    assert found == pytest.approx(121.0)


def test_without_a_wait_or_without_a_batcher_it_does_not() -> None:
    assert p99_ms(0.1, BAD, requests=200) == pytest.approx(21.0)
    assert p99_ms(0.1, Batching(False, 0, 32, 100.0), requests=200) == pytest.approx(21.0)


def test_the_same_settings_give_the_same_figure() -> None:
    assert p99_ms(310.0, GOOD) == p99_ms(310.0, GOOD)


def test_what_a_cache_answers_is_part_of_the_percentiles_and_not_of_the_load() -> None:
    without = Scenario(Traffic(260.0), SMALL, BAD, outside_ms=3.0)
    with_cache = replace(without, traffic=Traffic(520.0), hit_ratio=0.5, hit_ms=1.0)
    assert with_cache.load_ratio == without.load_ratio
    alone, half = simulate(without), simulate(with_cache)
    assert alone is not None
    assert half is not None
    assert half.latencies_ms == alone.latencies_ms
    assert half.percentile_ms(0.4) == 1.0
    assert half.percentile_ms(0.99) == alone.percentile_ms(0.98)
    assert replace(half, hit_ratio=1.0).percentile_ms(0.99) == 1.0


def test_burstiness_costs_latency() -> None:
    found = [
        simulate(Scenario(traffic, SMALL, BAD))
        for traffic in (Traffic(230.0), Traffic(230.0, group=4.0), Traffic(230.0, swing=0.4, dwell_s=1.0))
    ]
    calm, grouped, swinging = (outcome.percentile_ms(0.99) for outcome in found if outcome is not None)
    assert calm < grouped
    assert calm < swinging


def test_time_outside_comes_on_top() -> None:
    one = Scenario(Traffic(230.0), SMALL, BAD)
    plain, later = simulate(one), simulate(replace(one, outside_ms=7.0))
    assert plain is not None
    assert later is not None
    assert later.percentile_ms(0.99) == pytest.approx(plain.percentile_ms(0.99) + 7.0)


def test_a_stretch_that_ends_before_it_has_settled_is_told_as_it_is() -> None:
    quick = Scenario(Traffic(150_000.0), ServiceCurve(1.0, 0.0), Batching(True, 1, 32, 100.0), 5, vip_ratio=0.1)
    found = simulate(quick, 200, 1)
    assert found is not None
    assert len(found.latencies_ms) == 10
    assert found.percentile_ms(0.99) >= 1.0
