"""The list of runs: what is pasted into the next command is never cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from latencydoctor.model.remedy import RunState, RunSummary
from latencydoctor.report.change import show_runs

KEPT = RunSummary("20261130T095540Z-ab12ce", "revert-change", "t", RunState.KEPT, 1_796_032_538.0, None, "p")
BACK = RunSummary(
    "20261130T095640Z-ab12cd",
    "batch-floor",
    "t",
    RunState.ROLLBACK_FAILED,
    1_796_032_598.0,
    None,
    "p",
    "rollback",
    KEPT.run_id,
    "line 3",
)


def lines(width: int, *runs: RunSummary) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show_runs(runs, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_names_of_runs_are_whole_on_any_screen(width: int) -> None:
    head, back, kept = lines(width, BACK, KEPT)
    assert head.split() == ["run", "state", "fix", "started", "(UTC)", "what"]
    assert back.split("  ")[0] == BACK.run_id
    assert "rollback failed, DAMAGED" in back
    assert back.endswith(f"2026-11-30T09:56:38Z  rollback of {KEPT.run_id}")
    assert kept.split() == [KEPT.run_id, "kept", "revert-change", "2026-11-30T09:55:38Z", "apply"]


def test_ordinary_runs_fit_eighty_columns() -> None:
    assert max(map(len, lines(80, KEPT))) <= 80
