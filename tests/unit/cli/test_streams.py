"""Where output goes when its reader leaves, its disk is full, or nobody looks."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from latencydoctor.cli import main, streams
from latencydoctor.errors import KnownError


@contextmanager
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Inside, stdout is a pipe; yields its reading end. (In a fixture pytest would put its own stdout back.)"""
    reading, writing = os.pipe()
    with monkeypatch.context() as patch, os.fdopen(writing, "w", encoding="ascii") as stream:
        patch.setattr(sys, "stdout", stream)
        yield reading


def test_a_document_ends_its_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with piped(monkeypatch) as reading:
        streams.write("a")
        streams.write("b\n")
        streams.stdout().print("c [/INST]")
        assert os.read(reading, 100) == b"a\nb\nc [/INST]\n"
        os.close(reading)


def test_whoever_reads_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    with piped(monkeypatch) as reading:
        streams.write("a")
        os.close(reading)
        streams.write("b")
        streams.stdout().print("c")
        streams.close()
        sys.stdout.write("goes nowhere")
        sys.stdout.flush()


def test_a_full_disk_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, Path("/dev/full").open("w", encoding="utf-8") as full:
        patch.setattr(sys, "stdout", full)
        with pytest.raises(KnownError, match="cannot be written: No space left on device"):
            streams.write("a")
        streams.write("b")
        streams.close()


def test_what_an_encoding_lacks_becomes_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    with piped(monkeypatch) as reading:
        streams.prepare()
        streams.write("p99 ≤ 1 s \udcff")
        assert os.read(reading, 100) == b"p99 \\u2264 1 s \\udcff\n"
        os.close(reading)


def test_a_closed_stream_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        patch.setattr(sys, "stderr", None)
        streams.prepare()
        with sys.stdout, sys.stderr:
            streams.write("a")
            streams.stderr().print("b")
            streams.close()


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "codes"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=str,
)
def test_escape_codes_are_for_terminals_that_want_them(
    environment: dict[str, str], codes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", Terminal())
    streams.stderr().print("error", style="bold red")
    assert ("\x1b" in text_of(sys.stderr)) == codes


@pytest.mark.parametrize(("environment", "codes"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=str)
def test_help_has_escape_codes_only_where_they_are_wanted(
    environment: dict[str, str], codes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Terminal())
    streams.prepare()
    main.app(["rules", "--help"], prog_name="latencydoctor", standalone_mode=False)
    assert "Options" in text_of(sys.stdout)
    assert ("\x1b" in text_of(sys.stdout)) == codes


def test_no_escape_codes_into_a_pipe_even_if_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    streams.stdout().print("healthy", style="bold green")
    assert text_of(sys.stdout) == "healthy\n"


def text_of(stream: TextIO) -> str:
    assert isinstance(stream, io.StringIO)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("stdin", "stderr", "asked"),
    [
        (Terminal(), Terminal(), True),
        (Terminal(), io.StringIO(), False),
        (io.StringIO(), Terminal(), False),
        (None, Terminal(), False),
    ],
    ids=["both", "stderr piped", "stdin piped", "stdin closed"],
)
def test_who_can_be_asked(stdin: TextIO | None, stderr: TextIO, asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert streams.interactive() == asked


def test_what_standard_error_cannot_take_is_lost_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, Path("/dev/full").open("w", encoding="utf-8") as full:
        patch.setattr(sys, "stderr", full)
        streams.stderr().print("bringing the old settings back")
        streams.stderr().print("they are back")
        streams.close()
