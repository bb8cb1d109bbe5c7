"""What is said while sources are asked."""

from __future__ import annotations

import io
import sys

import pytest

from latencydoctor.cli import progress
from tests.unit.cli.test_drill import Terminal


def test_on_a_terminal_it_says_for_how_long_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.asking("20s"):
        assert screen.getvalue() == "asking the sources, 20s at most\r"
    assert screen.getvalue().endswith(f"\r{' ' * 31}\r")


def test_where_nobody_looks_it_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with progress.asking("20s"):
        pass
    assert pipe.getvalue() == ""
