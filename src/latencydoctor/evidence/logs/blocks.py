"""Cuts a byte stream into blocks of whole lines, with memory bounded by `MAX_LINE_BYTES` and the size of its chunks.

`cut` gives pieces, which may be scanned in any order; `number` then makes them blocks with line numbers.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

CHUNK_BYTES = 1024 * 1024
"""How much a reader should hand over at a time; larger blocks gained nothing when tried."""

MAX_LINE_BYTES = 256 * 1024
"""The part of a line that is looked at; dumps of arguments and prompts reach 100 kB, the rest is cut off."""

LOOK_BACK_BYTES = 16 * 1024
"""How far before and after a line its record is searched: tracebacks through a model run to about 10 kB."""

_WORTH_NUMPY_BYTES = 128 * 1024 * 1024
"""numpy counts three times as quickly and takes a tenth of a second to import: both are even after 0.3 GB."""


_TAIL_BYTES = 64 * 1024
_STATE_BYTES = 512
_PROGRESS = re.compile(rb"\d%|(?:it|s|B)/(?:s|it)")


@dataclass(frozen=True, slots=True)
class Seam:
    """Where in a stream the next file of a rotated set begins: how events name it, and a moment soon after its end."""

    place: str
    reference_s: float


@dataclass(frozen=True, slots=True)
class Piece:
    """Complete lines, the last one's newline included where there is one.

    `before` and `after` are the end of what came earlier in the same stream and the beginning of what follows, at most
    `LOOK_BACK_BYTES` of it. `seam` is there where another file begins with it.
    """

    data: bytes
    before: bytes = b""
    after: bytes = b""
    seam: Seam | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What scanning a piece gave: where matches end, ascending, one or more in a line that matches; how many newlines
    come before each; and how many there are in all."""

    ends: list[int]
    lines: list[int]
    newlines: int


@dataclass(frozen=True, slots=True)
class Block:
    """A piece whose first line has the number `first_line`, counted from 1 over the whole stream.

    `look` is there where it has been scanned before.
    """

    data: bytes
    first_line: int
    before: bytes = b""
    after: bytes = b""
    look: Look | None = None
    seam: Seam | None = None


@dataclass(frozen=True, slots=True)
class RawLine:
    """A candidate line without its newline, at most `MAX_LINE_BYTES` of it, and its number in the stream.

    It stands in `block` from `start` to `end`, its newline left out.
    """

    number: int
    data: bytes
    block: Block
    start: int
    end: int

    def lines_before(self) -> list[bytes]:
        """The lines before this one, nearest first, as far back as `LOOK_BACK_BYTES` reach; the last may be cut."""
        behind = self.block.data[max(0, self.start - LOOK_BACK_BYTES) : self.start]
        if len(behind) < LOOK_BACK_BYTES:
            behind = self.block.before[len(behind) - LOOK_BACK_BYTES :] + behind
        return behind.split(b"\n")[-2::-1]

    def lines_after(self) -> list[bytes]:
        """The lines after this one, nearest first, as far as `LOOK_BACK_BYTES` reach; the last may be cut."""
        ahead = self.block.data[self.end + 1 : self.end + 1 + LOOK_BACK_BYTES]
        if len(ahead) < LOOK_BACK_BYTES:
            ahead += self.block.after[: LOOK_BACK_BYTES - len(ahead)]
        lines = ahead.split(b"\n")
        return lines if lines[-1] else lines[:-1]


def cut(chunks: Iterable[bytes | Seam]) -> Iterator[Piece]:
    """Cuts a stream into pieces of whole lines. What of a line exceeds `MAX_LINE_BYTES` may be left out."""
    last: bytes | None = None
    before = b""
    seam: Seam | None = None
    begins: Seam | None = None
    for data in _whole(chunks):
        if isinstance(data, Seam):
            begins = data
            continue
        if last is not None:
            yield Piece(last, before, data[:LOOK_BACK_BYTES], seam)
            before = (before + last[-LOOK_BACK_BYTES:])[-LOOK_BACK_BYTES:]
        last, seam, begins = data, begins, None
    if last is not None:
        yield Piece(last, before, seam=seam)


def _whole(chunks: Iterable[bytes | Seam]) -> Iterator[bytes | Seam]:
    pending = b""
    overlong = False
    for chunk in chunks:
        if isinstance(chunk, Seam):
            if pending:
                # No line goes on in another file, whatever its last byte.
                yield pending + b"\n"
            pending, overlong = b"", False
            yield chunk
            continue
        if overlong:
            # The head of this line went out already, or is still pending: drop everything up to its newline.
            newline = chunk.find(b"\n")
            if newline < 0:
                continue
            chunk, overlong = chunk[newline:], False
        whole = chunk.rfind(b"\n") + 1
        if whole:
            # One copy, and not one for the join and one for the cut: a third of a second for each GiB.
            yield b"".join((pending, memoryview(chunk)[:whole]))
            pending = b""
        pending += chunk[whole:]
        if len(pending) > MAX_LINE_BYTES:
            state = last_state(pending, len(pending))
            overlong = state < 0
            pending = pending[:MAX_LINE_BYTES] if overlong else pending[state:]
    if pending:
        yield pending


def last_state(data: bytes, end: int) -> int:
    """Where up to `end` the last state of a progress bar begins that wrote one line over and over; -1 if it is none."""
    returned = data.rfind(b"\r", max(0, end - _TAIL_BYTES), end)
    before = data[max(0, returned - _STATE_BYTES) : max(0, returned)]
    return returned + 1 if returned >= 0 and _PROGRESS.search(before) else -1


def number(pieces: Iterable[tuple[Piece, Look | None]]) -> Iterator[Block]:
    """Numbers the lines of pieces, which may have been scanned, in the order of the stream."""
    first_line = 1
    count = LineCounter()
    for piece, look in pieces:
        yield Block(piece.data, first_line, piece.before, piece.after, look, piece.seam)
        first_line += count(piece.data) if look is None else look.newlines


def whole_lines(chunks: Iterable[bytes | Seam]) -> Iterator[Block]:
    """Cuts a stream into blocks of whole lines that have not been scanned yet."""
    return number((piece, None) for piece in cut(chunks))


_SHORT_BYTES = 8 * 1024
"""Of fewer bytes numpy's call costs more than it saves."""


class LineCounter:
    """Counts newlines: with numpy, which lets other threads run meanwhile, from where its import has paid."""

    def __init__(self, worth_bytes: int = _WORTH_NUMPY_BYTES) -> None:
        self._left_bytes = worth_bytes
        self._numpy: Any = None

    def __call__(self, data: bytes, start: int = 0, end: int | None = None) -> int:
        """Those of `data` from `start` to before `end`."""
        length = (len(data) if end is None else end) - start
        if self._numpy is None:
            self._left_bytes -= length
            if self._left_bytes <= 0:
                self._numpy = importlib.import_module("numpy")
        if self._numpy is None or length < _SHORT_BYTES:
            return data.count(b"\n", start, end)
        return int(self._numpy.count_nonzero(self._numpy.frombuffer(data, self._numpy.uint8, length, start) == 10))
