"""The witness: yes, no or unknown, with numbers, and silent where the queue does not explain the incident."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.queue import Batching
from latencydoctor.forecast.witness import Knob, Seen, bear_witness
from latencydoctor.model.diagnosis import Answer

BAD = Batching(True, 0, 8, 0.0)
GOOD = Batching(True, 16, 32, 100.0)
TIMES = tuple(BatchTime(size, 60, 20.0 + size) for size in (2, 4, 6, 8))
NOW = {"e2e_p99_ms": 2300.0, "request_rate_rps": 285.0, "compute_time_ms": 28.0, "batch_size_mean": 8.0}
BASELINE = {"e2e_p99_ms": 115.0, "request_rate_rps": 250.0, "compute_time_ms": 36.0, "batch_size_mean": 16.0}
SEEN = Seen(NOW, BASELINE, BAD, 1000.0, TIMES)


def test_failed_batching_undone_brings_latency_back() -> None:
    told = bear_witness(SEEN, Knob.BATCHING)
    assert told.answer is Answer.YES
    assert told.undone_p99_ms == pytest.approx(113.0, rel=0.15)
    assert (told.measured_p99_ms, told.limit_ms) == (2300.0, 1000.0)
    assert "with the batching set back p99 is expected at 1" in told.reason
    assert told.reason.endswith("limit 1,000 ms; batches above 8 were never seen")


def test_where_batching_already_is_good_setting_it_back_is_not_enough() -> None:
    """Twice what the device can do: no batcher helps."""
    seen = replace(SEEN, now=NOW | {"request_rate_rps": 1200.0}, batching=GOOD)
    told = bear_witness(seen, Knob.BATCHING)
    assert told.answer is Answer.NO
    assert told.undone_p99_ms is None
    assert "arrivals exceed what can be served" in told.reason


def test_a_larger_maximum_than_the_floor_is_kept() -> None:
    """650/s are more than batches of 32 can carry, and less than those of 64."""
    now, times = NOW | {"request_rate_rps": 650.0}, (*TIMES, BatchTime(64, 60, 84.0))
    seen = replace(SEEN, now=now, batching=Batching(True, 8, 64, 0.0), times=times)
    assert bear_witness(seen, Knob.BATCHING).answer is Answer.YES


def test_a_load_that_batches_never_seen_may_carry_or_not_speaks_neither_way() -> None:
    told = bear_witness(replace(SEEN, now=NOW | {"request_rate_rps": 600.0}), Knob.BATCHING)
    assert told.answer is Answer.UNKNOWN
    assert "the load cannot be told from the limit; batches above 8 were never seen" in told.reason


def test_a_rate_undone() -> None:
    seen = replace(SEEN, now=NOW | {"request_rate_rps": 700.0}, batching=GOOD)
    assert bear_witness(seen, Knob.RATE).answer is Answer.YES
    worse = replace(seen, baseline=BASELINE | {"request_rate_rps": 650.0})
    assert bear_witness(worse, Knob.RATE).answer is Answer.NO


def test_a_hit_ratio_undone() -> None:
    """Half of 500/s were answered by the cache before."""
    seen = replace(
        SEEN,
        now=NOW | {"request_rate_rps": 500.0, "cache_hit_ratio": 0.0},
        baseline=BASELINE | {"cache_hit_ratio": 0.5},
        batching=BAD,
    )
    assert bear_witness(seen, Knob.HIT_RATIO).answer is Answer.YES
    assert bear_witness(replace(seen, baseline=BASELINE | {"cache_hit_ratio": 0.1}), Knob.HIT_RATIO).answer is Answer.NO


def test_an_execution_time_undone() -> None:
    """A clock at half its speed: every execution takes twice as long as it did at its size."""
    slow = tuple(BatchTime(item.size, 60, 2 * item.mean_ms) for item in TIMES)
    now = NOW | {"request_rate_rps": 250.0, "compute_time_ms": 56.0}
    usual = BASELINE | {"compute_time_ms": 28.0, "batch_size_mean": 8.0, "e2e_p99_ms": 90.0}
    told = bear_witness(replace(SEEN, now=now, baseline=usual, times=slow), Knob.EXECUTION_TIME)
    assert told.answer is Answer.YES
    assert told.undone_p99_ms == pytest.approx(90.0, rel=0.25)


def test_the_limit_is_the_slo_or_what_was_usual() -> None:
    usual = replace(SEEN, baseline=BASELINE | {"e2e_p99_ms": 900.0})
    assert bear_witness(usual, Knob.BATCHING).limit_ms == pytest.approx(1350.0)
    tight = replace(SEEN, slo_ms=50.0, baseline={})
    assert bear_witness(tight, Knob.BATCHING).answer is Answer.NO


def test_where_it_cannot_be_told_from_the_limit_the_middle_decides_only_for_yes() -> None:
    expected = bear_witness(SEEN, Knob.BATCHING).undone_p99_ms or 0.0
    near = replace(SEEN, baseline={}, slo_ms=expected * 0.98)
    assert bear_witness(near, Knob.BATCHING).answer is Answer.UNKNOWN
    assert bear_witness(replace(near, slo_ms=expected * 1.02), Knob.BATCHING).answer is Answer.YES


def test_it_is_silent_where_the_queue_does_not_explain_the_incident() -> None:
    """2.3 s at half of what can be served: something else, a network or a full host, makes it slow."""
    told = bear_witness(replace(SEEN, now=NOW | {"request_rate_rps": 150.0}), Knob.BATCHING)
    assert told.answer is Answer.UNKNOWN
    assert "something else makes it slow" in told.reason
    assert told.explained_p99_ms is not None
    assert told.explained_p99_ms < 150.0


@pytest.mark.parametrize(
    ("seen", "knob", "named"),
    [
        (replace(SEEN, now={}), Knob.RATE, "e2e_p99_ms"),
        (replace(SEEN, batching=None), Knob.RATE, "config_max_batch_size"),
        (replace(SEEN, times=()), Knob.RATE, "not measured: execution_rate_eps"),
        (replace(SEEN, now={"e2e_p99_ms": 2300.0}), Knob.RATE, "request_rate_rps"),
        (replace(SEEN, baseline={}), Knob.RATE, "request_rate_rps has no baseline"),
        (replace(SEEN, baseline={"cache_hit_ratio": 0.4}), Knob.HIT_RATIO, "cache_hit_ratio has no baseline"),
        (replace(SEEN, baseline={"compute_time_ms": 28.0}), Knob.EXECUTION_TIME, "batch_size_mean has no baseline"),
        (
            replace(SEEN, now=NOW | {"compute_time_ms": 0.0}),
            Knob.EXECUTION_TIME,
            "not known: compute_time_ms, batch_size_mean",
        ),
        (
            replace(SEEN, now=NOW | {"batch_size_mean": 0.0}),
            Knob.EXECUTION_TIME,
            "not known: compute_time_ms, batch_size_mean",
        ),
        (replace(SEEN, baseline={"compute_time_ms": 0.0}), Knob.EXECUTION_TIME, "compute_time_ms has no baseline"),
    ],
)
def test_what_is_missing_is_named(seen: Seen, knob: Knob, named: str) -> None:
    told = bear_witness(seen, knob)
    assert told.answer is Answer.UNKNOWN
    assert named in told.reason
