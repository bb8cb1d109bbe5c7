"""Where output goes: reports to stdout, progress and errors to stderr; no escape codes when nobody looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from rich.console import Console

from latencydoctor.errors import KnownError

if TYPE_CHECKING:
    from latencydoctor.app.ports import Progress

_PIPED_WIDTH = 120


class _Guarded:
    """A stream whose reader may leave: `latencydoctor ... | head` is no failure, and the exit code stays the verdict.

    What standard error cannot take is lost: a word on the way must neither end a change nor stand in for its verdict.
    Everything but writing is the stream's own.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._reader_may_leave():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._reader_may_leave():
            self._stream.flush()

    @contextmanager
    def _reader_may_leave(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            _discard(self._stream)
        except OSError as error:
            _discard(self._stream)
            if self._stream is not sys.stderr:
                reason = error.strerror or str(error)
                raise KnownError(f"the output cannot be written: {reason}", hint="Make room where it goes.") from error
        except RuntimeError:
            # A signal's handler has something to say while something is being said.
            if self._stream is not sys.stderr:
                raise

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def stdout() -> Console:
    """For reports and data."""
    return _console(sys.stdout)


def stderr() -> Console:
    """For progress, summaries and errors."""
    return _console(sys.stderr)


def write(text: str) -> None:
    """A finished document to stdout, as it is."""
    guarded = _Guarded(sys.stdout)
    guarded.write(text if text.endswith("\n") else text + "\n")
    guarded.flush()


def prepare() -> None:
    """Before the first word: a stream that is closed leads nowhere, and what an encoding lacks becomes an escape."""
    if os.environ.get("NO_COLOR"):
        # Help is printed by typer, which keeps bold and dim; for a dumb terminal it has none.
        os.environ["TERM"] = "dumb"
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Open to the end of the program, so there is no block to close it after.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - stays open till exit
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def close() -> None:
    """Write out what is buffered; `KnownError` when stdout cannot take it. Afterwards nothing is left to fail."""
    for stream in (sys.stdout, sys.stderr):
        _Guarded(stream).flush()


def _discard(stream: TextIO) -> None:
    """What is written from now on goes nowhere; Python's own exit would complain again otherwise."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def show_progress(progress: Progress) -> None:
    """One line that is written over on a terminal; where nobody watches, only the last word."""
    console = stderr()
    if console.is_terminal:
        ends = progress.done_ratio is None or progress.done_ratio >= 1
        console.print(progress.text, end="\n" if ends else "\r", soft_wrap=True)
    elif progress.done_ratio is not None and progress.done_ratio >= 1:
        console.print(progress.text, soft_wrap=True)


def interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _console(stream: TextIO) -> Console:
    # rich keeps bold and dim under NO_COLOR; here the variable means no escape codes at all.
    bare = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not stream.isatty()
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _PIPED_WIDTH
    return Console(
        file=cast(TextIO, _Guarded(stream)),
        color_system=None if bare else "auto",
        force_terminal=False if bare else None,
        highlight=False,
        markup=False,
        width=width,
    )
