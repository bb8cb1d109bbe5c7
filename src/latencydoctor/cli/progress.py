"""What takes long, on a terminal: how far a read is, in bytes, and for how long sources may be asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from latencydoctor.cli import streams

_AFTER_S = 1.0
"""What is read sooner needs no progress."""

_EVERY_S = 0.2


@contextmanager
def asking(deadline: str) -> Iterator[None]:
    """Says that sources are asked, and for how long that may go on; gone when they have answered."""
    console = streams.stderr()
    text = f"asking the sources, {deadline} at most" if console.is_terminal else ""
    console.print(text, end="\r" if text else "", soft_wrap=True)
    try:
        yield
    finally:
        console.print(" " * len(text), end="\r" if text else "", soft_wrap=True)


class Meter:
    """Counts bytes; shows them on standard error while it is entered, where somebody watches."""

    def __init__(self) -> None:
        self._console = streams.stderr()
        self._bytes = 0
        self._began_s = self._shown_s = time.monotonic()
        self._shown = False

    def __enter__(self) -> Meter:
        self._began_s = self._shown_s = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            # Written over with blanks, so that the report begins on a clean line.
            self._console.print(" " * 40, end="\r", soft_wrap=True)

    def add(self, count: int) -> None:
        """So many more bytes have been read."""
        self._bytes += count
        if not self._console.is_terminal:
            return
        now_s = time.monotonic()
        passed_s = now_s - self._began_s
        if passed_s < _AFTER_S or now_s - self._shown_s < _EVERY_S:
            return
        self._shown_s, self._shown = now_s, True
        self._console.print(
            f"read {self._bytes / 1e6:,.0f} MB, {self._bytes / passed_s / 1e6:,.0f} MB/s".ljust(40),
            end="\r",
            soft_wrap=True,
        )
