"""The spread of a signal over the incident's windows, beside that of the baseline."""

from __future__ import annotations

import pytest

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.course import courses
from latencydoctor.evidence.incident import Judgement
from latencydoctor.evidence.series import Points, make_grid, place
from latencydoctor.model.evidence import Incident, IncidentState, Measure, Proof, Series

NAMES = {name.id: name for name in read_signals(locate())[0]}
BEFORE, DURING = (10.0, 10.0, 10.0, 10.0), (5.0, 15.0, 5.0, 15.0)
NEIGHBOURS = 10 / 2**0.5 / 10


def found(values: tuple[float, ...], baseline: tuple[int, int] | None = (0, 3), first: int = 4) -> list[Measure]:
    times = tuple(1000.0 + 10 * index for index in range(len(values)))
    series = Series("compute_time_ms", "ms", times, values, Proof("prometheus", "q"))
    grid = make_grid(times[-1], 10.0, [series])
    points: dict[str, Points] = {"compute_time_ms": place(series, grid)}
    incident = Incident(IncidentState.INCIDENT, "", None, None, None, None, 5, 5)
    return courses(points, NAMES, grid, Judgement(incident, first, len(values) - 1, baseline))


def test_neighbouring_windows_are_compared_now_and_before() -> None:
    (spread,) = found(BEFORE + DURING)
    assert (spread.signal, spread.baseline) == ("compute_time_spread_ratio", 0.0)
    assert spread.value == pytest.approx(NEIGHBOURS)
    assert spread.window.length_s == 40


def test_without_a_baseline_there_is_none() -> None:
    (spread,) = found(BEFORE + DURING, None)
    assert (spread.baseline, spread.baseline_window) == (None, None)


def test_three_windows_are_too_few_and_zeros_have_no_spread() -> None:
    assert found(BEFORE + DURING, first=5) == []
    assert found((*BEFORE, 0.0, 0.0, 0.0, 0.0)) == []


def test_a_steady_rise_is_not_unsteady() -> None:
    (rise,) = found((*BEFORE, 10.0, 11.0, 12.0, 13.0))
    assert rise.value < 0.07
