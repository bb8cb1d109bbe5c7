"""The predictions of a plan on the screen: every figure, and how it was reached as often as it changes."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from latencydoctor.model.remedy import Prediction
from latencydoctor.report import change
from tests.unit.app.test_drill import PLAN


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
