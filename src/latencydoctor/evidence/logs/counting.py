"""From what records tell to what is counted: copies, verdicts and echoes, one after the other, within one stream."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from latencydoctor.evidence.logs.compiled import Way
from latencydoctor.evidence.logs.copies import Copies
from latencydoctor.evidence.logs.echoes import Echoes
from latencydoctor.evidence.logs.places import Places
from latencydoctor.evidence.logs.tally import Tally
from latencydoctor.evidence.logs.told import At, Told
from latencydoctor.evidence.logs.unclassified import Templates
from latencydoctor.evidence.logs.verdicts import Verdicts

_MOST_PRINTS = 10_000
_MOST_WAITED = 4096

Announce = Callable[[Told, str], None]


@dataclass(slots=True)
class Counts:
    """What one file says, or several: counts by class, templates of unknown loud lines, marks of precise events.

    `prints` tell whether a further file holds the same event, as when standard output is kept beside a log file: the
    class, number of events and file by their moment and text. `by_file` is how many events each file tells of.
    """

    tallies: dict[str, Tally] = field(default_factory=dict)
    templates: Templates = field(default_factory=Templates)
    prints: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    by_file: dict[str, int] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """How many events there are, unknown lines left out."""
        return sum(tally.count for tally in self.tallies.values())


class Counting:
    """Counts what one stream tells. `places` name its files; `announce` is told of each event that is sure, and where.

    What waits for other lines, and what only they can tell from copies and echoes, may wait from one file to the next.
    """

    def __init__(self, places: Places, announce: Announce | None = None, redact_prompts: bool = False) -> None:
        self.counts = Counts()
        self.verdicts = Verdicts()
        self._places = places
        self._announce = announce
        self._redact_prompts = redact_prompts
        self._copies = Copies()
        self._echoes = Echoes()
        self._waited: set[tuple[str, int]] = set()

    def tell(self, told: Told) -> None:
        """Take what a record says, in the order of the file as far as its sources are in order."""
        for one in self._copies.take(told):
            self._confirm(one)

    def mark(self, ways: Iterable[Way], hits: frozenset[int], source: str, at: At) -> None:
        """A line decides on others, which must have been told by now."""
        for one in self._copies.finish():
            self._confirm(one)
        for way in ways:
            self._count_all(self.verdicts.mark(way, hits, source, at))

    def settle(self, now_s: float) -> None:
        """Decide what has waited long enough by a moment, when no line comes to tell of the time."""
        at = At(now_s, 1 << 60)
        for one in self._copies.finish():
            self._confirm(one)
        self._count_all(self.verdicts.passed(at))
        for told in self._echoes.settled(at):
            self._count(told)

    def finish(self) -> Counts:
        """Decide everything that still waits; what the file says."""
        for one in self._copies.finish():
            self._confirm(one)
        self._count_all(self.verdicts.finish())
        for told in self._echoes.finish():
            self._count(told)
        for rule_id, echoes in self._echoes.later.items():
            if rule_id in self.counts.tallies:
                self.counts.tallies[rule_id].echoes += echoes
        self._echoes.later.clear()
        return self.counts

    def _confirm(self, told: Told) -> None:
        if self.verdicts.retrying:
            self._count_all(self.verdicts.passed(told))
        if told.way.waits:
            self._count_all(self.verdicts.judge(told))
            return
        self._hand_on(told)

    def _hand_on(self, told: Told) -> None:
        if not told.way.echoing:
            # Of a class that nothing echoes, only a table's rows tell again.
            tally = self.counts.tallies.get(told.rule_id) if told.only_echoes else None
            if tally is None:
                self._count(told)
            else:
                tally.echoes += told.count
            return
        for one in self._echoes.take(told):
            self._count(one)

    def _count_all(self, tellings: Iterable[Told]) -> None:
        for told in tellings:
            self._hand_on(told)

    def _count(self, told: Told) -> None:
        if told.way.waits and not self._is_first(told):
            return
        rule_id = told.way.rule.id
        tally = self.counts.tallies.get(rule_id)
        if tally is None:
            tally = self.counts.tallies[rule_id] = Tally()
        place, file = self._places.at(told.number), self._places.of(told.number)
        tally.add(told, place, self._redact_prompts)
        self.counts.by_file[file] = self.counts.by_file.get(file, 0) + told.count
        if told.precise and len(self.counts.prints) < _MOST_PRINTS:
            _mark_precise(self.counts.prints, told, file)
        if self._announce is not None:
            self._announce(told, place)

    def _is_first(self, told: Told) -> bool:
        """Whether a line that shows a class in several ways has not been counted yet."""
        key = (told.rule_id, told.number)
        if key in self._waited:
            return False
        if len(self._waited) >= _MOST_WAITED:
            self._waited.clear()
        self._waited.add(key)
        return True


def _mark_precise(prints: dict[int, tuple[str, int, str]], told: Told, file: str) -> None:
    """Note an event whose stamp is fine enough to know it again in another file: microseconds, not milliseconds."""
    micros = round((told.time_s or 0.0) * 1e6)
    if micros % 1000:
        prints[micros << 32 | zlib.crc32(told.text.encode("utf-8", "replace"))] = (told.rule_id, told.count, file)
