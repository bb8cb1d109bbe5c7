"""The service curve from executions by batch size and from live rates, and when neither is believed."""

from __future__ import annotations

import random

import pytest

from latencydoctor.forecast.curve import (
    LEAST_ERROR_RATIO,
    LEAST_EXECUTIONS,
    NEEDED,
    BatchTime,
    ServiceCurve,
    calibrate,
    fit,
)


def measured(execution_ms: float, size: float, rate: float, busy: float) -> dict[str, float]:
    return dict(zip(NEEDED, (execution_ms, size, rate, busy), strict=True))


def test_host_and_device_time_are_told_apart() -> None:
    # 8 requests an execution of 28 ms, of which the device works 8: 35.7 executions/s keep it 28.6 % busy.
    curve = calibrate(measured(28.0, 8.0, 35.714, 0.2857))
    assert isinstance(curve, ServiceCurve)
    assert curve.host_ms == pytest.approx(20.0, rel=0.01)
    assert curve.item_ms == pytest.approx(1.0, rel=0.01)
    assert curve.batch_ms(32) == pytest.approx(52.0, rel=0.01)


def test_a_device_a_little_busier_than_its_executions_leaves_no_host_time() -> None:
    curve = calibrate(measured(10.0, 4.0, 100.0, 1.1))
    assert isinstance(curve, ServiceCurve)
    assert (curve.host_ms, curve.item_ms) == (0.0, 2.5)


def test_figures_that_contradict_each_other_are_not_believed() -> None:
    assert (
        calibrate(measured(10.0, 4.0, 50.0, 0.9))
        == "the device was busy 18.0 ms an execution, which itself took 10.0 ms"
    )


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_figure_is_named(name: str) -> None:
    figures = measured(28.0, 8.0, 35.7, 0.29)
    del figures[name]
    assert calibrate(figures) == f"not measured: {name}"


@pytest.mark.parametrize(
    "figures", [(0.0, 8.0, 1.0, 1.0), (1.0, 0.5, 1.0, 1.0), (1.0, 8.0, 0.0, 1.0), (1.0, 8.0, 1.0, 0.0)]
)
def test_an_idle_server_gives_no_curve(figures: tuple[float, float, float, float]) -> None:
    assert calibrate(measured(*figures)) == "the server executed nothing that could be measured"


def line(sizes: list[int], noise_ms: float = 0.0, executions: int = 40) -> list[BatchTime]:
    dice = random.Random(7)
    return [BatchTime(size, executions, 20.0 + size + dice.gauss(0, noise_ms)) for size in sizes]


def fitted(times: list[BatchTime]) -> ServiceCurve:
    curve = fit(times)
    assert isinstance(curve, ServiceCurve), curve
    return curve


def test_a_line_is_found_and_continued() -> None:
    curve = fitted(line([1, 4, 8, 16]))
    assert curve.host_ms == pytest.approx(20.0)
    assert curve.item_ms == pytest.approx(1.0)
    assert curve.batch_ms(64) == pytest.approx(84.0)
    assert curve.error_ratio == LEAST_ERROR_RATIO
    assert curve.slope_error_ms == pytest.approx(0.0, abs=1e-6)
    assert curve.knots == ()


def test_a_warm_up_does_not_bend_the_line() -> None:
    """The very first execution of a real Triton took 91 ms where 24 are usual."""
    curve = fitted([*line([6, 7, 9, 12, 16, 17], noise_ms=0.3), BatchTime(4, 1, 91.0)])
    assert curve.batch_ms(32) == pytest.approx(52.0, rel=0.04)
    assert curve.knots == ()


def test_noise_shows_in_the_standard_errors() -> None:
    calm, wild = (fitted(line([2, 4, 6, 8, 10, 12], noise)) for noise in (0.1, 3.0))
    assert wild.error_ratio > calm.error_ratio
    assert wild.slope_error_ms > 5 * calm.slope_error_ms
    assert abs(wild.item_ms - 1.0) < 4 * wild.slope_error_ms


def test_a_bent_device_is_followed_where_it_was_measured() -> None:
    """Up to eight cost next to nothing, then each costs: no line does for both."""
    times = [BatchTime(size, 50, 10.0 if size <= 8 else 10.0 + 4.0 * (size - 8)) for size in range(1, 17)]
    curve = fitted(times)
    assert curve.knots
    assert curve.batch_ms(4) == pytest.approx(10.0, rel=0.02)
    assert curve.batch_ms(12) == pytest.approx(26.0, rel=0.02)
    assert curve.batch_ms(12.5) == pytest.approx(28.0, rel=0.02)
    assert curve.batch_ms(20) == pytest.approx(58.0, rel=0.1)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_below_the_smallest_size_seen_a_steep_curve_takes_at_least_its_share(size: int) -> None:
    curve = fitted(
        [BatchTime(4, 100, 10.0), BatchTime(8, 100, 11.0), BatchTime(16, 100, 60.0), BatchTime(32, 100, 200.0)]
    )
    assert curve.knots
    assert curve.batch_ms(size) >= 10.0 * size / 4
    assert curve.shifted(2.0, 2.0).batch_ms(size) > 0


def test_a_bent_curve_never_falls() -> None:
    dice = random.Random(3)
    times = [BatchTime(size, 5, (5.0 if size < 10 else 60.0) + dice.uniform(-4, 4)) for size in range(2, 20)]
    curve = fitted(times)
    table = curve.table_ms(40)
    assert table == sorted(table)
    assert table[0] >= 0


def test_a_device_that_is_quicker_with_more_is_taken_as_flat() -> None:
    curve = fitted([BatchTime(1, 30, 12.0), BatchTime(8, 30, 11.0)])
    assert curve.item_ms == 0.0
    assert curve.host_ms == pytest.approx(11.5)


def test_host_time_is_never_below_nothing() -> None:
    curve = fitted([BatchTime(4, 30, 4.0), BatchTime(8, 30, 12.0), BatchTime(16, 30, 28.0)])
    assert curve.host_ms >= 0
    assert curve.batch_ms(1) >= 0


@pytest.mark.parametrize("times", [[], [BatchTime(8, LEAST_EXECUTIONS - 1, 28.0)]])
def test_too_few_executions_are_said(times: list[BatchTime]) -> None:
    told = fit(times)
    assert isinstance(told, str)
    assert "too few" in told


def test_two_means_of_one_size_are_one() -> None:
    """The executions from before a change stand beside those since then."""
    twice = [BatchTime(8, 150, 10.0), BatchTime(8, 50, 14.0)]
    others = [BatchTime(1, 50, 10.0), BatchTime(12, 50, 30.0), BatchTime(16, 50, 60.0)]
    curve = fitted([*others, *twice])
    assert curve == fitted([*others, BatchTime(8, 200, 11.0)])
    assert curve.batch_ms(8) == pytest.approx(11.0)
    assert fit([BatchTime(8, 50, 10.0), BatchTime(8, 50, 14.0)]) == (
        "all executions were of 8: how their time grows with the batch cannot be told"
    )


def test_a_time_that_is_none_is_not_fitted() -> None:
    told = fit([BatchTime(4, 30, 1e-320), BatchTime(8, 30, 1e-320)])
    assert isinstance(told, str)


def test_one_size_alone_tells_no_curve() -> None:
    assert fit([BatchTime(8, 500, 28.0)]) == (
        "all executions were of 8: how their time grows with the batch cannot be told"
    )


def test_a_curve_that_is_as_likely_turns_about_the_sizes_seen() -> None:
    curve = ServiceCurve(20.0, 1.0, error_ratio=0.02, slope_error_ms=0.1, centre=10.0)
    assert curve.shifted(0, 1).batch_ms(10) == pytest.approx(30.0)
    assert curve.shifted(0, 1).batch_ms(30) == pytest.approx(52.0)
    assert curve.shifted(1, 0).batch_ms(30) == pytest.approx(51.0)
    assert curve.shifted(0, -30).item_ms == 0.0
    bent = ServiceCurve(9.0, 1.0, 0.02, 0.1, 4.0, ((1, 10.0), (8, 17.0)))
    assert bent.shifted(0, 1).batch_ms(8) == pytest.approx(17.4)
    assert bent.scaled(2).batch_ms(8) == pytest.approx(34.0)
