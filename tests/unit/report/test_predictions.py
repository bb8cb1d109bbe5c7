"""The predictions of a plan on the screen: every figure, and how it was reached as often as it changes."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from latencydoctor.model.remedy import Prediction
from latencydoctor.report import change
from latencydoctor.report.markdown import incident
from tests.unit.app.test_drill import PLAN
from tests.unit.report.test_markdown_postmortem import record


def shown(*predictions: Prediction) -> list[str]:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    change.show_plan(replace(PLAN, predictions=predictions), console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return [line for line in lines if line.startswith(("predicted", "  by"))]


def test_how_several_in_a_row_were_reached_is_said_once() -> None:
    p99 = Prediction("e2e_p99_ms", "ms", 2140.0, 66.4, 50.6, 93.3, "simulated queue")
    p50 = Prediction("e2e_p50_ms", "ms", None, 45.3, None, None, "simulated queue")
    busy = Prediction("instance_busy_ratio", "", 1.0, 0.6, None, None, "counted")
    unknown = Prediction("capacity_rps", "requests/s", None, None, None, None, "not predicted: nothing is known")
    assert shown(p99, p50, busy, unknown) == [
        "predicted p99 latency: 2,140 ms → 66.4 ms (50.6 ms to 93.3 ms)",
        "predicted p50 latency: 45.3 ms",
        "  by simulated queue",
        "predicted instances busy: 1 → 0.6",
        "  by counted",
        "predicted capacity: not computed, not predicted: nothing is known",
    ]
    assert shown() == []


def test_an_interval_without_an_upper_end_is_shown_as_one() -> None:
    """The end was left out with the whole interval, so a figure that may have no bound looked the surest of all."""
    p99 = Prediction("e2e_p99_ms", "ms", 2140.0, 262.0, 80.2, None, "simulated queue")
    assert shown(p99)[0] == "predicted p99 latency: 2,140 ms → 262 ms (80.2 ms to no bound)"
    plan = replace(PLAN, predictions=(p99,))
    assert "| 80.2 ms to no bound |" in incident(replace(record(), plan=plan))


def test_a_plan_that_demands_nothing_of_verification_says_so() -> None:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    change.show_plan(PLAN, console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[-1] == "verification will demand: nothing"


P99 = Prediction("e2e_p99_ms", "ms", 112.0, 112.0, 96.0, 134.0, "simulated queue")
VIP = replace(P99, signal="vip_p99_ms", before=3000.0, after=181.0)


@pytest.mark.parametrize(
    ("predictions", "told"),
    [
        ((P99,), "NO GAIN PREDICTED: p99 latency is not expected to fall (112 ms → 112 ms)"),
        ((replace(P99, after=112.4),), "NO GAIN PREDICTED: p99 latency is not expected to fall (112 ms → 112.4 ms)"),
        ((replace(P99, after=60.0),), ""),
        ((replace(P99, after=None),), ""),
        ((replace(P99, before=None),), ""),
        ((replace(P99, after=400.0), VIP), ""),
        ((), ""),
    ],
)
def test_a_plan_that_is_not_expected_to_help_says_so(predictions: tuple[Prediction, ...], told: str) -> None:
    plan = replace(PLAN, predictions=predictions)
    console = Console(file=io.StringIO(), width=120, color_system=None)
    change.show_plan(plan, console)
    assert isinstance(console.file, io.StringIO)
    shown_lines = [line for line in console.file.getvalue().splitlines() if "NO GAIN" in line]
    assert shown_lines == ([told] if told else [])
    written = [line for line in incident(replace(record(), plan=plan)).splitlines() if "NO GAIN" in line]
    assert written == ([f"**{told}**"] if told else [])
