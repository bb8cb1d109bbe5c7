"""What lies between a server and whoever measures its requests."""

from __future__ import annotations

import pytest

from latencydoctor.forecast.front import Front, front_of, outside_ms

STAGES = {"network_time_ms": 2.0, "preprocess_time_ms": 0.2, "cache_time_ms": 0.5, "response_time_ms": 0.1}


def test_time_outside_the_server_is_never_below_nothing() -> None:
    assert outside_ms({"e2e_mean_ms": 1805.0, "server_time_ms": 1800.0}) == 5.0
    assert outside_ms({"e2e_mean_ms": 5.0, "server_time_ms": 9.0}) == 0.0
    assert outside_ms({"e2e_mean_ms": 5.0}) == 0.0


def test_a_front_end_that_times_its_stages_is_believed_before_means_that_hits_are_among() -> None:
    """Recorded: with 11 % of hits the mean of all requests is below the time of those that reach the server."""
    recorded = {"e2e_mean_ms": 864.0, "server_time_ms": 958.0, "cache_hit_ratio": 0.111}
    assert outside_ms(recorded) == 0.0
    assert outside_ms(recorded | STAGES) == pytest.approx(2.8)


def test_while_a_queue_climbs_the_way_to_the_server_is_that_of_before() -> None:
    """Recorded: 14.1 ms during an incident and 1.4 ms before it, 1.8 ms on the same load without an incident."""
    now = STAGES | {"network_time_ms": 14.1, "preprocess_time_ms": 5.2}
    assert outside_ms(now, {"network_time_ms": 1.4, "preprocess_time_ms": 0.2}) == pytest.approx(1.4 + 5.2 + 0.5 + 0.1)
    assert outside_ms(now, {"request_rate_rps": 60.0}) == pytest.approx(14.1 + 5.2 + 0.5 + 0.1)


def test_a_front_end_follows_from_the_figures() -> None:
    assert front_of({}) == Front()
    found = front_of(STAGES | {"cache_hit_ratio": 0.12}, {}, [50.0, 100.0])
    assert (found.hit_ratio, found.bounds_ms) == (0.12, (50.0, 100.0))
    assert found.outside_ms == pytest.approx(2.8)
    assert (found.between_ms, front_of({}).between_ms) == (2.0, None)
    assert front_of(STAGES, {"network_time_ms": 1.1}).between_ms == 1.1
    assert front_of({"cache_hit_ratio": 1.2}).hit_ratio == 1.0
