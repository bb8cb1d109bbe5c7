"""Scans the blocks of a large log in threads while the lines found in earlier ones are judged, in order.

The engine lets go of the interpreter while it looks, except to tell of a match. Where matches are dense that costs
more than it gains, so such stretches are scanned without a thread.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from latencydoctor.evidence.logs.blocks import Block, Look, Piece, Seam, cut, number
from latencydoctor.evidence.logs.scanner import Eye, Scanner

BEGINS_BYTES = 16 * 1024 * 1024
"""Threads begin where a file has proved large."""

_AHEAD = 2
"""Blocks in flight for each thread: more would only take memory."""

_DENSE_PER_MIB = 24
"""Where a MiB holds more matches than this they are told of one by one, and a waiting thread holds the other up."""


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ScanAhead:
    """The blocks of a stream of bytes, those of a long one scanned beforehand by `threads`."""

    def __init__(self, scanner: Scanner, threads: int, begins_bytes: int = BEGINS_BYTES) -> None:
        self._scanner = scanner
        self._threads = threads
        self._begins_bytes = begins_bytes
        self._own = threading.local()
        self._dense = False

    def blocks(self, chunks: Iterable[bytes | Seam]) -> Iterator[Block]:
        """Blocks with line numbers, in order, whatever scanned them."""
        pieces = cut(chunks)
        if self._threads < 1:
            return number((piece, None) for piece in pieces)
        return number(self._looked_at(pieces))

    def _looked_at(self, pieces: Iterator[Piece]) -> Iterator[tuple[Piece, Look | None]]:
        seen_bytes = 0
        for piece in pieces:
            yield piece, None
            seen_bytes += len(piece.data)
            if seen_bytes >= self._begins_bytes:
                break
        else:
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield from self._in_threads(pieces, pool)

    def _in_threads(self, pieces: Iterator[Piece], pool: ThreadPoolExecutor) -> Iterator[tuple[Piece, Look | None]]:
        waiting: deque[tuple[Piece, Future[Look]]] = deque()
        for piece in pieces:
            if not self._dense:
                waiting.append((piece, pool.submit(self._look, piece)))
                if len(waiting) > _AHEAD * self._threads:
                    yield self._next(waiting)
                continue
            while waiting:
                yield self._next(waiting)
            look = self._look(piece)
            self._note(piece, look)
            yield piece, look
        while waiting:
            yield self._next(waiting)

    def _next(self, waiting: deque[tuple[Piece, Future[Look]]]) -> tuple[Piece, Look]:
        piece, future = waiting.popleft()
        look = future.result()
        self._note(piece, look)
        return piece, look

    def _note(self, piece: Piece, look: Look) -> None:
        self._dense = len(look.ends) * 1024 * 1024 > _DENSE_PER_MIB * len(piece.data)

    def _look(self, piece: Piece) -> Look:
        eye: Eye | None = getattr(self._own, "eye", None)
        if eye is None:
            eye = self._own.eye = self._scanner.eye()
        return eye.look(piece)
