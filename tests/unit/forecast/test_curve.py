"""The service curve from live metrics, and when it is not believed."""

from __future__ import annotations

import pytest

from latencydoctor.forecast.curve import NEEDED, ServiceCurve, calibrate


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
    assert curve == ServiceCurve(0.0, 2.5)


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
