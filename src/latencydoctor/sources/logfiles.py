"""Log files as a source: paths, folders and globs, plain or gzip, read once in bounded chunks.

What cannot be read becomes a gap that names it; the rest is read all the same. Where the time is limited, what was read
by then counts, and a gap says how much that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.evidence.logs.scan import CHUNK_BYTES, whole_lines
from latencydoctor.model.evidence import Gap, GapReason, QueryRecord, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from latencydoctor.sources.log_rules_ready import RulesReady
from latencydoctor.sources.log_walk import Absent, ByteStream, Closed, Opened, Portion, Step, Turned, stream_steps, walk
from latencydoctor.sources.timely import Timely

SOURCE = "logs"
STANDARD_INPUT = "-"
EMPTY = "empty"
"""The outcome recorded for a file that was read and held nothing."""

MAX_UNPACKED_BYTES = 16 * 1024**3
"""Where a gzip file is given up: logs shrink 10 to 30 times, so this is far above any honest one that fits a disk."""

PROMPT_CHUNK_BYTES = 128 * 1024
"""Read so much at a time where the time is limited: a chunk in which every line matches takes a tenth of a second."""


@dataclass(slots=True)
class _Reading:
    """One pass over all files. `place` is what was turned to last, `whole` the files read to their end."""

    reader: LogReader
    window: Window
    place: str = ""
    whole: int = 0
    all_bytes: int = 0
    read_bytes: int = 0
    closed: Closed | None = None
    gaps: list[Gap] = field(default_factory=list)
    queries: list[QueryRecord] = field(default_factory=list)

    def follow(self, steps: Iterator[Step]) -> None:
        for step in steps:
            if isinstance(step, Turned):
                self._turn_to(step.place)
            elif isinstance(step, Absent):
                self.missing(step)
            elif isinstance(step, Opened):
                self.add(step, steps)

    def missing(self, absent: Absent) -> None:
        detail = f"{absent.place}: {absent.detail}"
        self.gaps.append(Gap(SOURCE, absent.reason, detail, "a readable log file there"))
        self.queries.append(QueryRecord(SOURCE, absent.place, absent.detail, 0))

    def add(self, file: Opened, steps: Iterator[Step]) -> None:
        self._turn_to(file.place)
        # A window in the past dates stamps better than the time at which somebody copied the file.
        reference_s = min(file.modified_s, self.window.end_s)
        events = self.reader.read(file.place, whole_lines(self._chunks(steps)), reference_s)
        self.queries.append(QueryRecord(SOURCE, file.place, self._outcome(), events))
        if self.closed is None:
            return
        self.whole += 1
        if self.closed.broken:
            detail = f"{file.place}: {self.closed.broken}"
            self.gaps.append(Gap(SOURCE, GapReason.BAD_ANSWER, detail, "the rest of the file"))

    def _turn_to(self, place: str) -> None:
        self.place, self.read_bytes, self.closed = place, 0, None

    def _chunks(self, steps: Iterator[Step]) -> Iterator[bytes]:
        for step in steps:
            if isinstance(step, Closed):
                self.closed = step
                return
            if isinstance(step, bytes):
                self.read_bytes += len(step)
                self.all_bytes += len(step)
                yield step

    def _outcome(self) -> str:
        if self.closed is None:
            return f"{GapReason.DEADLINE.value} after {self.read_bytes} bytes"
        return self.closed.broken or ("ok" if self.read_bytes else EMPTY)

    def readings(self) -> Readings:
        return Readings(log_events=self.reader.events(), gaps=tuple(self.gaps), queries=tuple(self.queries))

    def cut_short(self) -> None:
        """The time was up: say how far it went."""
        files = f"{self.whole} file{'' if self.whole == 1 else 's'} and {_size(self.all_bytes)}"
        begun = f"{self.place} to {_size(self.read_bytes)}" if self.read_bytes else f"nothing of {self.place} yet"
        detail = f"the time was up after {files}: {begun}, and nothing that comes after it"
        self.gaps.append(Gap(SOURCE, GapReason.DEADLINE, detail, "a longer --deadline, or fewer log files"))


def _size(count: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} bytes"


class LogFiles:
    """Implements the `LogSource` port over `paths`: files, folders, globs, or `-` for `standard_input`.

    `now_s` dates stamps without a year on standard input, where no file time does. Reading stops at `ends_s` on the
    monotonic clock; None is to read everything.
    """

    def __init__(
        self,
        paths: Sequence[str],
        now_s: Callable[[], float],
        standard_input: ByteStream | None = None,
        max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
        ends_s: float | None = None,
    ) -> None:
        self._paths = tuple(paths)
        self._now_s = now_s
        self._standard_input = standard_input
        self._ends_s = ends_s
        self._ready: RulesReady | None = None
        chunk_bytes = CHUNK_BYTES if ends_s is None else PROMPT_CHUNK_BYTES
        self._portion = Portion(chunk_bytes, max_unpacked_bytes, prompt=ends_s is not None)

    def read(self, rules: Sequence[LogRule], window: Window) -> Readings:
        """Events of `rules` in `window` (those without a time are kept), worst first; a gap for what was not read."""
        if not self._paths:
            detail = "no log files are configured"
            return Readings(gaps=(Gap(SOURCE, GapReason.NOT_CONFIGURED, detail, "`sources.logs` or --log PATH"),))
        if self._ends_s is not None:
            return self._read_until(self._ends_s, rules, window)
        reading = _Reading(LogReader(rules, window), window)
        reading.follow(self._steps())
        return reading.readings()

    def prepare(self, rules: Sequence[LogRule]) -> None:
        """Make these rules ready while other sources are read."""
        self._ready = RulesReady(rules)

    def _read_until(self, ends_s: float, rules: Sequence[LogRule], window: Window) -> Readings:
        ready = self._ready if self._ready is not None and self._ready.rules == tuple(rules) else RulesReady(rules)
        scanner = ready.scanner(ends_s)
        if scanner is None:
            detail = "the time was up before the rules for logs were ready: nothing was read"
            return Readings(gaps=(Gap(SOURCE, GapReason.DEADLINE, detail, "a longer --deadline"),))
        reading = _Reading(LogReader(rules, window, scanner), window)
        timely: Timely[Step] = Timely(self._steps, ends_s)
        reading.follow(iter(timely))
        if timely.is_over:
            reading.cut_short()
        return reading.readings()

    def _steps(self) -> Iterator[Step]:
        seen: set[Path] = set()
        for path in self._paths:
            if path != STANDARD_INPUT:
                yield from walk(path, self._portion, seen)
            elif self._standard_input is not None:
                yield from stream_steps("<stdin>", self._standard_input.read, self._now_s(), self._portion)
