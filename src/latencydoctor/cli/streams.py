"""Where output goes: reports to stdout, progress and errors to stderr; no escape codes when nobody looks."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console

_PIPED_WIDTH = 120


def stdout() -> Console:
    """For reports and data."""
    return _console(sys.stdout)


def stderr() -> Console:
    """For progress, summaries and errors."""
    return _console(sys.stderr)


def write(text: str) -> None:
    """A finished document to stdout, as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _console(stream: TextIO) -> Console:
    # rich keeps bold and dim under NO_COLOR; here the variable means no escape codes at all.
    bare = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not stream.isatty()
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _PIPED_WIDTH
    return Console(
        file=stream,
        color_system=None if bare else "auto",
        force_terminal=False if bare else None,
        highlight=False,
        markup=False,
        width=width,
    )
