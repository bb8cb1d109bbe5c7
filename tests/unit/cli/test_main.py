"""The one boundary: whatever a command ends with becomes an exit code, a line and a hint."""

from __future__ import annotations

import errno
import signal
import sys
from pathlib import Path

import pytest

from latencydoctor.cli import crash, streams
from latencydoctor.cli import main as boundary
from latencydoctor.cli.interrupts import Terminated
from latencydoctor.errors import ContentError, ContentErrors, KnownError, Location, Refused, RollbackFailed, UsageError


@pytest.fixture(autouse=True)
def own_handlers() -> object:
    """The boundary listens to signals for the rest of the process: they start as in a shell, and are given back."""
    before = {one: signal.signal(one, signal.SIG_DFL) for one in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


def ended(monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> int:
    def command(prog_name: str, standalone_mode: bool) -> None:
        assert prog_name == "latencydoctor"
        if error is not None:
            raise error

    monkeypatch.setattr(boundary, "app", command)
    with pytest.raises(SystemExit) as caught:
        boundary.main()
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (SystemExit(3), 3),
        (KnownError("x"), 1),
        (UsageError("x"), 2),
        (Refused("x"), 5),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
        (OSError(errno.ENOSPC, "No space left on device"), 1),
    ],
    ids=repr,
)
def test_exit_code(monkeypatch: pytest.MonkeyPatch, error: BaseException | None, code: int) -> None:
    assert ended(monkeypatch, error) == code


def test_a_failure_is_told_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    where = Location("f.yaml", 3)
    error = KnownError("no [/INST] \x1b[31m here", hint="choose:\n  --model a\n  --model b", location=where)
    assert ended(monkeypatch, error) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "error: f.yaml:3: no [/INST] [31m here\nhint: choose:\n  --model a\n  --model b\n"


def test_each_problem_has_its_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    problems = tuple(ContentError(f"problem {line}", location=Location("f.yaml", line)) for line in (1, 2))
    assert ended(monkeypatch, ContentErrors(problems)) == 1
    assert capsys.readouterr().err == "error: f.yaml:1: problem 1\nerror: f.yaml:2: problem 2\n"


def test_a_bug_is_told_without_its_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def write(error: Exception) -> str:
        return f"/tmp/details-of-{type(error).__name__}"

    monkeypatch.setattr(crash, "write", write)
    assert ended(monkeypatch, ValueError("secret words")) == 70
    told = capsys.readouterr().err
    assert told.startswith("error: unexpected ValueError; this is a bug in latencydoctor\n")
    assert "/tmp/details-of-ValueError" in told
    assert "secret words" not in told


def test_output_that_is_lost_at_the_very_end_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def close() -> None:
        raise KnownError("the output cannot be written: No space left on device", hint="Make room where it goes.")

    monkeypatch.setattr(streams, "close", close)
    assert ended(monkeypatch, SystemExit(0)) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_is_told_to_end_or_loses_the_terminal_unwinds_the_stack(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(prog_name: str, standalone_mode: bool) -> None:
        signal.raise_signal(number)

    monkeypatch.setattr(boundary, "app", command)
    with pytest.raises(SystemExit) as caught:
        boundary.main()
    assert caught.value.code == 143


def test_under_nohup_a_lost_terminal_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(prog_name: str, standalone_mode: bool) -> None:
        signal.raise_signal(signal.SIGHUP)

    monkeypatch.setattr(boundary, "app", command)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with pytest.raises(SystemExit) as caught:
        boundary.main()
    assert caught.value.code == 0


@pytest.mark.parametrize(("error", "code"), [(Refused("x"), 5), (RollbackFailed("x"), 7)], ids=repr)
def test_the_exit_code_stays_the_verdict_where_the_disk_of_stderr_is_full(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        assert ended(monkeypatch, error) == code
