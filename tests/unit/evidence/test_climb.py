"""How often a level rises: a leak in nearly every window, a second copy once."""

from __future__ import annotations

import pytest

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.climb import LEAST_RISE_RATIO, climbs
from latencydoctor.evidence.incident import Judgement
from latencydoctor.evidence.series import Points, make_grid, place
from latencydoctor.model.evidence import Incident, IncidentState, Measure, Proof, Series

NAMES = {name.id: name for name in read_signals(locate())[0]}
SIGNAL = "accelerator_memory_used_bytes"
FLAT = (100.0,) * 6


def found(before: tuple[float, ...], during: tuple[float, ...], *, baseline: bool = True) -> list[Measure]:
    values = before + during
    times = tuple(1000.0 + 10 * index for index in range(len(values)))
    series = Series(SIGNAL, "bytes", times, values, Proof("prometheus", "q"))
    grid = make_grid(times[-1], 10.0, [series])
    points: dict[str, Points] = {SIGNAL: place(series, grid)}
    incident = Incident(IncidentState.INCIDENT, "", None, None, None, None, 5, 5)
    span = (0, len(before) - 1) if baseline else None
    return climbs(points, NAMES, grid, Judgement(incident, len(before), len(values) - 1, span))


def test_a_leak_climbs_in_every_window_until_the_device_is_full() -> None:
    (climb,) = found((10.0, 20.0, 30.0, 40.0, 50.0, 60.0), FLAT)
    assert climb.signal == "accelerator_memory_climb_ratio"
    assert (climb.value, climb.baseline) == (0.0, 1.0)
    assert climb.proof.query == "share of windows higher than the one before of q"


def test_a_second_copy_steps_up_once() -> None:
    (climb,) = found((60.0,) * 6, (60.0, 60.0, 80.0, 80.0, 80.0, 80.0))
    assert climb.value == pytest.approx(0.2)
    assert climb.baseline == 0.0


def test_what_an_allocator_moves_by_itself_is_no_rise() -> None:
    little = tuple(100.0 * (1 + LEAST_RISE_RATIO * 0.9) ** index for index in range(6))
    (climb,) = found(little, FLAT)
    assert climb.baseline == 0.0


def test_few_windows_say_nothing_and_the_other_stretch_still_does() -> None:
    assert found((1.0, 2.0, 3.0), (3.0, 3.0)) == []
    (climb,) = found((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (6.0, 6.0))
    assert (climb.value, climb.baseline) == (1.0, 1.0)
    (climb,) = found((1.0, 2.0), FLAT, baseline=False)
    assert (climb.value, climb.baseline, climb.baseline_window) == (0.0, None, None)
