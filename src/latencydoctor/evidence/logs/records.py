"""Which lines belong together: a head with its traceback, Java stack, table rows or dump is one record.

Only candidate lines are seen here. Whether a line without a head of its own goes on with a record is found by looking
back from it; lines that repeat their head (vLLM and TorchServe before each line of a traceback) are known by their
text. A `Records` belongs to one file.
"""

from __future__ import annotations

from collections.abc import Callable

from latencydoctor.evidence.logs.blocks import RawLine
from latencydoctor.evidence.logs.continuing import (
    ONE_BURST_S,
    ONE_TRACEBACK_LINES,
    QUIET,
    Kind,
    Open,
    goes_on,
    is_past,
    java_frame_after,
    open_traceback,
    opens_dump,
    repeats,
)
from latencydoctor.evidence.logs.exceptions import EXCEPTION, TRACEBACK
from latencydoctor.evidence.logs.lines import LineRecord
from latencydoctor.evidence.logs.lookback import LookBack

_MOST_OPEN = 256


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
        if record.continued:
            return self._without_head(line, record)
        if self._look_back.repeats_head(line):
            base = self._base(line, record)
            same = base is not None and base.kind is Kind.PLAIN and base.file_line == record.file_line
            if base is not None and same and TRACEBACK not in record.text:
                self._reach(base, line.number)
                return base, True
        current = self._open.get((record.source, record.process or record.rank))
        if current is not None:
            says = repeats(current, line.number, record)
            if says is not None:
                self._reach(current, line.number)
                return current, says
        started = self._begin(line.number, record, record.time_s)
        open_traceback(started, record.text)
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
            if number - oldest.last <= (ONE_TRACEBACK_LINES if gap_s is None or gap_s <= ONE_BURST_S else 0):
                return
            self._close(oldest)

    def finish(self) -> None:
        """Close all records."""
        for one in list(self._open.values()):
            self._close(one)

    def _without_head(self, line: RawLine, record: LineRecord) -> tuple[Open, bool]:
        base = None if self._stands_alone(line, record) else self._base(line, record)
        if base is not None and not is_past(base, record):
            says = goes_on(base, line, record)
            if says is not None:
                self._reach(base, line.number)
                base.outer_s = record.outer_s
                return base, says
        time_s = record.time_s if record.time_s is not None or base is None else base.time_s
        started = self._begin(line.number, record, time_s)
        started.headed = False
        # A dump goes on in lines of any shape; what is loud by itself does not belong to it.
        dump = base is not None and base.benign and base.headed and base.kind is Kind.PLAIN and base.level in QUIET
        started.benign = dump and not record.level
        if open_traceback(started, record.text):
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
            and not java_frame_after(line)
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
        started.benign = (started.headed or opens_dump(head.text)) and self._knows_as_benign(head)
        open_traceback(started, head.text)
        return started

    def _begin(self, number: int, record: LineRecord, time_s: float | None) -> Open:
        lane = (record.source, record.process or record.rank)
        before = self._open.get(lane)
        if before is not None:
            self._close(before)
        elif len(self._open) >= _MOST_OPEN:
            self._close(next(iter(self._open.values())))
        started = Open(*lane, number, time_s, record.level, record.file_line)
        started.program, started.stream, started.outer_s = record.program, record.stream, record.outer_s
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
