"""The first signal asks to stop in good order, the second stops at once."""

from __future__ import annotations

import io
import signal
import sys

import pytest

from latencydoctor.cli import streams
from latencydoctor.cli.interrupts import Interrupts, Terminated


@pytest.mark.parametrize(
    ("number", "code", "second", "raised"),
    [
        (signal.SIGINT, 130, signal.SIGINT, KeyboardInterrupt),
        (signal.SIGTERM, 143, signal.SIGINT, KeyboardInterrupt),
        (signal.SIGTERM, 143, signal.SIGTERM, Terminated),
        (signal.SIGHUP, 143, signal.SIGHUP, Terminated),
    ],
)
def test_first_and_second(
    number: signal.Signals,
    code: int,
    second: signal.Signals,
    raised: type[BaseException],
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(number)
    interrupts = Interrupts()
    with interrupts:
        assert (interrupts.asked(), interrupts.code) == (False, None)
        signal.raise_signal(number)
        assert (interrupts.asked(), interrupts.code) == (True, code)
        with pytest.raises(raised):
            signal.raise_signal(second)
        assert interrupts.code == code
    assert signal.getsignal(number) is before
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "stopping in good order (again to stop at once)",
        "stopping at once; run `latencydoctor runs recover` for what is left",
    ]


def test_what_is_ignored_stays_ignored() -> None:
    """Under nohup a change goes on when the terminal is gone."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
            assert not interrupts.asked()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


class Interrupted(io.RawIOBase):
    """A pipe at which Ctrl-C arrives while something is being written to it."""

    arrived = False

    def writable(self) -> bool:
        return True

    def write(self, content: object) -> int:
        if not self.arrived:
            self.arrived = True
            signal.raise_signal(signal.SIGINT)
        return len(bytes(content))  # type: ignore[call-overload]  # what a buffer hands over


def test_a_signal_in_the_middle_of_a_word_of_progress_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.TextIOWrapper(io.BufferedWriter(Interrupted()), encoding="utf-8", line_buffering=True)
    with monkeypatch.context() as patch, Interrupts() as interrupts:
        patch.setattr(sys, "stderr", pipe)
        streams.stderr().print("waiting until the server runs it")
        assert interrupts.asked()
