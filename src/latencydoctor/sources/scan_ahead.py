"""Scans the blocks of a large log in other processes while the lines found in earlier ones are judged, in order.

Processes and not threads: the engine lets go of the interpreter while it looks, but asks for it with every match, and
where matches are dense it would wait for it more than it looks. A process is forked, so that the compiled rules are
shared, gets a piece through memory that both see, and tells where to look; it ends with its parent. Without any, or
when one dies, the pieces are looked at here.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection

from latencydoctor.evidence.logs.blocks import CHUNK_BYTES, MAX_LINE_BYTES, Block, Look, Piece, Seam, cut, number
from latencydoctor.evidence.logs.levels import LevelCounter, LevelCounts
from latencydoctor.evidence.logs.scanner import Scanner

BEGINS_BYTES = 16 * 1024 * 1024
"""Processes begin where a file has proved large: a fork takes some ten milliseconds."""

_AHEAD = 3
"""Pieces in flight for each process: more would only take memory."""

_SLOT_BYTES = CHUNK_BYTES + 2 * MAX_LINE_BYTES
"""What a piece takes at most when the stream comes in chunks of the usual size."""

_ORDER = struct.Struct("=qq")

Looking = Callable[[bytes], tuple[Look, LevelCounts | None]]


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ScanAhead:
    """The blocks of a stream of bytes, those of a long one scanned beforehand by so many `processes`.

    With `levels` every line's level is counted on the way, into `level_counts`.
    """

    def __init__(
        self,
        scanner: Scanner,
        processes: int,
        begins_bytes: int = BEGINS_BYTES,
        levels: LevelCounter | None = None,
    ) -> None:
        self._scanner = scanner
        self._processes = processes if "fork" in get_all_start_methods() else 0
        self._begins_bytes = begins_bytes
        self._levels = levels
        self.level_counts = LevelCounts()

    @property
    def counts_levels(self) -> bool:
        """Whether levels are counted."""
        return self._levels is not None

    def blocks(self, chunks: Iterable[bytes | Seam]) -> Iterator[Block]:
        """Blocks with line numbers, in order, whatever scanned them."""
        return number(self._looked_at(cut(chunks)))

    def _looked_at(self, pieces: Iterator[Piece]) -> Iterator[tuple[Piece, Look | None]]:
        seen_bytes = 0
        for piece in pieces:
            if self._levels is not None:
                self.level_counts.add(self._levels.count(piece.data))
            yield piece, None
            seen_bytes += len(piece.data)
            if self._processes and seen_bytes >= self._begins_bytes:
                break
        else:
            return
        self._scanner.prepare()
        with closing(_Eyes(self._look, self._processes)) as eyes:
            for piece, (look, levels) in eyes.look(pieces):
                if levels is not None:
                    self.level_counts.add(levels)
                yield piece, look

    def _look(self, data: bytes) -> tuple[Look, LevelCounts | None]:
        return self._scanner.look(data), self._levels.count(data) if self._levels is not None else None


class _Eyes:
    """Processes that take turns; piece after piece comes back in order."""

    def __init__(self, look: Looking, processes: int) -> None:
        self._look = look
        self._memory = mmap.mmap(-1, processes * _AHEAD * _SLOT_BYTES)
        self._eyes: list[_Eye] = []
        for _ in range(processes):
            self._eyes.append(_Eye(look, self._memory, [eye.pipe for eye in self._eyes]))

    def look(self, pieces: Iterable[Piece]) -> Iterator[tuple[Piece, tuple[Look, LevelCounts | None]]]:
        """Each piece with what was seen in it."""
        waiting: deque[tuple[Piece, _Eye | None]] = deque()
        slots = len(self._eyes) * _AHEAD
        for index, piece in enumerate(pieces):
            if len(waiting) == slots:  # and so the oldest one's slot is this one's
                yield self._next(waiting)
            eye = self._eyes[index % len(self._eyes)]
            waiting.append((piece, eye if self._order(eye, piece.data, index % slots) else None))
        while waiting:
            yield self._next(waiting)

    def close(self) -> None:
        """End them."""
        for eye in self._eyes:
            eye.end()
        self._memory.close()

    def _order(self, eye: _Eye, data: bytes, slot: int) -> bool:
        if len(data) > _SLOT_BYTES:
            return False
        start = slot * _SLOT_BYTES
        self._memory[start : start + len(data)] = data
        return eye.order(start, len(data))

    def _next(self, waiting: deque[tuple[Piece, _Eye | None]]) -> tuple[Piece, tuple[Look, LevelCounts | None]]:
        piece, eye = waiting.popleft()
        seen = eye.answer() if eye is not None else None
        return piece, seen or self._look(piece.data)


class _Eye:
    """One process; once it is gone it takes no order and has no answer."""

    def __init__(self, look: Looking, memory: mmap.mmap, others: Sequence[Connection]) -> None:
        fork = get_context("fork")
        self.pipe, theirs = fork.Pipe()
        # Of the other ends nothing stays open in a child, so that it notices when its parent is gone.
        self._process = fork.Process(target=_serve, args=(look, memory, theirs, [*others, self.pipe]), daemon=True)
        self._process.start()
        theirs.close()

    def order(self, start: int, length: int) -> bool:
        try:
            self.pipe.send_bytes(_ORDER.pack(start, length))
        except OSError:
            return False
        return True

    def answer(self) -> tuple[Look, LevelCounts | None] | None:
        try:
            seen: tuple[Look, LevelCounts | None] = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return seen

    def end(self) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.join()


def _serve(look: Looking, memory: mmap.mmap, pipe: Connection, inherited: Sequence[Connection]) -> None:
    # An interrupt of the terminal is the parent's to answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()
    try:
        while True:
            start, length = _ORDER.unpack(pipe.recv_bytes())
            pipe.send(look(memory[start : start + length]))
    except (EOFError, OSError):
        return
