"""The simulated batcher against figures measured on a real Triton, and against arithmetic."""

from __future__ import annotations

import pytest

from latencydoctor.forecast.curve import ServiceCurve
from latencydoctor.forecast.queue import Batching, capacity_rps, simulate_p99_ms

SMALL = ServiceCurve(20.0, 1.0)
GOOD = Batching(enabled=True, preferred=16, maximum=32, wait_ms=100.0)
BAD = Batching(enabled=True, preferred=0, maximum=8, wait_ms=0.0)


@pytest.mark.parametrize(
    ("batching", "rate", "measured_ms"), [(GOOD, 270.0, 118.0), (GOOD, 310.0, 114.0), (GOOD, 330.0, 105.0)]
)
def test_p99_is_near_what_a_real_triton_gave(batching: Batching, rate: float, measured_ms: float) -> None:
    """Measured on Triton 2.51 with the same simulated times: design notes of the bundled stack."""
    assert simulate_p99_ms(rate, SMALL, batching) == pytest.approx(measured_ms, rel=0.15)


def test_overload_has_no_p99() -> None:
    assert capacity_rps(SMALL, BAD) == pytest.approx(285.7, abs=0.1)
    assert simulate_p99_ms(300.0, SMALL, BAD) is None
    assert simulate_p99_ms(0.0, SMALL, BAD) is None
    near = simulate_p99_ms(270.0, SMALL, BAD)
    assert near is not None
    assert near > 100.0


def test_capacity_counts_what_a_backlog_leaves_in() -> None:
    assert capacity_rps(SMALL, GOOD) == pytest.approx(32 / 52 * 1000)
    ceiling = Batching(enabled=True, preferred=16, maximum=32, wait_ms=0.0)
    assert capacity_rps(SMALL, ceiling) == pytest.approx(16 / 36 * 1000)
    assert capacity_rps(SMALL, Batching(False, 16, 32, 100.0)) == pytest.approx(1 / 21 * 1000)


def test_a_lonely_request_waits_as_long_as_it_may() -> None:
    found = simulate_p99_ms(0.1, SMALL, GOOD, requests=200)
    assert found == pytest.approx(121.0)


def test_without_a_wait_or_without_a_batcher_it_does_not() -> None:
    assert simulate_p99_ms(0.1, SMALL, BAD, requests=200) == pytest.approx(21.0)
    assert simulate_p99_ms(0.1, SMALL, Batching(False, 0, 32, 100.0), requests=200) == pytest.approx(21.0)


def test_the_same_settings_give_the_same_figure() -> None:
    assert simulate_p99_ms(310.0, SMALL, GOOD) == simulate_p99_ms(310.0, SMALL, GOOD)
