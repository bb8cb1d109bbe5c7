"""What each priority sees at twice the load that can be served."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.batcher import Batching
from latencydoctor.forecast.classes import Classes, ClassLoad, by_class, predict_classes
from latencydoctor.forecast.curve import BatchTime, ServiceCurve
from latencydoctor.forecast.front import Front
from latencydoctor.forecast.queue import Scenario

# 16 in 100 ms: 160 a second.
FLOOD = Scenario(Traffic(340.0), ServiceCurve(60.0, 2.5), Batching(True, 8, 16, 20.0), vip_ratio=0.06)
TIMES = tuple(BatchTime(size, 400, 60 + 2.5 * size) for size in (1, 4, 8, 16))


def classes(scenario: Scenario, limit_ms: float) -> Classes:
    found = by_class(scenario, limit_ms)
    assert isinstance(found, Classes), found
    return found


def test_vip_waits_for_what_executes_and_its_own_batch_only() -> None:
    found = classes(FLOOD, 450.0)
    assert 150 < found.vip_p99_ms.value < 260
    assert found.vip_p99_ms.low < found.vip_p99_ms.value
    assert found.vip_p99_ms.high is not None


def test_standard_that_is_answered_waited_no_longer_than_its_limit() -> None:
    for limit_ms in (300.0, 450.0, 900.0):
        found = classes(FLOOD, limit_ms)
        assert 0.9 * limit_ms < found.standard_p99_ms.value < limit_ms + 210


def test_what_cannot_be_served_is_turned_away() -> None:
    found = classes(FLOOD, 450.0)
    assert found.shed_ratio.value == pytest.approx(1 - 160 / 340, abs=0.03)
    assert found.shed_ratio.low < 1 - 160 / 340 < (found.shed_ratio.high or 0)
    cached = classes(replace(FLOOD, traffic=Traffic(340.0 / 0.88), hit_ratio=0.12), 450.0)
    assert cached.shed_ratio.value == pytest.approx(found.shed_ratio.value * 0.88, abs=0.03)
    calm = classes(replace(FLOOD, traffic=Traffic(80.0)), 450.0)
    assert calm.shed_ratio.value == 0


@pytest.mark.parametrize("faster", [1, 10])
def test_a_quick_server_turns_away_as_much_of_the_same_load(faster: int) -> None:
    """Ten times the rate: what a flood takes to fill the queue's time does not become shorter."""
    quick = replace(FLOOD, traffic=Traffic(340.0 * faster), curve=FLOOD.curve.scaled(1 / faster))
    shed = classes(quick, 1_000.0).shed_ratio
    assert shed.value == pytest.approx(1 - 160 / 340, abs=0.03)


def test_more_requests_than_can_be_simulated_are_no_forecast() -> None:
    quick = replace(FLOOD, traffic=Traffic(340_000.0), curve=FLOOD.curve.scaled(1 / 1000))
    told = by_class(quick, 1_000.0)
    assert isinstance(told, str)
    assert "more than are simulated" in told


def test_vip_alone_beyond_the_capacity_has_no_bound() -> None:
    found = by_class(replace(FLOOD, vip_ratio=0.6), 450.0)
    assert isinstance(found, str)
    assert "wait for each other" in found


def test_hardly_any_vip_requests_have_no_bound() -> None:
    few = by_class(replace(FLOOD, vip_ratio=1e-6), 300.0)
    assert few == "too few VIP requests come to tell what they would see"


def test_where_nothing_comes_or_nothing_is_batched_there_are_no_levels_to_tell() -> None:
    assert by_class(FLOOD.at_rate(0.0), 300.0) == "no requests reach the server"
    alone = replace(FLOOD, batching=replace(FLOOD.batching, enabled=False), traffic=Traffic(10.0))
    assert by_class(alone, 300.0) == "without a batcher there are no levels"


def test_a_prediction_says_what_was_before_and_how_it_was_reached() -> None:
    measured = {"vip_p99_ms": 2900.0, "e2e_mean_ms": 1500.0, "server_time_ms": 1490.0}
    vip, standard, shed = predict_classes(measured, ClassLoad(386.0, 0.06, Front(0.12)), FLOOD.batching, 450.0, TIMES)
    assert (vip.signal, vip.before, standard.before, shed.unit) == ("vip_p99_ms", 2900.0, None, "ratio")
    assert vip.after is not None
    assert vip.after < 300
    assert "6.0 % of them VIP" in vip.method


def test_what_is_not_known_is_said() -> None:
    for one in predict_classes({}, "the share of VIP requests is not known", FLOOD.batching, 450.0, TIMES):
        assert (one.after, one.method) == (None, "not predicted: the share of VIP requests is not known")
    (vip, *_) = predict_classes({}, ClassLoad(386.0, 0.06, Front(0.12)), FLOOD.batching, 450.0)
    assert vip.after is None
