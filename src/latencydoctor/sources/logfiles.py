"""Log files as a source: paths, folders and globs, plain or gzip, read once in bounded chunks.

What cannot be read becomes a gap that names it; the rest is read all the same. Folders are read to the bottom, links
to folders are not followed. Of a rotated set the oldest file comes first.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from latencydoctor.evidence.logs import LogReader
from latencydoctor.evidence.scan import CHUNK_BYTES, whole_lines
from latencydoctor.model.evidence import Gap, GapReason, QueryRecord, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule

SOURCE = "logs"
STANDARD_INPUT = "-"
EMPTY = "empty"
"""The outcome recorded for a file that was read and held nothing."""

MAX_UNPACKED_BYTES = 16 * 1024**3
"""Where a gzip file is given up: logs shrink 10 to 30 times, so this is far above any honest one that fits a disk."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ROTATED = re.compile(r"(?P<base>.*?)(?:\.(?P<age>\d{1,4}))?(?:\.gz)?", re.DOTALL)


class ByteStream(Protocol):
    """Anything to read bytes from; fewer than asked for, or none, only at the end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        ...


@dataclass(frozen=True, slots=True)
class _File:
    """A file to read and how events name it."""

    path: Path
    place: str


@dataclass(slots=True)
class _Stream:
    """Chunks of one file, counted; `broken` says why they ended early."""

    stream: ByteStream
    max_bytes: int
    read_bytes: int = 0
    broken: str = ""

    def chunks(self) -> Iterator[bytes]:
        while True:
            try:
                chunk = self.stream.read(CHUNK_BYTES)
            except (EOFError, zlib.error, OSError) as error:
                self.broken = f"damaged after {self.read_bytes} bytes: {error}"
                return
            if not chunk:
                return
            self.read_bytes += len(chunk)
            yield chunk
            if self.read_bytes >= self.max_bytes:
                self.broken = f"given up after {self.read_bytes} unpacked bytes"
                return


@dataclass(slots=True)
class _Reading:
    """One pass over all files."""

    reader: LogReader
    gaps: list[Gap] = field(default_factory=list)
    queries: list[QueryRecord] = field(default_factory=list)

    def missing(self, place: str, reason: GapReason, detail: str) -> None:
        self.gaps.append(Gap(SOURCE, reason, f"{place}: {detail}", "a readable log file there"))
        self.queries.append(QueryRecord(SOURCE, place, detail, 0))

    def add(self, place: str, stream: ByteStream, reference_s: float, max_bytes: int) -> None:
        source = _Stream(stream, max_bytes)
        events = self.reader.read(place, whole_lines(source.chunks()), reference_s)
        if source.broken:
            self.gaps.append(Gap(SOURCE, GapReason.BAD_ANSWER, f"{place}: {source.broken}", "the rest of the file"))
        outcome = source.broken or ("ok" if source.read_bytes else EMPTY)
        self.queries.append(QueryRecord(SOURCE, place, outcome, events))


class LogFiles:
    """Implements the `LogSource` port over `paths`: files, folders, globs, or `-` for `standard_input`.

    `now_s` dates stamps without a year on standard input, where no file time does.
    """

    def __init__(
        self,
        paths: Sequence[str],
        now_s: Callable[[], float],
        standard_input: ByteStream | None = None,
        max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
    ) -> None:
        self._paths = tuple(paths)
        self._now_s = now_s
        self._standard_input = standard_input
        self._max_unpacked_bytes = max_unpacked_bytes

    def read(self, rules: Sequence[LogRule], window: Window) -> Readings:
        """Events of `rules` in `window` (those without a time are kept), worst first; a gap for what was not read."""
        reading = _Reading(LogReader(rules, window))
        seen: set[Path] = set()
        for path in self._paths:
            if path == STANDARD_INPUT:
                if self._standard_input is not None:
                    now_s = min(self._now_s(), window.end_s)
                    reading.add("<stdin>", self._standard_input, now_s, self._max_unpacked_bytes)
                continue
            for file in _expand(path, reading):
                real = file.path.resolve()
                if real not in seen:
                    seen.add(real)
                    self._read_file(file, reading, window)
        if not self._paths:
            detail = "no log files are configured"
            reading.gaps.append(Gap(SOURCE, GapReason.NOT_CONFIGURED, detail, "`sources.logs` or --logs"))
        return Readings(log_events=reading.reader.events(), gaps=tuple(reading.gaps), queries=tuple(reading.queries))

    def _read_file(self, file: _File, reading: _Reading, window: Window) -> None:
        try:
            with file.path.open("rb") as stream:
                # A window in the past dates stamps better than the time at which somebody copied the file.
                reference_s = min(file.path.stat().st_mtime, window.end_s)
                head = stream.peek(4)[:4]
                if head.startswith(_ZSTD):
                    reading.missing(
                        file.place, GapReason.NOT_SUPPORTED, "zstd files cannot be read yet; unpack it first"
                    )
                elif head.startswith(_GZIP):
                    with gzip.GzipFile(fileobj=stream) as unpacked:
                        reading.add(file.place, unpacked, reference_s, self._max_unpacked_bytes)
                else:
                    reading.add(file.place, stream, reference_s, self._max_unpacked_bytes)
        except OSError as error:
            reading.missing(file.place, GapReason.UNREACHABLE, error.strerror or str(error))


def _expand(given: str, reading: _Reading) -> list[_File]:
    """The files an argument means, oldest of each rotated set first; a gap when there are none."""
    path = Path(given).expanduser()
    try:
        if path.is_dir():
            found = [inner for inner in path.rglob("*") if inner.is_file() and not inner.name.startswith(".")]
            files = [_File(inner, _place(given, inner)) for inner in found]
            missing = "the folder holds no file"
        elif any(mark in given for mark in "*?[") and not path.exists():
            start = Path(path.anchor)
            found = [inner for inner in start.glob(str(path.relative_to(start))) if inner.is_file()]
            files = [_File(inner, _place(given, inner)) for inner in found]
            missing = "no file matches"
        else:
            # Refuses here what no file system takes: a NUL, or links in a circle.
            path.resolve()
            return [_File(path, _place(given, path))]
    except (OSError, ValueError, RuntimeError) as error:
        files, missing = [], str(error)
    if not files:
        reading.missing(_place(given, path), GapReason.UNREACHABLE, missing)
    return sorted(files, key=_rotation)


def _place(given: str, path: Path) -> str:
    """How events name a file: as it was given, or with its folder only, so that no absolute path reaches a report."""
    if Path(given).expanduser().is_absolute():
        return "/".join(path.parts[-2:]).lstrip("/")
    return path.as_posix()


def _rotation(file: _File) -> tuple[str, int]:
    match = _ROTATED.fullmatch(str(file.path))
    age = match["age"] if match else None
    return (match["base"] if match else str(file.path), -int(age) if age else 0)
