"""What a drill shows while it runs."""

from __future__ import annotations

import io
import sys

import pytest

from latencydoctor.app.ports import Progress
from latencydoctor.cli.drill import _Board

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
