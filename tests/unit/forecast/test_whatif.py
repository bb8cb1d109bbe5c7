"""Predictions carry an interval and a method, or a reason why there is none."""

from __future__ import annotations

import pytest

from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.front import Front
from latencydoctor.forecast.queue import Batching
from latencydoctor.forecast.whatif import curve_of, predict
from latencydoctor.model.remedy import Prediction

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
TIMES = tuple(BatchTime(size, 30, 20.0 + size) for size in (1, 4, 8))


def predicted(rate_rps: float | None, after: Batching = GOOD, before: Batching = BAD) -> dict[str, Prediction]:
    found = predict(MEASURED, rate_rps, before, after)
    assert [one.signal for one in found[:2]] == ["capacity_rps", "e2e_p99_ms"]
    return {one.signal: one for one in found}


def test_the_scene_is_predicted_before_it_is_changed() -> None:
    found = predicted(320.0)
    capacity, p99 = found["capacity_rps"], found["e2e_p99_ms"]
    assert (round(capacity.before or 0), round(capacity.after or 0)) == (286, 615)
    assert (capacity.low or 0) < (capacity.after or 0) < (capacity.high or 0)
    assert p99.before == 2140.0
    assert p99.after is not None
    assert 95 < p99.after < 130
    assert (p99.low or 0) <= p99.after <= (p99.high or 0)
    assert "simulated queue at 320 requests/s, 20.0 ms + 1.00 ms a request" in p99.method
    p50, p95 = found["e2e_p50_ms"].after, found["e2e_p95_ms"].after
    assert p50 is not None
    assert p95 is not None
    assert p50 < p95 < p99.after
    load = found["load_ratio"]
    assert load.before == pytest.approx(320 / 285.7, rel=0.01)
    assert load.after == pytest.approx(320 / 615.4, rel=0.01)


def test_the_cost_at_low_load_is_the_wait_for_company() -> None:
    low = predicted(320.0)["low_load_p50_ms"]
    # 21 ms alone and 5 ms outside; with the floor up to 100 ms of waiting come on top.
    assert low.before == pytest.approx(26.0, abs=2.0)
    assert low.after == pytest.approx(126.0, abs=2.0)


def test_batches_larger_than_any_that_ran_are_predicted_with_room_and_said_to_be() -> None:
    """What `batch-floor` is planned on: a stack that batched no more than 8 is to batch 32."""
    seen, known = (
        {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, times)}
        for times in (TIMES, (*TIMES, BatchTime(16, 30, 36.0), BatchTime(32, 30, 52.0)))
    )
    for signal in ("capacity_rps", "e2e_p99_ms"):
        assert "batches above 8 were never seen" in seen[signal].method
        assert "never seen" not in known[signal].method
        wide, narrow = ((one.high or 0) - (one.low or 0) for one in (seen[signal], known[signal]))
        assert wide > 1.5 * narrow > 0


def test_more_than_batching_can_carry_is_said() -> None:
    p99 = predicted(700.0)["e2e_p99_ms"]
    assert (p99.after, p99.low, p99.high) == (None, None, None)
    assert p99.method == "no bound: 700 requests/s arrive and 615 can be served; add capacity too"


def test_near_the_limit_the_upper_end_is_open() -> None:
    """Earlier than that of what was measured: batches above 8 were not."""
    p99 = predicted(440.0)["e2e_p99_ms"]
    assert p99.after is not None
    assert p99.high is None


def test_within_the_error_of_the_limit_there_is_no_figure() -> None:
    p99 = predicted(614.0)["e2e_p99_ms"]
    assert p99.after is None
    assert "cannot be told from the limit" in p99.method


def test_without_a_rate_there_are_capacity_and_the_cost_at_low_load_only() -> None:
    found = predicted(None)
    assert found["capacity_rps"].after is not None
    assert found["low_load_p50_ms"].after is not None
    assert (found["e2e_p99_ms"].after, found["e2e_p99_ms"].method) == (
        None,
        "not predicted: the arrival rate is not known",
    )


def test_without_calibration_there_is_a_reason() -> None:
    for prediction in predict({}, 320.0, BAD, GOOD):
        assert prediction.after is None
        assert prediction.method.startswith("not predicted: not measured: compute_time_ms")


def test_executions_by_size_are_preferred_to_rates() -> None:
    found = curve_of(MEASURED | {"compute_time_ms": 99.0}, TIMES)
    assert not isinstance(found, str)
    assert found[0].batch_ms(32) == pytest.approx(52.0)
    assert found[1] == "20.0 ms + 1.00 ms a request, fitted to 90 executions of 3 batch sizes"


def test_rates_stand_in_for_executions_of_one_size() -> None:
    found = curve_of(MEASURED, (BatchTime(8, 900, 28.0),))
    assert not isinstance(found, str)
    assert "calibrated from the incident's own metrics" in found[1]
    told = curve_of({}, (BatchTime(8, 900, 28.0),))
    assert isinstance(told, str)
    assert "not measured: compute_time_ms" in told
    assert "all executions were of 8" in told


def test_a_bent_curve_is_told_by_its_ends() -> None:
    bent = tuple(BatchTime(size, 50, 10.0 if size <= 8 else 10.0 + 4.0 * (size - 8)) for size in range(1, 17))
    found = curve_of({}, bent)
    assert not isinstance(found, str)
    assert found[1].startswith("10.0 ms for 1 to 42.0 ms for 16 requests, fitted to 800 executions")


def test_replicas_share_the_traffic_and_what_was_counted_over_all() -> None:
    two = {**MEASURED, "execution_rate_eps": 2 * MEASURED["execution_rate_eps"]}
    alone = {one.signal: one for one in predict(MEASURED, 320.0, GOOD, GOOD)}
    shared = {one.signal: one for one in predict(two, 640.0, GOOD, GOOD, replicas=(2, 2))}
    for signal, one in alone.items():
        # Busy instances are counted in each replica.
        factor = 2 if signal in ("capacity_rps", "request_rate_rps") else 1
        assert shared[signal].after == pytest.approx(factor * (one.after or 0)), signal
    more = {one.signal: one for one in predict(MEASURED, 900.0, GOOD, GOOD, replicas=(1, 2))}
    assert more["load_ratio"].before == pytest.approx(900 / 615.4, rel=0.01)
    assert more["load_ratio"].after == pytest.approx(450 / 615.4, rel=0.01)
    assert more["capacity_rps"].after == pytest.approx(1230.8, rel=0.01)
    assert more["e2e_p99_ms"].after is not None, "one alone could not carry it"
    assert "2 replicas with an even share each" in more["e2e_p99_ms"].method


def test_instances_are_predicted_as_servers_of_one_queue() -> None:
    one = {item.signal: item for item in predict(MEASURED, 900.0, GOOD, GOOD)}
    two = {item.signal: item for item in predict(MEASURED, 900.0, GOOD, GOOD, instances=(1, 2))}
    before, after = two["capacity_rps"].before, two["capacity_rps"].after
    assert before is not None
    assert after == pytest.approx(2 * before)
    assert one["e2e_p99_ms"].after is None
    assert two["e2e_p99_ms"].after is not None
    assert "2 instances that do not slow each other down" in two["e2e_p99_ms"].method


BOUNDS_MS = (50.0, 75.0, 100.0, 150.0, 200.0)


def test_p99_is_told_as_the_histogram_will_show_it_that_measures_it() -> None:
    plain = {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, front=Front(outside_ms=5.0))}
    seen = {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, front=Front(0.0, 5.0, BOUNDS_MS))}
    exact, shown = plain["e2e_p99_ms"], seen["e2e_p99_ms"]
    assert exact.after is not None
    assert shown.after is not None
    # All but a few requests take 100 to 115 ms; a line from 100 to 150 puts the 99th percentile far up in that bucket.
    assert 100 < exact.after < 120
    assert 130 < shown.after < 150
    assert (shown.low or 0) < shown.after < (shown.high or 0)
    assert "as the front end's histogram shows it" in shown.method
    assert f"({exact.after:.0f} ms by itself, but it has no bound between 100 and 150 ms)" in shown.method
    assert "histogram" not in exact.method
    assert seen["capacity_rps"] == plain["capacity_rps"]


def test_what_the_histogram_cannot_show_is_told_as_it_is() -> None:
    """Else a plan would promise 75 ms wherever the histogram ends there."""
    plain = {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, front=Front(outside_ms=5.0))}
    seen = {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, front=Front(0.0, 5.0, BOUNDS_MS[:2]))}
    assert seen["e2e_p99_ms"].after == plain["e2e_p99_ms"].after
    assert "histogram shows it, which has no bound above 75 ms and cannot" in seen["e2e_p99_ms"].method


def test_what_the_latency_is_made_of_is_told_beside_it() -> None:
    """So that whoever finds another latency sees what came otherwise."""
    front = Front(0.2, 5.0, between_ms=3.5)
    found = {one.signal: one for one in predict(MEASURED | {"network_time_ms": 80.0}, 320.0, BAD, GOOD, front=front)}
    way, rate = found["network_time_ms"], found["request_rate_rps"]
    assert (way.before, way.after, way.method) == (80.0, 3.5, "as before the incident")
    assert rate.after == pytest.approx(400.0)
    assert "network_time_ms" not in predicted(320.0)
    assert "request_rate_rps" not in {one.signal for one in predict(MEASURED, None, BAD, GOOD)}


def test_bounds_close_to_p99_are_not_worth_a_word() -> None:
    fine = tuple(float(bound) for bound in range(10, 500, 2))
    plain = {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, front=Front(outside_ms=5.0))}
    seen = {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, front=Front(0.0, 5.0, fine))}
    assert seen["e2e_p99_ms"].after == pytest.approx(plain["e2e_p99_ms"].after, rel=0.02)
    assert "by itself" not in seen["e2e_p99_ms"].method
    assert seen["e2e_p99_ms"].method == seen["e2e_p50_ms"].method


def test_what_the_cache_answers_counts_among_the_requests_that_p99_is_of() -> None:
    plain = {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, front=Front())}
    half = {one.signal: one for one in predict(MEASURED, 320.0, BAD, GOOD, front=Front(0.5))}
    assert (half["e2e_p99_ms"].after or 0) < (plain["e2e_p99_ms"].after or 0)
    assert half["e2e_p99_ms"].after == pytest.approx(plain["e2e_p99_ms"].after, rel=0.1)
    assert (half["e2e_p50_ms"].after or 0) < 0.7 * (plain["e2e_p50_ms"].after or 0)
    # What reaches the server is the same, and so is all that is said of it.
    for signal in ("capacity_rps", "load_ratio", "low_load_p50_ms", "batch_size_mean"):
        assert half[signal] == plain[signal] or half[signal].after == plain[signal].after
    assert "simulated queue at 320 requests/s" in half["e2e_p99_ms"].method
    assert "50 % beside them answered by the cache" in half["e2e_p99_ms"].method
