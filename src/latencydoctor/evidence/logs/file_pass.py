"""One pass over one file: from candidate lines through records, copies, verdicts and echoes to counts.

Nothing here knows of other files, so what a file says does not depend on who reads it and in which order; `Counts` of
several files are merged afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from latencydoctor.evidence.logs.blocks import RawLine
from latencydoctor.evidence.logs.compiled import Meaning, RuleBook, Way
from latencydoctor.evidence.logs.copies import Copies
from latencydoctor.evidence.logs.damage import split_interleaved
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.durations import began_s
from latencydoctor.evidence.logs.echoes import Echoes
from latencydoctor.evidence.logs.exceptions import TRACEBACK, exception_after, holds_together, parts
from latencydoctor.evidence.logs.judging import Hit, hits_of, is_benign, rank_of
from latencydoctor.evidence.logs.lines import LineRecord, clean, read_line, read_raw
from latencydoctor.evidence.logs.lookback import LookBack
from latencydoctor.evidence.logs.pieces import gather_pieces, is_piece
from latencydoctor.evidence.logs.records import Open, Records
from latencydoctor.evidence.logs.tally import Tally
from latencydoctor.evidence.logs.told import KEPT_CHARACTERS, At, Told
from latencydoctor.evidence.logs.unclassified import Loud, Templates
from latencydoctor.evidence.logs.verdicts import Verdicts
from latencydoctor.model.evidence import Severity, Window

_LOUD_RANK = 1
_QUIET = frozenset({"INFO", "DEBUG"})
_MOST_PRINTS = 10_000
_MOST_WAITED = 4096
_SEARCHED_CHARACTERS = 16_384

Which = Callable[[str], frozenset[int]]
Announce = Callable[[Told, str], None]


@dataclass(slots=True)
class Counts:
    """What one file says, or several: counts by class, templates of unknown loud lines, marks of precise events.

    `prints` tell whether a further file holds the same event, as when standard output is kept beside a log file: the
    class and number of events by a digest of moment and text.
    """

    tallies: dict[str, Tally] = field(default_factory=dict)
    templates: Templates = field(default_factory=Templates)
    prints: dict[int, tuple[str, int]] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """How many events there are, unknown lines left out."""
        return sum(tally.count for tally in self.tallies.values())


class FilePass:
    """Reads one file. `place` is how events name it; `announce` is told of each event that is sure."""

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
        self.counts = Counts()
        self._book = book
        self._which = which
        self._place = place
        self._dating = dating
        self._window = window
        self._announce = announce
        self._redact_prompts = redact_prompts
        self._look_back = LookBack(dating)
        self._records = Records(self._look_back, self._closed, self._knows_as_benign)
        self._copies = Copies()
        self._verdicts = Verdicts()
        self._echoes = Echoes()
        self._joined: set[bytes] = set()
        self._waited: set[tuple[str, int]] = set()

    def take(self, line: RawLine) -> None:
        """Look at a candidate line."""
        if self._joined and line.data in self._joined:
            self._joined.discard(line.data)
            return
        record = read_raw(line, self._dating)
        hits = self._which(record.text)
        meaning = self._book.meaning(hits)
        if not (meaning.ways or meaning.marks or self._is_telling(record)):
            self._look_back.saw(line, record)
            return
        self._remember_pieces(line)
        if record.time_s is None and not record.continued:
            record = record._replace(time_s=self._look_back.time_before(line, record))
        self._look_back.saw(line, record)
        self.counts.templates.watch_from(record.time_s)
        one, may_speak = self._records.put(line, record)
        if meaning.marks:
            self._mark(line, record, hits, meaning.marks)
        if may_speak and not one.benign:
            self._judge(line, record, one, meaning)

    def _mark(self, line: RawLine, record: LineRecord, hits: frozenset[int], ways: tuple[Way, ...]) -> None:
        """A line decides on others: those before it must have been told by now."""
        self._records.close_those_of(record.source, {way.rule.id for way in ways}, line.number)
        self._confirm(self._copies.finish())
        at = At(record.time_s, line.number)
        for way in ways:
            self._echo(self._verdicts.mark(way, hits, record.source, at))

    def _is_telling(self, record: LineRecord) -> bool:
        """Whether a line that matches nothing is worth more than its stamp."""
        loud = rank_of(record.level) <= _LOUD_RANK
        return loud or record.event in self._book.first_way or holds_together(record.text)

    def settle(self, now_s: float) -> None:
        """Decide what has waited long enough by a moment, when no line comes to tell of the time."""
        at = At(now_s, 1 << 60)
        self._records.finish()
        self._confirm(self._copies.finish())
        self._echo(self._verdicts.passed(at))
        self._count(self._echoes.settled(at))

    def finish(self) -> Counts:
        """Decide everything that still waits; what the file says."""
        self._records.finish()
        self._confirm(self._copies.finish())
        self._echo(self._verdicts.finish())
        self._count(self._echoes.finish())
        for rule_id, echoes in self._echoes.later.items():
            if rule_id in self.counts.tallies:
                self.counts.tallies[rule_id].echoes += echoes
        self._echoes.later.clear()
        return self.counts

    def _judge(self, line: RawLine, record: LineRecord, one: Open, meaning: Meaning) -> None:
        level = record.level or (one.level if record.continued else "")
        if meaning.benign and record.event not in self._book.first_way and self._is_benign(meaning, record, level):
            # Of a record whose head is known as benign (a dump of arguments), so are its further lines.
            opens = one.headed or record.text.rstrip().endswith(("{", "[", "("))
            one.benign = one.benign or (one.head == line.number and opens)
            return
        found = self._found(record, meaning, level)
        for hit, said in found:
            one.hits.setdefault(one.block, []).append((hit, self._told(line, said, hit, one)))
        if found or rank_of(level) > _LOUD_RANK:
            return
        if one.loud is None or one.exception_at == line.number:
            one.loud = self._loud(line, record, one, level)

    def _found(self, record: LineRecord, meaning: Meaning, level: str) -> list[tuple[Hit, LineRecord]]:
        """What a line shows: its root exception if it holds a traceback, a second writer's line if it holds one."""
        if not meaning.ways and not record.event:
            return []
        said = parts(record.text)
        if len(said) == 1:
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
        return is_benign(meaning, record, level, lambda way: self._verdicts.is_after(way, record.source))

    def _knows_as_benign(self, head: LineRecord) -> bool:
        meaning = self._book.meaning(self._which(head.text))
        return bool(meaning.benign) and self._is_benign(meaning, head, head.level)

    def _told(self, line: RawLine, record: LineRecord, hit: Hit, one: Open) -> Told:
        time_s = one.time_s if record.continued and one.time_s is not None else record.time_s
        whole = clean(line.data)[:_SEARCHED_CHARACTERS]
        # What a wrapper escaped, or hid in numbers, is shown as it was written.
        text = record.text[:KEPT_CHARACTERS]
        return Told(
            time_s=time_s,
            number=line.number,
            way=hit.way,
            text=text,
            line=whole[:KEPT_CHARACTERS] if text in whole else text,
            numbers=hit.numbers,
            count=record.count,
            only_echoes=hit.only_echoes or text.startswith("|"),
            precise=not record.continued and time_s is not None and time_s != record.outer_s and time_s % 1 != 0,
            source=record.source,
            teller=self._teller(record),
            rank=record.rank,
            file_line=record.file_line or one.file_line,
            began_s=began_s(record) if record.time_s is not None else None,
        )

    def _teller(self, record: LineRecord) -> str:
        name = record.source or record.process or self._place
        return f"{name} rank {record.rank}" if record.rank else name

    def _loud(self, line: RawLine, record: LineRecord, one: Open, level: str) -> Loud:
        text = record.text
        if text.startswith(TRACEBACK):
            text = exception_after(line.data, line.lines_after()) or text
        return Loud(
            severity=Severity.ERROR if level == "CRITICAL" else Severity(level),
            text=text[:KEPT_CHARACTERS],
            time_s=record.time_s if record.time_s is not None else one.time_s,
            number=line.number,
            place=f"{self._place}:{line.number}",
            teller=self._teller(record),
            file_line=record.file_line,
            count=record.count,
        )

    def _remember_pieces(self, line: RawLine) -> None:
        """Further pieces of a line were read with its first one."""
        if is_piece(line.data):
            self._joined = set(gather_pieces(line.data, line.lines_after())[1:])

    def _closed(self, one: Open) -> None:
        chosen = one.chosen()
        if not chosen and one.loud is not None and not one.benign and self._in_window(one.loud.time_s):
            self.counts.templates.add(one.loud)
        for _, told in chosen:
            if self._in_window(told.time_s):
                self._confirm(self._copies.take(told))

    def _in_window(self, time_s: float | None) -> bool:
        return time_s is None or self._window is None or self._window.holds(time_s)

    def _confirm(self, tellings: Iterable[Told]) -> None:
        for told in tellings:
            self._echo(self._verdicts.passed(told))
            self._echo(self._verdicts.judge(told))

    def _echo(self, tellings: Iterable[Told]) -> None:
        for told in tellings:
            self._count(self._echoes.take(told))

    def _count(self, tellings: Iterable[Told]) -> None:
        for told in tellings:
            if told.way.waits and not self._is_first(told):
                continue
            tally = self.counts.tallies.setdefault(told.rule_id, Tally())
            tally.add(told, self._place, self._redact_prompts)
            if told.precise and len(self.counts.prints) < _MOST_PRINTS:
                _mark_precise(self.counts.prints, told)
            if self._announce is not None:
                self._announce(told, self._place)

    def _is_first(self, told: Told) -> bool:
        """Whether a line that shows a class in several ways has not been counted yet."""
        key = (told.rule_id, told.number)
        if key in self._waited:
            return False
        if len(self._waited) >= _MOST_WAITED:
            self._waited.clear()
        self._waited.add(key)
        return True


def _mark_precise(prints: dict[int, tuple[str, int]], told: Told) -> None:
    """Note an event whose stamp is fine enough to know it again in another file: microseconds, not milliseconds."""
    micros = round((told.time_s or 0.0) * 1e6)
    if micros % 1000:
        digest = hashlib.blake2b(f"{told.rule_id}\n{micros}\n{told.text}".encode(), digest_size=8).digest()
        prints[int.from_bytes(digest)] = (told.rule_id, told.count)
