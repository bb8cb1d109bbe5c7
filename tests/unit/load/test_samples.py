"""What the figures of a window mean."""

from __future__ import annotations

import pytest

from latencydoctor.load.samples import Sample, percentile, window_stats


def sample(latency_ms: float, *, status: int = 200, cached: bool = False, late_ms: float = 0.5) -> Sample:
    return Sample(100.0, latency_ms, late_ms, status, cached, 0)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, ratio) for ratio in (0.5, 0.95, 0.99, 1.0)] == [50.0, 95.0, 99.0, 100.0]
    assert percentile(values[:1], 0.99) == 1.0
    assert percentile(values[:3], 0.5) == 2.0
    assert percentile([], 0.5) is None


def test_one_slow_request_in_a_hundred_is_not_the_p99_but_two_are() -> None:
    quick = [1.0] * 98
    assert percentile([*quick, 1.0, 900.0], 0.99) == 1.0
    assert percentile([*quick, 900.0, 900.0], 0.99) == 900.0


def test_failed_requests_count_in_latency_and_errors_but_not_as_answers() -> None:
    found = window_stats(
        [
            sample(10.0, cached=True),
            sample(20.0, late_ms=3.0),
            sample(5000.0, status=503),
            sample(5000.0, status=0, cached=True),
        ],
        100.0,
        102.0,
        settled=True,
    )
    assert (found.offered_count, found.answered_count, found.failed_count) == (4, 2, 2)
    assert (found.offered_rps, found.answered_rps) == (2.0, 1.0)
    assert (found.p50_ms, found.p95_ms, found.p99_ms) == (20.0, 5000.0, 5000.0)
    assert found.error_ratio == 0.5
    assert found.hit_ratio == 0.5
    assert (found.late_p99_ms, found.late_max_ms) == (3.0, 3.0)
    assert found.settled


def test_an_empty_window_has_no_ratios() -> None:
    found = window_stats([], 1.0, 2.0, settled=False)
    assert (found.offered_rps, found.p99_ms, found.error_ratio, found.hit_ratio, found.late_p99_ms) == (
        0.0,
        None,
        None,
        None,
        None,
    )
    assert not found.settled


def test_without_answers_there_is_no_hit_ratio() -> None:
    found = window_stats([sample(5000.0, status=504)], 1.0, 2.0, settled=True)
    assert found.hit_ratio is None
    assert found.error_ratio == 1.0


@pytest.mark.parametrize(
    ("status", "failed"), [(0, True), (199, True), (200, False), (299, False), (302, True), (400, True)]
)
def test_only_a_good_status_is_an_answer(status: int, failed: bool) -> None:
    assert sample(1.0, status=status).failed is failed
