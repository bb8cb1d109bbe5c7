"""Looks back from a line without a head for the one it belongs to, and for the last stamp before a line without any.

Reading a line costs microseconds and looking back may read a hundred, so what was read is remembered, and a file in
which looking back finds nothing is soon looked at less far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

from latencydoctor.evidence.logs.blocks import LOOK_BACK_BYTES, RawLine
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, clean, read_line

_FURTHEST_LINES = 512
_NEAREST_LINES = 4
_REMEMBERED = 1024
_TIMES_KEPT = 256
_BORROWED_LINES = 16
"""A line without a stamp takes that of a neighbour no further away than this."""

_WRITTEN_AT_ONCE_S = 2.0
_DYING = re.compile(rb"Process [\w.:-]{1,100}:(?:$|\\n\")")
_DYING_BYTES = 256

_Known = TypeVar("_Known")


class LookBack:
    """Looks back within one file, whose stamps `dating` understands."""

    def __init__(self, dating: Dating) -> None:
        self._dating = dating
        self._read: dict[int, LineRecord] = {}
        self._limit = _FURTHEST_LINES
        self._times: dict[str, tuple[int, float]] = {}
        self._is_crlf: bool | None = None

    def repeats_head(self, line: RawLine) -> bool:
        """Whether the line before goes on in this one: vLLM ends the inner lines of a message with CR and LF."""
        data, start = line.block.data, line.start
        if start < 2 or data[start - 2] != 13:
            return False
        if self._is_crlf is None:
            # In a file whose first line ends so, all lines do, and it means nothing.
            first = data.find(b"\n")
            self._is_crlf = line.block.first_line != 1 or data[first - 1 : first] == b"\r"
        return not self._is_crlf

    def saw(self, line: RawLine, record: LineRecord) -> None:
        """Remember a stamp for lines without one."""
        if record.time_s is not None:
            if len(self._times) >= _TIMES_KEPT:
                self._times.clear()
            self._times[record.source] = (line.number, record.time_s)

    def time_before(self, line: RawLine, record: LineRecord) -> float | None:
        """The last moment stamped before a line of the same source, if it is near."""
        number, time_s = self._times.get(record.source, (-_BORROWED_LINES, 0.0))
        best = time_s if line.number - number <= _BORROWED_LINES else None
        for back, data in enumerate(_behind(line, min(self._limit, _BORROWED_LINES)), 1):
            if line.number - back <= number and best is not None:
                return best
            before = self._brief(line.number - back, data, record)
            if before.source == record.source and before.time_s is not None:
                return before.time_s
        self._limit = max(_NEAREST_LINES, self._limit // 2)
        return best

    def head_of(
        self, line: RawLine, record: LineRecord, ends: Mapping[int, _Known]
    ) -> _Known | tuple[int, LineRecord] | None:
        """The record in `ends` that reaches up to the line without a head between, else that head and its number.

        None where neither is found: the program writes no heads, or the head is too far away. An indented line then
        belongs to the nearest one that is not.
        """
        indented: tuple[int, LineRecord] | None = None
        is_inner = record.text[:1] in (" ", "\t", "|", "+")
        for back, data in enumerate(_behind(line, self._limit), 1):
            number = line.number - back
            known = ends.get(number)
            before = None if known is not None and not record.source else self._brief(number, data, record)
            if before is not None and not _same_lane(before, record):
                continue
            if before is not None and _is_past(before, record):
                return indented
            if known is not None:
                return known
            if before is None:
                continue
            if not before.continued:
                self._limit = _FURTHEST_LINES
                return number, before
            if is_inner and indented is None and before.text[:1] not in (" ", "\t", "|", "+", ""):
                indented = number, before
        self._limit = max(_NEAREST_LINES, self._limit // 2)
        return indented

    def is_reprint(self, line: RawLine) -> bool:
        """Whether a traceback is what Python prints of a process that dies of it, after its program told of it."""
        return _DYING.search(next(_behind(line, 1), b"")[-_DYING_BYTES:]) is not None

    def is_plain_before(self, line: RawLine, record: LineRecord) -> bool:
        """Whether the line before, written alike, is no frame of a traceback."""
        width = line.data.find(record.text[:16].encode()) if record.text[:16].isascii() else -1
        before = next(_behind(line, 1), b"")
        return width >= 0 and before[width : width + 1] not in (b" ", b"\t", b"")

    def _brief(self, number: int, data: bytes, record: LineRecord) -> LineRecord:
        if not record.source and record.outer_s is None and data[:1] in (b" ", b"\t", b"|"):
            # Nothing wraps lines here, so this one has no head: no need to read it.
            return _INNER
        found = self._read.get(number)
        if found is None:
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            found = self._read[number] = read_line(clean(data), self._dating)
        return found


def _is_past(before: LineRecord, record: LineRecord) -> bool:
    """Whether a line was written well before another: lines of one record are written at once."""
    if before.outer_s is None or record.outer_s is None:
        return False
    return abs(record.outer_s - before.outer_s) > _WRITTEN_AT_ONCE_S


def _behind(line: RawLine, most: int) -> Iterator[bytes]:
    """The lines before a line, nearest first, one by one: mostly the first of them answers."""
    data, end = line.block.data, line.start - 1
    furthest = max(0, line.start - LOOK_BACK_BYTES)
    for back in range(most):
        start = data.rfind(b"\n", furthest, max(end, furthest)) + 1
        if not start:
            # The rest lies before this block, or too far away.
            yield from line.lines_before()[back:most]
            return
        yield data[start:end]
        end = start - 1


def _same_lane(before: LineRecord, record: LineRecord) -> bool:
    if before.source != record.source:
        return False
    process = record.process or record.rank
    other = before.process or before.rank
    # A traceback in a stream of its own has no prefix; what has one belongs to the same.
    return not process or process == other


_INNER = LineRecord(None, "", " ", continued=True)
