"""The log pyramid: from blocks of log bytes to one event a class, however many lines, copies or frames told of it.

A `LogReader` takes one stream after the other and adds up. A stream is a file, or a rotated set of them, oldest first.
Each is judged by itself (`file_pass`), so streams may be read by several readers in several processes: `export` what
each counted and `merge` that in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo

from latencydoctor.evidence.logs.blocks import Block
from latencydoctor.evidence.logs.compiled import RuleBook, scanner_for
from latencydoctor.evidence.logs.counting import Counts
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.file_pass import FilePass
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.evidence.logs.tally import SHOWN_CHARACTERS, Tally
from latencydoctor.evidence.logs.told import Told
from latencydoctor.model.evidence import LogEvent, Window
from latencydoctor.model.rule import LogRule

__all__ = ["SHOWN_CHARACTERS", "LogReader", "scanner_for"]

_MOST_PRINTS = 50_000


class LogReader:
    """Classifies logs by rules; lines stamped outside `window` are left out.

    `scanner` may be handed in when several readers use the same rules: compiling their patterns takes a tenth of a
    second. A scanner serves one reader at a time. `zone` is that of stamps without one; `redact_prompts` blanks what
    users wrote.
    """

    def __init__(
        self,
        rules: Sequence[LogRule],
        window: Window | None = None,
        scanner: Scanner | None = None,
        *,
        zone: tzinfo | None = None,
        redact_prompts: bool = False,
    ) -> None:
        self._rules = {rule.id: rule for rule in rules if not rule.benign}
        self._window = window
        self._scanner = scanner or scanner_for(rules)
        self._book = RuleBook(rules)
        self._zone = zone
        self._redact_prompts = redact_prompts
        self._total = Counts()
        self._reading: FilePass | None = None

    def read(
        self,
        place: str,
        blocks: Iterable[Block],
        reference_s: float,
        on_event: Callable[[LogEvent], None] | None = None,
    ) -> dict[str, int]:
        """Add what one stream says and return the number of events that each file added, none where there were none.

        `place` names the file in events; `reference_s`, a moment soon after its end, dates stamps that have no year.
        A block with a `seam` begins another file of the same set. `on_event` is called with each event by itself, as
        soon as it is sure.
        """

        def announce(told: Told, place: str) -> None:
            one = Tally()
            one.add(told, place, self._redact_prompts)
            if on_event is not None:
                on_event(one.event(told.way.rule))

        dating = Dating(reference_s, self._zone)
        reading = FilePass(
            self._book,
            self._scanner.which,
            place,
            dating,
            self._window,
            announce if on_event is not None else None,
            self._redact_prompts,
        )
        self._reading = reading
        try:
            for block in blocks:
                if block.seam is not None:
                    reading.turn_to(block.seam, block.first_line)
                for line in self._scanner.candidates(block):
                    reading.take(line)
        finally:
            # What a reader was stopped in the middle of counts as far as it came.
            self._reading = None
            counts = reading.finish()
            self._add(counts)
        return counts.by_file

    def settle(self, now_s: float) -> None:
        """Decide what has waited long enough by a moment: for a file that grows, while nothing comes."""
        if self._reading is not None:
            self._reading.settle(now_s)

    def export(self) -> Counts:
        """What was counted so far, for `merge` in another process."""
        return self._total

    def merge(self, counts: Counts) -> int:
        """Add what another reader counted, of files later in order; returns how many events that added."""
        self._add(counts)
        return sum(counts.by_file.values())

    def events(self) -> tuple[LogEvent, ...]:
        """All events so far, one a class, worst level first, then by first time; unknown loud lines last."""
        known = [tally.event(self._rules[rule_id]) for rule_id, tally in self._total.tallies.items() if tally.count]
        known.sort(key=lambda one: (one.severity.rank, one.first_s is None, one.first_s or 0.0, one.rule))
        return (*known, *self._total.templates.events())

    def quiet(self) -> tuple[LogEvent, ...]:
        """Loud lines that no rule knows and that came in no burst, one a kind, worst and most frequent first."""
        return self._total.templates.quiet()

    def _add(self, counts: Counts) -> None:
        """Add up; what a stream before has told already is taken out of `counts`."""
        twice: dict[str, int] = {}
        prints = self._total.prints
        for key, (rule_id, count, file) in counts.prints.items():
            if key in prints:
                twice[rule_id] = twice.get(rule_id, 0) + count
                counts.by_file[file] -= count
            elif len(prints) < _MOST_PRINTS:
                prints[key] = (rule_id, count, file)
        for rule_id in sorted(counts.tallies):
            tally = counts.tallies[rule_id]
            tally.count -= twice.get(rule_id, 0)
            if tally.count <= 0:
                continue
            self._total.tallies.setdefault(rule_id, Tally()).merge(self._rules[rule_id], tally)
        for file, count in counts.by_file.items():
            self._total.by_file[file] = self._total.by_file.get(file, 0) + count
        self._total.templates.merge(counts.templates)
