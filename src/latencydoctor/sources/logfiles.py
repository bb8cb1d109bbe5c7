"""Log files as a source: paths, folders and globs, plain or packed, read once in bounded chunks.

What cannot be read becomes a gap that names it; the rest is read all the same. Where the time is limited, what was read
by then counts, and a gap says how much that was.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from latencydoctor.evidence.logs.blocks import CHUNK_BYTES
from latencydoctor.evidence.logs.levels import LevelCounter, LevelCounts
from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.model.evidence import Gap, GapReason, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from latencydoctor.sources import log_jobs
from latencydoctor.sources.compiled_store import scanner as log_scanner
from latencydoctor.sources.log_reading import EMPTY, SOURCE, OnBytes, Reading, say_nothing
from latencydoctor.sources.log_rules_ready import RulesReady
from latencydoctor.sources.log_targets import Absent, Target, after, at_home, place_of, side_by_side, targets
from latencydoctor.sources.log_walk import ByteStream, Portion, Step, Turned, stream_steps, walk
from latencydoctor.sources.scan_ahead import ScanAhead, cores
from latencydoctor.sources.timely import Timely

__all__ = ["EMPTY", "SOURCE", "LogFiles", "LogOptions"]

STANDARD_INPUT = "-"
_STANDARD_INPUT_PLACE = "<stdin>"

MAX_UNPACKED_BYTES = 16 * 1024**3
"""Where a packed file is given up: logs shrink 10 to 30 times, so this is far above any honest one that fits a disk."""

PROMPT_CHUNK_BYTES = 128 * 1024
"""Read so much at a time where the time is limited: a chunk in which every line matches takes a tenth of a second."""

_SCAN_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How files are read.

    `processors` is by how many processes at most, None by as many as there are processors, up to `log_jobs.MOST`; the
    result does not depend on it. `redact_prompts` blanks what users wrote, `levels` counts every line's level,
    `zone` is that of stamps which name none (else what a wrapper's stamps teach, else UTC).
    """

    processors: int | None = None
    on_bytes: OnBytes = say_nothing
    redact_prompts: bool = False
    zone: tzinfo | None = None
    levels: bool = False
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES
    worth_bytes: int = log_jobs.WORTH_BYTES


class LogFiles:
    """Implements the `LogSource` port over `paths`: files, folders, globs, or `-` for `standard_input`.

    `now_s` dates stamps without a year on standard input, where no file time does. Reading stops at `ends_s` on the
    monotonic clock; None is to read everything, and then what `beside` adds.
    """

    def __init__(
        self,
        paths: Sequence[str],
        now_s: Callable[[], float],
        standard_input: ByteStream | None = None,
        ends_s: float | None = None,
        options: LogOptions | None = None,
        beside: Callable[[Reading], None] | None = None,
    ) -> None:
        self._paths = tuple(side_by_side(paths))
        self._now_s = now_s
        self._standard_input = standard_input
        self._ends_s = ends_s
        self._options = options or LogOptions()
        self._beside = beside or (lambda _reading: None)
        self._ready: RulesReady | None = None
        chunk_bytes = CHUNK_BYTES if ends_s is None else PROMPT_CHUNK_BYTES
        self._portion = Portion(chunk_bytes, self._options.max_unpacked_bytes)

    def read(self, rules: Sequence[LogRule], window: Window) -> Readings:
        """Events of `rules` in `window` (those without a time are kept), worst first; a gap for what was not read."""
        if not self._paths:
            detail = "no log files are configured"
            return Readings(gaps=(Gap(SOURCE, GapReason.NOT_CONFIGURED, detail, "`sources.logs` or --log PATH"),))
        if self._ends_s is not None:
            return self._read_until(self._ends_s, rules, window)
        scanner = log_scanner(rules)
        if STANDARD_INPUT not in self._paths:
            streams = _streams(self._targets())
            processes = self._processes(streams)
            if processes > 1:
                return self._read_in_processes(streams, processes, rules, window, scanner)
        reading = self._reading(rules, window, scanner, _SCAN_PROCESSES if self._processors() > 1 else 0)
        reading.follow(self._steps())
        self._beside(reading)
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
        reading = self._reading(rules, window, scanner)
        timely: Timely[Step] = Timely(self._steps, ends_s)
        reading.follow(iter(timely))
        if timely.is_over:
            reading.cut_short()
        return reading.readings()

    def _read_in_processes(
        self,
        streams: Sequence[Sequence[Target | Absent]],
        processes: int,
        rules: Sequence[LogRule],
        window: Window,
        scanner: Scanner,
    ) -> Readings:
        scanner.prepare()

        def read_one(index: int, on_bytes: OnBytes) -> log_jobs.Part:
            apart = self._reading(rules, window, scanner, on_bytes=on_bytes)
            apart.follow(self._walk(streams[index]))
            found = apart.reader.export(), tuple(apart.gaps), tuple(apart.queries), apart.ahead.level_counts
            return log_jobs.Part(index, 0, *found)

        parts: dict[int, log_jobs.Part] = {}
        for part in log_jobs.read_all(log_jobs.shares([_size_bytes(one) for one in streams], processes), read_one):
            self._options.on_bytes(part.read_bytes)
            if part.counts is not None:
                parts[part.index] = part
        whole = self._reading(rules, window, scanner)
        for index, stream in enumerate(streams):
            mine = parts.get(index)
            if mine is None or mine.counts is None:
                # The process that should have read it was ended from outside.
                whole.follow(self._walk(stream))
                continue
            whole.reader.merge(mine.counts)
            whole.gaps.extend(mine.gaps)
            whole.queries.extend(mine.queries)
            whole.ahead.level_counts.add(mine.levels or LevelCounts())
        self._beside(whole)
        return whole.readings()

    def _processors(self) -> int:
        return self._options.processors or min(cores(), log_jobs.MOST)

    def _processes(self, streams: Sequence[Sequence[Target | Absent]]) -> int:
        """How many processes are worth their start: none but this where one stream holds nearly everything."""
        sizes = [_size_bytes(one) for one in streams if isinstance(one[0], Target)]
        if not sizes or "fork" not in multiprocessing.get_all_start_methods():
            return 1
        rest = sum(sizes) - max(sizes)
        return min(self._processors(), len(sizes)) if rest >= self._options.worth_bytes else 1

    def _reading(
        self,
        rules: Sequence[LogRule],
        window: Window,
        scanner: Scanner,
        processes: int = 0,
        on_bytes: OnBytes | None = None,
    ) -> Reading:
        reader = LogReader(rules, window, scanner, zone=self._options.zone, redact_prompts=self._options.redact_prompts)
        levels = LevelCounter() if self._options.levels else None
        ahead = ScanAhead(scanner, processes, levels=levels)
        return Reading(reader, window, ahead, on_bytes or self._options.on_bytes)

    def _targets(self) -> Iterator[Target | Absent]:
        seen: set[tuple[int, int]] = set()
        last: Target | Absent | None = None
        for path in self._paths:
            for target in targets(path, seen):
                last = after(last, target)
                yield last

    def _walk(self, stream: Iterable[Target | Absent]) -> Iterator[Step]:
        for target in stream:
            yield from walk(target, self._portion)

    def _steps(self) -> Iterator[Step]:
        seen: set[tuple[int, int]] = set()
        last: Target | Absent | None = None
        for path in self._paths:
            if path != STANDARD_INPUT:
                yield Turned(place_of(path, at_home(path)))
                for target in targets(path, seen):
                    last = after(last, target)
                    yield from walk(last, self._portion)
            elif self._standard_input is not None:
                last = None
                yield from self._standard_input_steps(self._standard_input)

    def _standard_input_steps(self, stream: ByteStream) -> Iterator[Step]:
        # A pipe hands on what it has; a buffer would wait until its chunk is full.
        read = getattr(stream, "read1", stream.read)
        try:
            yield from stream_steps(_STANDARD_INPUT_PLACE, read, self._now_s(), self._portion)
        except OSError as error:
            yield Absent(_STANDARD_INPUT_PLACE, GapReason.UNREACHABLE, error.strerror or str(error))


def _streams(found: Iterable[Target | Absent]) -> list[list[Target | Absent]]:
    """What is read in one go: the files of a rotated set together, everything else by itself."""
    streams: list[list[Target | Absent]] = []
    for one in found:
        if isinstance(one, Target) and one.continues:
            streams[-1].append(one)
        else:
            streams.append([one])
    return streams


def _size_bytes(stream: Sequence[Target | Absent]) -> int:
    return sum(one.size_bytes for one in stream if isinstance(one, Target))
