"""What a record is, and whether a line goes on with it: told by its text, its stamp and where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from latencydoctor.evidence.logs.blocks import RawLine
from latencydoctor.evidence.logs.exceptions import CAUSED_BY, CHAINED, EXCEPTION, JAVA_FRAME, TRACEBACK
from latencydoctor.evidence.logs.judging import Hit
from latencydoctor.evidence.logs.lines import LineRecord
from latencydoctor.evidence.logs.told import Told
from latencydoctor.evidence.logs.unclassified import Loud

QUIET = frozenset({"INFO", "DEBUG"})
_STARTS_ANEW = re.compile(r"\[|\d{2,4}[-/:]\d\d")
"""How lines of formats begin that are not known: with a stamp or something in brackets."""

_AFTER_EXCEPTION_LINES = 8
"""So many lines after the exception's own may still be its message (NCCL and CUDA errors have four)."""

_MOST_BLOCKS = 64
"""Exceptions of one chain whose hits are kept; of a chain the first counts, of Java's the last."""

_FRAME_BYTES = 512
_HEAD_CHARACTERS = 256
ONE_BURST_S = 2.0
"""Lines of one traceback are written at once."""

ONE_TRACEBACK_LINES = 400
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
    outer_s: float | None = None
    rank: str = ""
    reprint: bool = False
    kind: Kind = Kind.PLAIN
    last: int = 0
    block: int = -1
    chained: bool = False
    exception_at: int = 0
    hits: dict[int, list[tuple[Hit, Told]]] = field(default_factory=dict)
    loud: Loud | None = None

    def show(self, block: int, hit: Hit, told: Told) -> None:
        """Note what a line of a block shows. A record has no end of its own, so only what may count is kept."""
        if block not in self.hits and len(self.hits) >= _MOST_BLOCKS:
            if self.kind is not Kind.JAVA:
                return
            del self.hits[max(self.hits)]
        held = self.hits.setdefault(block, [])
        first = next((known.number for one, known in held if one.way.rule.id == hit.way.rule.id), told.number)
        if told.number == first:
            held.append((hit, told))

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


def open_traceback(started: Open, text: str) -> bool:
    """A head may end with a traceback's first line (SGLang), or be that line."""
    if TRACEBACK in text[-_HEAD_CHARACTERS:]:
        started.kind, started.block = Kind.PYTHON, 0
    return started.kind is Kind.PYTHON


def repeats(current: Open, number: int, record: LineRecord) -> bool | None:
    """Whether a line goes on with a record whose lines each repeat its head: None if not, else whether it may speak."""
    text = record.text
    if current.kind is Kind.PLAIN and not text.startswith(TRACEBACK):
        return None
    near = number - current.last <= ONE_TRACEBACK_LINES and (
        record.time_s is None or current.time_s is None or abs(record.time_s - current.time_s) <= ONE_BURST_S
    )
    if not near:
        return None
    if text.startswith(TRACEBACK):
        same_place = not (record.file_line and current.file_line) or record.file_line == current.file_line
        under_head = current.kind is Kind.PLAIN and number - current.last <= _HEAD_TO_TRACEBACK_LINES and same_place
        return _next_traceback(current) if current.chained or (under_head and not current.benign) else None
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


def goes_on(base: Open, line: RawLine, record: LineRecord) -> bool | None:
    """The same for a line without a head, when all lines between have none either."""
    text = record.text
    indented = not text or text[0] in " \t|+"
    if text.lstrip().startswith(TRACEBACK):
        # What crashes below a dump of arguments is no part of it.
        new = (base.kind is Kind.PYTHON and not base.chained) or base.benign
        below = base.headed or base.chained or _is_of_one_writer(base, line, record)
        return _next_traceback(base) if below and not new else None
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


def java_frame_after(line: RawLine) -> bool:
    end = line.end + 1
    after = line.block.data[end : end + _FRAME_BYTES] or line.block.after[:_FRAME_BYTES]
    return JAVA_FRAME.search(after.split(b"\n", 1)[0].decode("utf-8", "replace")) is not None


def _starts_java_stack(base: Open, line: RawLine) -> bool:
    """Whether an exception follows its message as in Java, where frames come after it; Python's has them before."""
    if not base.headed or not java_frame_after(line):
        return False
    base.kind, base.block = Kind.JAVA, 0
    return True


def _is_of_one_writer(base: Open, line: RawLine, record: LineRecord) -> bool:
    """Whether one worker wrote two lines without a head, one right after the other: what failed, and its traceback."""
    process = record.process or record.rank
    return bool(process) and process == base.process and line.number - base.last == 1


def is_past(base: Open, record: LineRecord) -> bool:
    """Whether a line was written well after a record, by their wrappers' stamps."""
    if base.outer_s is None or record.outer_s is None:
        return False
    return abs(record.outer_s - base.outer_s) > ONE_BURST_S


def opens_dump(text: str) -> bool:
    """Whether more lines of a dump follow, whatever they look like."""
    return text.rstrip().endswith(("{", "[", "("))


def _is_detail(base: Open, record: LineRecord) -> bool:
    """Whether a plain line tells more of a record, rather than something of its own."""
    if not base.headed or base.level in QUIET or _STARTS_ANEW.match(record.text):
        return False
    if record.stream != base.stream or (record.program and base.program and record.program != base.program):
        return False
    return (record.outer_s is None) == (base.outer_s is None)


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
