"""What the figures of a window mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.load.samples import Sample, SampleLog, SampleWriter, percentile, window_stats
from latencydoctor.model.load import ClassStats


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


def test_the_figures_of_each_priority_leave_out_what_was_turned_away() -> None:
    found = window_stats(
        [
            Sample(100.0, 10.0, 0.5, 200, False, 0, vip=True),
            Sample(100.0, 5000.0, 0.5, 504, False, 0, vip=True),
            Sample(100.0, 400.0, 0.5, 200, False, 0),
            Sample(100.0, 5000.0, 0.5, 503, False, 0, shed=True),
        ],
        99.0,
        101.0,
        settled=True,
    )
    assert found.vip == ClassStats(2, 1, 0, 1, 10.0, 5000.0)
    assert found.standard == ClassStats(2, 1, 1, 0, 400.0, 400.0)
    assert found.standard.shed_ratio == 0.5
    assert found.p99_ms == 5000.0
    assert window_stats([sample(10.0)], 99.0, 101.0, settled=True).vip is None


def test_every_kind_of_sample_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    written = [
        Sample(100.0, 10.0, 0.5, 503, cached, 1, vip, shed)
        for cached in (False, True)
        for vip in (False, True)
        for shed in (False, True)
    ]
    writer, log = SampleWriter(tmp_path / "samples"), SampleLog(tmp_path / "samples")
    for one in written:
        writer.sample(one)
    writer.mark(101.0)
    writer.phase(2, 100.5)
    writer.close()
    log.read()
    assert log.between(99.0, 101.0) == written
    assert (log.complete_before_s, log.phase_starts) == (101.0, [(2, 100.5)])


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
