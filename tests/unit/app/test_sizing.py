"""How many replicas are needed, from the figures of a saturated device: 5 ms + 3.6 ms a request, 266 requests/s."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.app.sizing import arriving, instances_needed, replicas_needed
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.front import Front
from latencydoctor.forecast.queue import Batching
from latencydoctor.model.evidence import Measure
from tests.unit.builders import WINDOW, measure

BATCHING = Batching(enabled=True, preferred=16, maximum=32, wait_ms=100.0)
TIMES = tuple(BatchTime(size, 200, 5 + 3.6 * size) for size in (1, 4, 8, 16, 32))
SATURATED = {"request_rate_rps": 340.0, "cache_hit_ratio": 0.12}


def test_two_hold_what_one_cannot() -> None:
    found = replicas_needed(SATURATED, TIMES, BATCHING, 1, 1000.0)
    assert found.replicas == 2
    assert found.told.startswith("at 340 requests/s 2 replicas hold p99 below 1,000 ms: p99 about ")


def test_a_histogram_that_ends_below_the_slo_does_not_hold_it() -> None:
    plain = replicas_needed({**SATURATED, "request_rate_rps": 530.0}, TIMES, BATCHING, 1, 300.0)
    ends = Front(0.12, 0.0, (50.0, 100.0))
    assert replicas_needed({**SATURATED, "request_rate_rps": 530.0}, TIMES, BATCHING, 1, 300.0, ends) == plain


def test_more_traffic_needs_more() -> None:
    found = replicas_needed({**SATURATED, "request_rate_rps": 900.0}, TIMES, BATCHING, 2, 1000.0)
    assert found.replicas == 4


def test_one_is_enough_for_little() -> None:
    assert replicas_needed({**SATURATED, "request_rate_rps": 60.0}, TIMES, BATCHING, 1, 1000.0).replicas == 1


def test_instances_share_a_queue_and_fewer_of_them_do_what_replicas_do() -> None:
    found = instances_needed(SATURATED, TIMES, BATCHING, 1000.0)
    assert found.replicas == 2
    assert found.told.startswith("at 340 requests/s 2 instances hold p99 below 1,000 ms, each loaded to ")
    assert instances_needed({**SATURATED, "request_rate_rps": 60.0}, TIMES, BATCHING, 1000.0).replicas == 1
    assert instances_needed(SATURATED, TIMES, BATCHING, 5.0).replicas == 0
    assert instances_needed({}, TIMES, BATCHING, 1000.0).replicas is None


def test_an_slo_below_the_service_time_is_held_by_no_number() -> None:
    found = replicas_needed(SATURATED, TIMES, BATCHING, 1, 5.0)
    assert found.replicas == 0
    assert "no number of replicas" in found.told


@pytest.mark.parametrize(("measured", "times"), [({}, TIMES), (SATURATED, ())])
def test_what_is_not_measured_is_said(measured: dict[str, float], times: tuple[BatchTime, ...]) -> None:
    found = replicas_needed(measured, times, BATCHING, 1, 1000.0)
    assert found.replicas is None
    assert "not known" in found.told


def test_rates_of_several_replicas_are_those_of_each() -> None:
    """Without times by size: two replicas that execute 8.3 batches a second each, busy all of the time."""
    rates = {
        "compute_time_ms": 120.2,
        "batch_size_mean": 32.0,
        "execution_rate_eps": 16.6,
        "accelerator_busy_ratio": 1.0,
    }
    found = replicas_needed({**rates, "request_rate_rps": 600.0}, (), BATCHING, 2, 1000.0)
    assert found.replicas == 3


def test_what_arrives_is_more_than_what_is_answered_while_the_queue_climbs() -> None:
    length_s = WINDOW.end_s - WINDOW.start_s
    depth = replace(measure("queue_depth", 500.0, 0.0), worst=950.0)
    found, told = arriving({**SATURATED, "request_rate_rps": 286.0}, depth)
    assert found["request_rate_rps"] == pytest.approx(286.0 + 1000 / length_s / 0.88)
    assert "286 requests/s are answered" in told


@pytest.mark.parametrize("depth", [None, measure("queue_depth", 2000.0, 3.0), measure("queue_depth", 0.0, 3.0)])
def test_a_queue_that_does_not_climb_says_nothing_of_arrivals(depth: Measure | None) -> None:
    assert arriving(SATURATED, depth) == (SATURATED, "")


def test_a_front_end_that_counts_arrivals_is_believed() -> None:
    found, told = arriving({**SATURATED, "request_rate_rps": 286.0, "arrival_rate_rps": 340.0}, None)
    assert found["request_rate_rps"] == 340.0
    assert told == "286 requests/s are answered and 340/s arrive."
    assert arriving({"request_rate_rps": 60.0, "arrival_rate_rps": 59.0}, None)[1] == ""
