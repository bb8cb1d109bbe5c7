"""Asking a person."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from latencydoctor.cli import approval, streams
from latencydoctor.errors import KnownError, Refused


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "interactive", lambda: True)


def test_approved_beforehand_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    approval.ask("Apply?", yes=True)


def test_without_a_terminal_the_flag_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "interactive", lambda: False)
    with pytest.raises(Refused, match="no terminal") as caught:
        approval.ask("Apply?", yes=False)
    assert "--yes" in caught.value.hint


@pytest.mark.parametrize("typed", ["y\n", "Y\n", "yes\n", " YES \n"])
def test_a_yes(typed: str, terminal: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    approval.ask("Apply [/INST]?", yes=False)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "Apply [/INST]? [y/N] ")


@pytest.mark.parametrize("typed", [b"n\n", b"\n", b"", b"yep\n", b"ja\n", b"y\xff\n"])
def test_anything_else_is_a_no(typed: bytes, terminal: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8"))
    with pytest.raises(Refused, match="not approved") as caught:
        approval.ask("Apply?", yes=False)
    assert caught.value.hint == "Nothing was changed."


def test_what_never_ends_is_no_plan() -> None:
    with pytest.raises(KnownError, match="too large to be a plan"):
        approval.reader(Path("/dev/zero"))
