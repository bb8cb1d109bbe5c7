"""Follows logs that are still being written and tells of events as they come; at the end there is the whole pyramid.

Each source has a thread, which waits for bytes, and a reader; one at a time works.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from latencydoctor.evidence.logs.blocks import Block, Look, Piece, Seam, number
from latencydoctor.evidence.logs.levels import LevelCounter, LevelCounts
from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.model.evidence import Gap, GapReason, LogEvent, QueryRecord, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from latencydoctor.sources.compiled_store import scanner as log_scanner
from latencydoctor.sources.followed import Followed, lines_as_they_come
from latencydoctor.sources.log_reading import EMPTY, SOURCE

OnEvent = Callable[[LogEvent], None]


@dataclass(slots=True)
class _Result:
    events: int = 0
    bytes: int = 0
    broken: str = ""
    failure: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)
    levels: LevelCounts = field(default_factory=LevelCounts)


class Follower:
    """Follows `sources` until they end or `stop` is set; `on_event` is told of each event, one at a time."""

    def __init__(
        self,
        sources: Sequence[Followed],
        rules: Sequence[LogRule],
        window: Window,
        on_event: OnEvent,
        *,
        redact_prompts: bool = False,
        zone: tzinfo | None = None,
        levels: bool = False,
    ) -> None:
        self._sources = tuple(sources)
        self._rules = tuple(rules)
        self._window = window
        self._on_event = on_event
        self._redact_prompts = redact_prompts
        self._zone = zone
        self._turn = threading.Lock()
        self._scanner = log_scanner(rules)
        self._levels = LevelCounter() if levels else None
        self.stop = threading.Event()

    def run(self) -> Readings:
        """Follow; an interrupt ends it like the sources' own end would. What `on_event` raises ends it as well."""
        readers = [self._reader(self._scanner) for _ in self._sources]
        results = [_Result() for _ in self._sources]
        for one in zip(self._sources, readers, results, strict=True):
            threading.Thread(target=self._follow, args=one, daemon=True).start()
        try:
            self._wait(results)
        except KeyboardInterrupt:
            self.stop.set()
        self._wait(results)
        for failure in (result.failure for result in results if result.failure is not None):
            raise failure
        return self._together(readers, results)

    def _wait(self, results: Sequence[_Result]) -> None:
        # Not for the threads: an interrupted join takes a thread for ended that is not. With a time it is interrupted.
        for result in results:
            while not result.done.wait(0.2):
                pass

    def _reader(self, scanner: Scanner) -> LogReader:
        return LogReader(self._rules, self._window, scanner, zone=self._zone, redact_prompts=self._redact_prompts)

    def _follow(self, source: Followed, reader: LogReader, result: _Result) -> None:
        try:
            with self._turn:
                blocks = self._blocks(self._waiting(self._chunks(source), result), reader, result)
                reference_s = min(time.time(), self._window.end_s)
                result.events = sum(reader.read(source.place, blocks, reference_s, self._on_event).values())
        except OSError as error:
            result.broken = error.strerror or str(error)
        except BaseException as error:  # noqa: BLE001  # whatever it is: nobody hears what a thread raises
            result.failure = error
            self.stop.set()
        finally:
            result.done.set()

    def _chunks(self, source: Followed) -> Iterator[bytes | Seam]:
        """What comes, one incarnation after the other: what is open in one may go on in the next."""
        for incarnation in source.incarnations(self.stop):
            yield Seam(source.place, min(max(incarnation.modified_s, time.time()), self._window.end_s))
            yield from incarnation.chunks

    def _waiting(self, chunks: Iterator[bytes | Seam], result: _Result) -> Iterator[bytes | Seam]:
        """The chunks, letting others work while the next one is waited for."""
        while True:
            self._turn.release()
            try:
                chunk = next(chunks, None)
            finally:
                self._turn.acquire()
            if chunk is None:
                return
            if isinstance(chunk, bytes):
                result.bytes += len(chunk)
            yield chunk

    def _blocks(self, chunks: Iterator[bytes | Seam], reader: LogReader, result: _Result) -> Iterator[Block]:
        def pieces() -> Iterator[tuple[Piece, Look | None]]:
            for piece in lines_as_they_come(chunks):
                if piece is None:
                    reader.settle(time.time())
                    continue
                if self._levels is not None:
                    result.levels.add(self._levels.count(piece.data))
                yield piece, None

        return number(pieces())

    def _together(self, readers: Sequence[LogReader], results: Sequence[_Result]) -> Readings:
        whole = self._reader(self._scanner)
        counts = LevelCounts()
        gaps: list[Gap] = []
        queries: list[QueryRecord] = []
        for source, reader, result in zip(self._sources, readers, results, strict=True):
            whole.merge(reader.export())
            counts.add(result.levels)
            outcome = result.broken or ("ok" if result.bytes else EMPTY)
            queries.append(QueryRecord(SOURCE, source.place, outcome, result.events))
            if result.broken:
                detail = f"{source.place}: {result.broken}"
                gaps.append(Gap(SOURCE, GapReason.BAD_ANSWER, detail, "the rest of it"))
        levels = tuple(counts.histogram().items()) if self._levels is not None else ()
        return Readings(
            log_events=whole.events(), gaps=tuple(gaps), queries=tuple(queries), levels=levels, quiet=whole.quiet()
        )
