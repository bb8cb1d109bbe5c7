"""What a drill shows while it runs."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latencydoctor.app.ports import Progress
from latencydoctor.app.scenarios import find
from latencydoctor.cli.drill import Fault, _Board, app, flash_crowd
from latencydoctor.errors import KnownError
from latencydoctor.model.drill import Drilled, DrillFigures
from latencydoctor.model.incident import IncidentRecord
from tests.unit.app.test_drill import healthy

STEPS = (
    Progress("up", "starting the stack"),
    Progress("up", "triton is ready"),
    Progress("before", "the alert fires"),
    Progress("plan", "-    max_batch_size: 8\n+    max_batch_size: 32"),
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stderr", stream)
        with _Board(rollback=False) as board:
            for step in STEPS:
                board.observe(step)
    return stream.getvalue()


def test_one_line_a_phase_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch).splitlines() == [
        "up: starting the stack",
        "before: the alert fires",
        "dry run of the change:",
        "-    max_batch_size: 8",
        "+    max_batch_size: 32",
    ]


def test_a_board_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(Terminal(), monkeypatch)
    assert "\x1b" in text
    assert "+    max_batch_size: 32" in text


def test_what_was_drilled_is_shown_also_where_its_report_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The figures took two minutes, and there are none but on the screen."""
    figures = DrillFigures(3000.0, 100.0, 30.0, 10, 0, 310.0, 100.0, 0.2, 50.0, "batching", "sim:small")
    record = IncidentRecord("Drill", "sim:small", healthy(), None, None, (), ())
    drilled = Drilled(find("batching"), figures, (), record, ())
    monkeypatch.setattr("latencydoctor.cli.stage.flash_crowd", lambda *_: drilled)

    def full(*_: object) -> None:
        raise KnownError("no room is left")

    monkeypatch.setattr("latencydoctor.cli.stage.write_report", full)
    done = CliRunner().invoke(app, ["flash-crowd", "--report", str(tmp_path / "report.md")])
    assert isinstance(done.exception, KnownError)
    assert json.loads(done.stdout.splitlines()[-1])


def test_the_help_tells_of_every_fault() -> None:
    told = flash_crowd.__doc__
    assert told is not None
    assert not [fault for fault in Fault if fault.value not in told]
