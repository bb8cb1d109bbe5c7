"""One pass over one stream: from candidate lines through records to what they tell, which `counting` counts.

A stream is a file, or a rotated set of files one after the other. Nothing here knows of other streams, so what one says
does not depend on who reads it and in which order; `Counts` of several are merged afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from latencydoctor.evidence.logs.blocks import RawLine, Seam
from latencydoctor.evidence.logs.compiled import Meaning, RuleBook, Way
from latencydoctor.evidence.logs.continuing import Open, opens_dump
from latencydoctor.evidence.logs.counting import Announce, Counting, Counts
from latencydoctor.evidence.logs.damage import split_interleaved
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.exceptions import TRACEBACK, exception_after, holds_together, parts
from latencydoctor.evidence.logs.judging import Hit, hits_of, is_benign, rank_of
from latencydoctor.evidence.logs.lines import LineRecord, read_line, read_raw
from latencydoctor.evidence.logs.lookback import LookBack
from latencydoctor.evidence.logs.pieces import gather_pieces, is_piece
from latencydoctor.evidence.logs.places import Places
from latencydoctor.evidence.logs.records import Records
from latencydoctor.evidence.logs.told import KEPT_BYTES, KEPT_CHARACTERS, At, Told
from latencydoctor.evidence.logs.unclassified import Loud
from latencydoctor.model.evidence import Severity, Window

_LOUD_RANK = 1
_RANK = re.compile(r"(?<![\w.-])rank=(\d{1,4})\b", re.ASCII)
_QUIET = frozenset({"INFO", "DEBUG"})

Which = Callable[[str], frozenset[int]]


def _rank_in(text: str) -> str:
    """The rank that a message names among its fields, as TGI's launcher does."""
    named = _RANK.search(text) if "rank=" in text else None
    return named[1] if named else ""


class FilePass:
    """Reads one stream. `place` is how events name its first file; `announce` is told of each event that is sure."""

    def __init__(
        self,
        book: RuleBook,
        which: Which,
        place: str,
        dating: Dating,
        window: Window | None = None,
        announce: Announce | None = None,
        redact_prompts: bool = False,
    ) -> None:
        self._book = book
        self._which = which
        self._places = Places(place)
        self._dating = dating
        self._window = window
        self._counting = Counting(self._places, announce, redact_prompts)
        self._look_back = LookBack(dating)
        self._records = Records(self._look_back, self._closed, self._knows_as_benign)
        self._joined: set[bytes] = set()

    def turn_to(self, seam: Seam, first_line: int) -> None:
        """From this line on it is another file of the same set: what is open may go on in it."""
        self._places.begin(seam.place, first_line)
        self._dating.turn_to(seam.reference_s)

    def take(self, line: RawLine) -> None:
        """Look at a candidate line."""
        if self._joined and line.data in self._joined:
            self._joined.discard(line.data)
            return
        record = read_raw(line, self._dating)
        hits = self._which(record.text)
        meaning = self._book.meaning(hits)
        if not (meaning.ways or self._is_telling(record)):
            self._look_back.saw(line, record)
            if meaning.marks:
                self._mark(line, record, hits, meaning.marks)
            return
        self._remember_pieces(line)
        if record.time_s is None and not record.continued and meaning.ways:
            record = record._replace(time_s=self._look_back.time_before(line, record))
        self._look_back.saw(line, record)
        self._counting.counts.templates.watch_from(record.time_s)
        one, may_speak = self._records.put(line, record)
        if meaning.marks:
            self._mark(line, record, hits, meaning.marks)
        if may_speak and not one.benign:
            self._judge(line, record, one, meaning)
        elif one.loud is not None and one.block == 0 and TRACEBACK in record.text:
            # What nobody knows is told with its root exception.
            root = exception_after(line.data, line.lines_after())
            one.loud = replace(one.loud, text=f"{one.loud.text}: {root}") if root else one.loud

    def _mark(self, line: RawLine, record: LineRecord, hits: frozenset[int], ways: tuple[Way, ...]) -> None:
        """A line decides on others: those before it must be told first."""
        verdicts = self._counting.verdicts
        ways = tuple(way for way in ways if verdicts.minds(way, hits, record.source))
        if ways:
            self._records.close_those_of(record.source, {way.rule.id for way in ways}, line.number)
            self._counting.mark(ways, hits, record.source, At(record.time_s, line.number))

    def _is_telling(self, record: LineRecord) -> bool:
        """Whether a line that matches nothing is worth more than its stamp."""
        loud = rank_of(record.level) <= _LOUD_RANK
        return loud or record.event in self._book.first_way or holds_together(record.text)

    def settle(self, now_s: float) -> None:
        """Decide what has waited long enough by a moment, when no line comes to tell of the time."""
        self._records.finish()
        self._counting.settle(now_s)

    def finish(self) -> Counts:
        """Decide everything that still waits; what the file says."""
        self._records.finish()
        return self._counting.finish()

    def _judge(self, line: RawLine, record: LineRecord, one: Open, meaning: Meaning) -> None:
        level = record.level or (one.level if record.continued else "")
        if meaning.benign and record.event not in self._book.first_way and self._is_benign(meaning, record, level):
            # Of a record whose head is known as benign (a dump of arguments), so are its further lines.
            one.benign = one.benign or (one.head == line.number and (one.headed or opens_dump(record.text)))
            return
        found = self._found(record, meaning, level)
        block = -1 if line.number == one.head else one.block
        for hit, said in found:
            one.show(block, hit, self._told(line, said, hit, one))
        if found or rank_of(level) > _LOUD_RANK:
            return
        if one.loud is None or one.exception_at == line.number:
            one.loud = self._loud(line, record, one, level)

    def _found(self, record: LineRecord, meaning: Meaning, level: str) -> list[tuple[Hit, LineRecord]]:
        """What a line shows: its root exception if it holds a traceback, a second writer's line if it holds one."""
        if not meaning.ways and not record.event:
            return []
        said = parts(record.text) if "\n" in record.text else ()
        if len(said) < 2:
            hits = hits_of(self._book, meaning, record, level)
            if hits or level not in _QUIET:
                return [(hit, record) for hit in hits]
            return self._interleaved(record)
        for part in said:
            inner = record._replace(text=part)
            hits = hits_of(self._book, self._book.meaning(self._which(part)), inner, level)
            if hits:
                return [(hit, inner) for hit in hits]
        return []

    def _interleaved(self, record: LineRecord) -> list[tuple[Hit, LineRecord]]:
        found: list[tuple[Hit, LineRecord]] = []
        for part in split_interleaved(record.text)[1:]:
            inner = read_line(part, self._dating)
            inner = inner._replace(source=record.source, process=record.process)
            meaning = self._book.meaning(self._which(inner.text))
            if not (meaning.benign and self._is_benign(meaning, inner, inner.level)):
                found += [(hit, inner) for hit in hits_of(self._book, meaning, inner, inner.level)]
        return found

    def _is_benign(self, meaning: Meaning, record: LineRecord, level: str) -> bool:
        return is_benign(meaning, record, level, lambda way: self._counting.verdicts.is_after(way, record.source))

    def _knows_as_benign(self, head: LineRecord) -> bool:
        meaning = self._book.meaning(self._which(head.text))
        return bool(meaning.benign) and self._is_benign(meaning, head, head.level)

    def _told(self, line: RawLine, record: LineRecord, hit: Hit, one: Open) -> Told:
        time_s = record.time_s if record.time_s is not None else one.time_s
        text = record.text[:KEPT_CHARACTERS]
        rank = record.rank or one.rank or _rank_in(record.text)
        return Told(
            time_s=time_s,
            number=line.number,
            way=hit.way,
            text=text,
            data=line.data[:KEPT_BYTES],
            numbers=hit.numbers,
            count=record.count,
            only_echoes=hit.only_echoes or text.startswith("|"),
            precise=not record.continued and time_s is not None and time_s != record.outer_s and time_s % 1 != 0,
            source=record.source,
            teller=self._teller(record, rank),
            rank=rank,
            reprint=one.reprint,
            program=record.program,
            anywhere=record.program == "kernel",
            file_line=record.file_line or one.file_line,
            began_s=record.began_s,
        )

    def _teller(self, record: LineRecord, rank: str) -> str:
        name = record.source or record.process or self._places.current
        return f"{name} rank {rank}" if rank else name

    def _loud(self, line: RawLine, record: LineRecord, one: Open, level: str) -> Loud:
        text = record.text
        if text.startswith(TRACEBACK):
            text = exception_after(line.data, line.lines_after()) or text
        return Loud(
            severity=Severity.ERROR if level == "CRITICAL" else Severity(level),
            text=text[:KEPT_CHARACTERS],
            time_s=record.time_s if record.time_s is not None else one.time_s,
            number=line.number,
            place=self._places.at(line.number),
            teller=self._teller(record, record.rank or one.rank),
            file_line=record.file_line,
            count=record.count,
        )

    def _remember_pieces(self, line: RawLine) -> None:
        """Further pieces of a line were read with its first one."""
        data = line.data
        may_be = b" P " in data[20:64] or (data.startswith(b'{"log":') and b'\\n","' not in data[-256:])
        if may_be and is_piece(data):
            self._joined = set(gather_pieces(line.data, line.lines_after())[1:])

    def _closed(self, one: Open) -> None:
        if not one.hits and one.loud is None:
            return
        chosen = one.chosen()
        if not chosen and one.loud is not None and not one.benign and self._in_window(one.loud.time_s):
            self._counting.counts.templates.add(one.loud)
        for _, told in chosen:
            if self._in_window(told.time_s):
                self._counting.tell(told)

    def _in_window(self, time_s: float | None) -> bool:
        return time_s is None or self._window is None or self._window.holds(time_s)
