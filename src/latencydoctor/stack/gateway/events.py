"""The gateway's log: JSON, one event a line, at most one line a second for each kind of event.

An incident makes thousands of the same event a second. The first is written at once; those that follow within the
second are folded into one line that carries their `count` and the largest of each of their numbers.
"""

from __future__ import annotations

import io
import json
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO, TextIO, cast

PERIOD_S = 1.0


def time_text(timestamp_s: float) -> str:
    """RFC 3339 in UTC with milliseconds, from seconds since 1970."""
    return datetime.fromtimestamp(timestamp_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unhindered(stream: TextIO) -> TextIO:
    """The stream; where it is a pipe, one whose lines are lost rather than waited for while nobody reads it.

    A line of an event is far shorter than what a pipe takes whole or not at all.
    """
    descriptor = stream.fileno()
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return stream
    stream.flush()
    os.set_blocking(descriptor, False)
    return io.TextIOWrapper(cast(BinaryIO, io.FileIO(descriptor, "w", closefd=False)), "utf-8", write_through=True)


@dataclass(slots=True)
class _Folded:
    """Events of one kind since its last line."""

    written_s: float
    count: int = 0
    level: str = ""
    message: str = ""
    numbers: dict[str, float] = field(default_factory=dict)

    def add(self, level: str, message: str, numbers: dict[str, float]) -> None:
        self.count += 1
        self.level, self.message = level, message
        for name, value in numbers.items():
            self.numbers[name] = max(value, self.numbers.get(name, value))


class EventLog:
    """Writes events to a stream; `clock` gives seconds since 1970, `counted` is told of every event."""

    def __init__(self, stream: TextIO, clock: Callable[[], float], counted: Callable[[str], None]) -> None:
        self._stream = stream
        self._clock = clock
        self._counted = counted
        self._folded: dict[str, _Folded] = {}

    def emit(self, level: str, event: str, message: str, **numbers: float) -> None:
        """Logs an event of level CRITICAL, ERROR, WARNING or INFO; numbers have their unit in their name."""
        self._counted(event)
        now_s = self._clock()
        folded = self._folded.get(event)
        if folded is None or (not folded.count and now_s - folded.written_s >= PERIOD_S):
            self._folded[event] = _Folded(now_s)
            self._write(now_s, level, event, message, {**numbers, "count": 1})
            return
        folded.add(level, message, numbers)
        if now_s - folded.written_s >= PERIOD_S:
            self._write_folded(now_s, event, folded)

    def flush(self, *, everything: bool = False) -> None:
        """Writes the folded events whose second is over; call it about once a second, and with everything at exit."""
        now_s = self._clock()
        for event, folded in list(self._folded.items()):
            if folded.count and (everything or now_s - folded.written_s >= PERIOD_S):
                self._write_folded(now_s, event, folded)

    def _write_folded(self, now_s: float, event: str, folded: _Folded) -> None:
        self._write(now_s, folded.level, event, folded.message, {**folded.numbers, "count": folded.count})
        self._folded[event] = _Folded(now_s)

    def _write(self, now_s: float, level: str, event: str, message: str, numbers: dict[str, float]) -> None:
        rounded = {name: round(value, 3) for name, value in numbers.items()}
        line = {"time": time_text(now_s), "level": level, "event": event, "message": message, **rounded}
        # A supervisord that was killed reads no more; questions are answered all the same.
        with suppress(OSError):
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()


class LibraryLog(logging.Handler):
    """Hands warnings and errors of the libraries in use on to the event log, so that the log stays JSON throughout."""

    def __init__(self, events: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Logs the record with the last line of its traceback, which names the error."""
        try:
            error = record.exc_info[1] if record.exc_info else None
            detail = f": {type(error).__name__}: {error}" if error else ""
            self._events.emit(record.levelname, "library_log", f"{record.name}: {record.getMessage().strip()}{detail}")
        except Exception:  # noqa: BLE001  # whatever it is: a library that warns is in the middle of something
            self.handleError(record)


@contextmanager
def libraries_logged(events: EventLog) -> Iterator[None]:
    """While it lasts, what uvicorn and asyncio warn of is told to the event log."""
    handler = LibraryLog(events)
    loggers = [logging.getLogger(name) for name in ("uvicorn", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
