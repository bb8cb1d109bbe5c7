"""Arrivals have the rate and the burstiness that was asked for, and burstiness is read back from counts."""

from __future__ import annotations

from itertools import pairwise

import pytest

from latencydoctor.forecast.arrivals import Traffic, dispersion, traffic


def rates(times_ms: list[float], window_s: float) -> list[float]:
    windows = int(times_ms[-1] / 1000 / window_s)
    counts = [0] * windows
    for at_ms in times_ms:
        place = int(at_ms / 1000 / window_s)
        if place < windows:
            counts[place] += 1
    return [count / window_s for count in counts]


@pytest.mark.parametrize(
    "asked",
    [Traffic(100.0), Traffic(100.0, group=3.0), Traffic(100.0, swing=0.5, dwell_s=0.2), Traffic(100.0, 2.0, 0.5, 0.2)],
)
def test_the_mean_rate_is_kept(asked: Traffic) -> None:
    times = asked.times_ms(40_000, seed=2)
    assert len(times) == 40_000
    assert times == sorted(times)
    assert len(times) / times[-1] * 1000 == pytest.approx(100.0, rel=0.04)
    assert times == asked.times_ms(40_000, seed=2)
    assert times != asked.times_ms(40_000, seed=3)


def test_a_server_may_be_silent_for_half_of_the_time() -> None:
    times = Traffic(1000.0, swing=1.0, dwell_s=0.05).times_ms(5_000, seed=1)
    assert max(after - before for before, after in pairwise(times)) > 20.0


def test_groups_come_together() -> None:
    times = Traffic(100.0, group=4.0).times_ms(20_000, seed=4)
    assert len(times) / len(set(times)) == pytest.approx(4.0, rel=0.05)


def test_independent_arrivals_scatter_as_much_as_they_are() -> None:
    found = dispersion(rates(Traffic(200.0).times_ms(100_000, seed=1), 1.0), 1.0)
    assert found == pytest.approx(1.0, abs=0.2)


def test_groups_of_g_scatter_by_two_g_less_one() -> None:
    found = dispersion(rates(Traffic(200.0, group=3.0).times_ms(100_000, seed=1), 1.0), 1.0)
    assert found == pytest.approx(5.0, rel=0.2)


def test_a_slow_drift_is_no_burstiness() -> None:
    drifting = [100.0 + number for number in range(40)]
    assert dispersion(drifting, 1.0) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize(("counts", "window_s"), [([100.0] * 5, 1.0), ([0.0] * 20, 1.0), ([100.0] * 20, 0.0)])
def test_too_little_says_nothing(counts: list[float], window_s: float) -> None:
    assert dispersion(counts, window_s) is None
    assert traffic(50.0, counts, window_s) == Traffic(50.0)


def test_traffic_is_read_back_from_its_counts() -> None:
    calm = rates(Traffic(200.0).times_ms(100_000, seed=1), 1.0)
    assert traffic(200.0, calm, 1.0) == Traffic(200.0)
    grouped = traffic(200.0, rates(Traffic(200.0, group=3.0).times_ms(100_000, seed=1), 1.0), 1.0)
    assert grouped.group == pytest.approx(3.0, rel=0.2)
    assert grouped.swing == 0.0
    swinging = traffic(200.0, rates(Traffic(200.0, swing=0.6, dwell_s=6.0).times_ms(100_000, seed=1), 1.0), 1.0)
    assert swinging.swing > 0.1
    assert swinging.group == 1.0
