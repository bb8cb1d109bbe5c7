"""Which lines belong together: a head with its traceback, Java stack, table rows or dump is one record.

Only candidate lines are seen here. Whether a line without a head of its own goes on with a record is found by looking
back from it; lines that repeat their head (vLLM and TorchServe before each line of a traceback) are known by their
text. A `Records` belongs to one file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from latencydoctor.evidence.logs.blocks import RawLine
from latencydoctor.evidence.logs.exceptions import CAUSED_BY, CHAINED, EXCEPTION, JAVA_FRAME, TRACEBACK
from latencydoctor.evidence.logs.judging import Hit
from latencydoctor.evidence.logs.lines import LineRecord
from latencydoctor.evidence.logs.lookback import LookBack
from latencydoctor.evidence.logs.told import Told
from latencydoctor.evidence.logs.unclassified import Loud

_QUIET = frozenset({"INFO", "DEBUG"})
_STARTS_ANEW = re.compile(r"\[|\d{2,4}[-/:]\d\d")
"""How lines of formats begin that are not known: with a stamp or something in brackets."""

_MOST_OPEN = 256
_AFTER_EXCEPTION_LINES = 8
"""So many lines after the exception's own may still be its message (NCCL and CUDA errors have four)."""

_FRAME_BYTES = 512
_HEAD_CHARACTERS = 256
_ONE_BURST_S = 2.0
"""Lines of one traceback are written at once."""

_ONE_TRACEBACK_LINES = 400
_HEAD_TO_TRACEBACK_LINES = 16


class Kind(Enum):
    """What a record has been seen to be."""

    PLAIN = "plain"
    PYTHON = "python"
    JAVA = "java"


@dataclass(slots=True)
class Open:
    """A record that may go on. `blocks` are the hits of its head (-1) and of each exception of its chain."""

    source: str
    process: str
    head: int
    time_s: float | None
    level: str
    file_line: str = ""
    headed: bool = True
    benign: bool = False
    program: str = ""
    stream: str = ""
    wrapped: bool = False
    rank: str = ""
    reprint: bool = False
    kind: Kind = Kind.PLAIN
    last: int = 0
    block: int = -1
    chained: bool = False
    exception_at: int = 0
    hits: dict[int, list[tuple[Hit, Told]]] = field(default_factory=dict)
    loud: Loud | None = None

    def chosen(self) -> list[tuple[Hit, Told]]:
        """The hits that count: of a chain of exceptions those of its root, each class once."""
        if not self.hits:
            return []
        if len(self.hits) == 1:
            (both,) = self.hits.values()
            if len(both) == 1:
                return both
        order = sorted(self.hits)
        if self.kind is Kind.PYTHON:
            # Where the root has no class, what came of it tells more than the head, which only says that there was one.
            order.sort(key=lambda block: (block < 0, block))
        elif self.kind is Kind.JAVA:
            order.reverse()
        blocks = order if self.kind is Kind.PLAIN else order[:1]
        chosen = [both for block in blocks for both in self.hits[block]]
        first: dict[str, int] = {}
        for hit, told in chosen:
            first.setdefault(hit.way.rule.id, told.number)
        return [(hit, told) for hit, told in chosen if told.number == first[hit.way.rule.id]]


class Records:
    """Puts candidate lines into records. `closed` is called with each record that cannot go on any more."""

    def __init__(
        self, look_back: LookBack, closed: Callable[[Open], None], knows_as_benign: Callable[[LineRecord], bool]
    ) -> None:
        self._look_back = look_back
        self._closed = closed
        self._knows_as_benign = knows_as_benign
        self._open: dict[tuple[str, str], Open] = {}
        self._ends: dict[int, Open] = {}

    def put(self, line: RawLine, record: LineRecord) -> tuple[Open, bool]:
        """The record a line belongs to, and whether the line itself may say anything (a stack frame may not)."""
        if len(self._open) > 1:
            self._close_old(line.number, record.time_s)
        if record.continued or self._look_back.repeats_head(line):
            return self._without_head(line, record)
        current = self._open.get((record.source, record.process or record.rank))
        if current is not None:
            says = _repeats(current, line.number, record)
            if says is not None:
                self._reach(current, line.number)
                return current, says
        started = self._begin(line.number, record, record.time_s)
        _open_traceback(started, record.text)
        return started, True

    def close_those_of(self, source: str, rule_ids: set[str], before: int) -> None:
        """Close the records of a source that began before a line and may be events of some classes."""
        for one in [*self._open.values()] if self._open else ():
            told = (hit.way.rule.id for block in one.hits.values() for hit, _ in block)
            if one.source == source and one.last < before and not rule_ids.isdisjoint(told):
                self._close(one)

    def _close_old(self, number: int, time_s: float | None) -> None:
        """Close what cannot go on any more, so that records come in order as far as sources let them."""
        while len(self._open) > 1:
            oldest = next(iter(self._open.values()))
            gap_s = None if time_s is None or oldest.time_s is None else abs(time_s - oldest.time_s)
            if number - oldest.last <= (_ONE_TRACEBACK_LINES if gap_s is None or gap_s <= _ONE_BURST_S else 0):
                return
            self._close(oldest)

    def finish(self) -> None:
        """Close all records."""
        for one in list(self._open.values()):
            self._close(one)

    def _without_head(self, line: RawLine, record: LineRecord) -> tuple[Open, bool]:
        base = None if self._stands_alone(line, record) else self._base(line, record)
        if base is not None:
            says = _goes_on(base, line, record)
            if says is not None:
                self._reach(base, line.number)
                return base, says
        time_s = record.time_s if record.time_s is not None or base is None else base.time_s
        started = self._begin(line.number, record, time_s)
        started.headed = False
        # A dump goes on in lines of any shape; what is loud by itself does not belong to it.
        dump = base is not None and base.benign and base.headed and base.kind is Kind.PLAIN and base.level in _QUIET
        started.benign = dump and not record.level
        if _open_traceback(started, record.text):
            started.reprint = self._look_back.is_reprint(line)
        return started, True

    def _stands_alone(self, line: RawLine, record: LineRecord) -> bool:
        """Whether a line is an exception by itself, told at once: no need to look back then."""
        last = self._ends.get(line.number - 1)
        return (
            record.time_s is not None
            and (last is None or last.kind is Kind.PLAIN)
            and EXCEPTION.match(record.text) is not None
            and self._look_back.is_plain_before(line, record)
            and not _java_frame_after(line)
        )

    def _base(self, line: RawLine, record: LineRecord) -> Open | None:
        """The record that the lines before one belong to, opened here if it was no candidate."""
        last = self._ends.get(line.number - 1)
        if last is not None and last.source == record.source and record.process in ("", last.process):
            return last
        found = self._look_back.head_of(line, record, self._ends)
        if found is None or isinstance(found, Open):
            return found
        number, head = found
        started = self._begin(number, head, head.time_s)
        started.headed = not head.continued
        started.benign = self._knows_as_benign(head)
        _open_traceback(started, head.text)
        return started

    def _begin(self, number: int, record: LineRecord, time_s: float | None) -> Open:
        lane = (record.source, record.process or record.rank)
        before = self._open.get(lane)
        if before is not None:
            self._close(before)
        elif len(self._open) >= _MOST_OPEN:
            self._close(next(iter(self._open.values())))
        started = Open(*lane, number, time_s, record.level, record.file_line)
        started.program, started.stream, started.wrapped = record.program, record.stream, record.outer_s is not None
        started.rank = record.rank
        self._open[lane] = started
        self._reach(started, number)
        return started

    def _reach(self, one: Open, number: int) -> None:
        if self._ends.get(one.last) is one:
            del self._ends[one.last]
        one.last = number
        self._ends[number] = one
        lane = (one.source, one.process)
        if len(self._open) > 1 and self._open.get(lane) is one:
            del self._open[lane]
            self._open[lane] = one

    def _close(self, one: Open) -> None:
        lane = (one.source, one.process)
        if self._open.get(lane) is one:
            del self._open[lane]
        if self._ends.get(one.last) is one:
            del self._ends[one.last]
        if one.hits and self._open:
            # What other sources told before this one began goes first.
            for other in [other for other in self._open.values() if other.hits and other.last < one.head]:
                if self._open.get((other.source, other.process)) is other:
                    self._close(other)
        self._closed(one)


def _open_traceback(started: Open, text: str) -> bool:
    """A head may end with a traceback's first line (SGLang), or be that line."""
    if TRACEBACK in text[-_HEAD_CHARACTERS:]:
        started.kind, started.block = Kind.PYTHON, 0
    return started.kind is Kind.PYTHON


def _repeats(current: Open, number: int, record: LineRecord) -> bool | None:
    """Whether a line goes on with a record whose lines each repeat its head: None if not, else whether it may speak."""
    text = record.text
    if current.kind is Kind.PLAIN and not text.startswith(TRACEBACK):
        return None
    near = number - current.last <= _ONE_TRACEBACK_LINES and (
        record.time_s is None or current.time_s is None or abs(record.time_s - current.time_s) <= _ONE_BURST_S
    )
    if not near:
        return None
    if text.startswith(TRACEBACK):
        same_place = not (record.file_line and current.file_line) or record.file_line == current.file_line
        under_head = current.kind is Kind.PLAIN and number - current.last <= _HEAD_TO_TRACEBACK_LINES and same_place
        return _next_traceback(current) if current.chained or under_head else None
    if current.kind is not Kind.PYTHON:
        return None
    if _is_link(current, text) or not text.strip() or text[0] in " \t" or text.startswith(('File "', "^^^", "~~~")):
        return False
    if not current.exception_at:
        if EXCEPTION.match(text) is None:
            return None
        current.exception_at = number
        return True
    return False if record.file_line and record.file_line == current.file_line else None


def _goes_on(base: Open, line: RawLine, record: LineRecord) -> bool | None:
    """The same for a line without a head, when all lines between have none either."""
    text = record.text
    indented = not text or text[0] in " \t|+"
    if text.lstrip().startswith(TRACEBACK):
        new = base.kind is Kind.PYTHON and not base.chained
        return None if new or not (base.headed or base.chained) else _next_traceback(base)
    if base.kind is not Kind.PLAIN and _is_link(base, text):
        return False
    if CAUSED_BY.match(text):
        base.kind, base.block = Kind.JAVA, max(base.block, -1) + 1
        return True
    if indented and JAVA_FRAME.match(text):
        base.kind = Kind.JAVA if base.kind is Kind.PLAIN else base.kind
        return False
    if base.kind is Kind.PYTHON:
        return _in_traceback(base, line.number, indented, text)
    if indented:
        return True
    if EXCEPTION.match(text):
        return True if _starts_java_stack(base, line) else None
    return True if _is_detail(base, record) else None


def _java_frame_after(line: RawLine) -> bool:
    end = line.end + 1
    after = line.block.data[end : end + _FRAME_BYTES] or line.block.after[:_FRAME_BYTES]
    return JAVA_FRAME.search(after.split(b"\n", 1)[0].decode("utf-8", "replace")) is not None


def _starts_java_stack(base: Open, line: RawLine) -> bool:
    """Whether an exception follows its message as in Java, where frames come after it; Python's has them before."""
    if not base.headed or not _java_frame_after(line):
        return False
    base.kind, base.block = Kind.JAVA, 0
    return True


def _is_detail(base: Open, record: LineRecord) -> bool:
    """Whether a plain line tells more of a record, rather than something of its own."""
    if not base.headed or base.level in _QUIET or _STARTS_ANEW.match(record.text):
        return False
    if record.stream != base.stream or (record.program and base.program and record.program != base.program):
        return False
    if record.outer_s is None:
        return not base.wrapped
    return base.wrapped and base.time_s is not None and abs(record.outer_s - base.time_s) <= _ONE_BURST_S


def _in_traceback(base: Open, number: int, indented: bool, text: str) -> bool | None:
    if indented:
        return False
    if not base.exception_at:
        base.exception_at = number
        return True
    if EXCEPTION.match(text):
        return None
    return True if base.headed or number - base.exception_at <= _AFTER_EXCEPTION_LINES else None


def _next_traceback(current: Open) -> bool:
    current.kind = Kind.PYTHON
    current.block += 1
    current.chained, current.exception_at = False, 0
    return False


def _is_link(current: Open, text: str) -> bool:
    """Whether a line says that the next traceback belongs to the last."""
    if any(words in text for words in CHAINED):
        current.chained = True
    return current.chained
