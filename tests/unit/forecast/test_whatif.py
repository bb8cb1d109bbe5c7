"""Predictions carry an interval and a method, or a reason why there is none."""

from __future__ import annotations

from latencydoctor.forecast.queue import Batching
from latencydoctor.forecast.whatif import predict

BAD = Batching(enabled=True, preferred=0, maximum=8, wait_ms=0.0)
GOOD = Batching(enabled=True, preferred=16, maximum=32, wait_ms=100.0)
MEASURED = {
    "compute_time_ms": 28.0,
    "batch_size_mean": 8.0,
    "execution_rate_eps": 35.714,
    "accelerator_busy_ratio": 0.2857,
    "e2e_p99_ms": 2140.0,
    "e2e_mean_ms": 1805.0,
    "server_time_ms": 1800.0,
}


def test_the_scene_is_predicted_before_it_is_changed() -> None:
    capacity, p99 = predict(MEASURED, 320.0, BAD, GOOD)
    assert capacity.signal == "capacity_rps"
    assert (round(capacity.before or 0), round(capacity.after or 0)) == (286, 615)
    assert (capacity.low or 0) < (capacity.after or 0) < (capacity.high or 0)
    assert p99.before == 2140.0
    assert p99.after is not None
    assert 95 < p99.after < 130
    assert (p99.low or 0) <= p99.after <= (p99.high or 0)
    assert "simulated queue at 320 requests/s, 20.0 ms + 1.00 ms a request" in p99.method


def test_more_than_batching_can_carry_is_said() -> None:
    _, p99 = predict(MEASURED, 700.0, BAD, GOOD)
    assert (p99.after, p99.low, p99.high) == (None, None, None)
    assert p99.method == "no bound: 700 requests/s arrive and 615 can be served; add capacity too"


def test_near_the_limit_the_upper_end_is_open() -> None:
    _, p99 = predict(MEASURED, 550.0, BAD, GOOD)
    assert p99.after is not None
    assert p99.high is None


def test_without_a_rate_there_is_a_capacity_only() -> None:
    capacity, p99 = predict(MEASURED, None, BAD, GOOD)
    assert capacity.after is not None
    assert (p99.after, p99.method) == (None, "not predicted: the arrival rate is not known")


def test_without_calibration_there_is_a_reason() -> None:
    for prediction in predict({}, 320.0, BAD, GOOD):
        assert prediction.after is None
        assert prediction.method.startswith("not predicted: not measured: compute_time_ms")
