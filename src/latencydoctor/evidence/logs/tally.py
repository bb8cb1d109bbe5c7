"""The count of each class: how many events, since when, told by whom; of one file, and of all files merged.

What a tally holds does not grow with the number of events: it keeps one line a class, a few names, and the minutes in
which something happened, coarser where they are many.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from latencydoctor.evidence.logs.damage import clean
from latencydoctor.evidence.logs.durations import lasted_s
from latencydoctor.evidence.logs.told import Told
from latencydoctor.evidence.redact import blank_prompts, redact
from latencydoctor.model.evidence import LogEvent
from latencydoctor.model.rule import LogRule

SHOWN_CHARACTERS = 500
"""How much of a line an event keeps."""

_COMPARED_CHARACTERS = 256
_WRAPPED_CHARACTERS = 160
"""Heads with a stamp, a pod and a file take up to this; a journal's entry in JSON takes more."""

_LENGTH = b"\0\0\0\0"
"""What a journal's export puts before a message of several lines has zeros: its length."""

_MOST_TELLERS = 64
_SEARCHED_FOR_DURATIONS = 32
_SHOWN_TELLERS = 5
_MOST_SPANS = 512
_FIRST_SPAN_S = 60


@dataclass(slots=True)
class BusySpans:
    """The minutes in which events came; a span grows longer once they are too many to keep."""

    length_s: int = _FIRST_SPAN_S
    starts: set[int] = field(default_factory=set)

    def add(self, time_s: float) -> None:
        """Note a moment."""
        start = int(time_s // self.length_s)
        if start in self.starts:
            return
        self.starts.add(start)
        if len(self.starts) > _MOST_SPANS:
            self._coarsen(self.length_s * 2)

    def merge(self, other: BusySpans) -> None:
        """Add another's moments."""
        length_s = max(self.length_s, other.length_s)
        self._coarsen(length_s)
        self.starts |= {start * other.length_s // length_s for start in other.starts}
        while len(self.starts) > _MOST_SPANS:
            self._coarsen(self.length_s * 2)

    def _coarsen(self, length_s: int) -> None:
        self.starts = {start * self.length_s // length_s for start in self.starts}
        self.length_s = length_s

    @property
    def busy_s(self) -> int:
        """How long events came, without the time in between when none did."""
        return len(self.starts) * self.length_s


@dataclass(slots=True)
class Tally:
    """What has been counted for a class."""

    count: int = 0
    echoes: int = 0
    first_s: float | None = None
    last_s: float | None = None
    shown_s: float | None = None
    place: str = ""
    line: str = ""
    file_line: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    tellers: dict[str, int] = field(default_factory=dict)
    spans: BusySpans = field(default_factory=BusySpans)
    searched: int = 0
    lasts: bool = False

    def add(self, told: Told, place: str, redact_prompts: bool) -> None:
        """Count an event; `place` is its file and the line's number there."""
        self.count += told.count
        self.echoes += told.echoes
        time_s = told.time_s
        if not self.line or (time_s is not None and (self.shown_s is None or time_s < self.shown_s)):
            self.place, self.shown_s, self.file_line = place, time_s, told.file_line
            self.line = shown(told, redact_prompts)
        if time_s is not None:
            began_s = self._began_s(told, time_s)
            if self.first_s is None or began_s < self.first_s:
                self.first_s = began_s
            until_s = told.until_s or time_s
            if self.last_s is None or until_s > self.last_s:
                self.last_s = until_s
            self.spans.add(time_s)
        if told.teller in self.tellers:
            self.tellers[told.teller] += told.count
        elif len(self.tellers) < _MOST_TELLERS:
            self.tellers[told.teller] = told.count
        if told.numbers:
            self._keep_worst(told.way.rule, told.numbers)

    def merge(self, rule: LogRule, other: Tally) -> None:
        """Add what another file, later in order, was counted to have."""
        self.count += other.count
        self.echoes += other.echoes
        earlier = other.shown_s is not None and (self.shown_s is None or other.shown_s < self.shown_s)
        if other.line and (earlier or not self.line):
            self.place, self.line, self.file_line, self.shown_s = (
                other.place,
                other.line,
                other.file_line,
                other.shown_s,
            )
        if other.first_s is not None and other.last_s is not None:
            self.first_s = other.first_s if self.first_s is None else min(self.first_s, other.first_s)
            self.last_s = other.last_s if self.last_s is None else max(self.last_s, other.last_s)
        for teller, count in other.tellers.items():
            if teller in self.tellers or len(self.tellers) < _MOST_TELLERS:
                self.tellers[teller] = self.tellers.get(teller, 0) + count
        self.spans.merge(other.spans)
        self._keep_worst(rule, other.numbers)

    def _began_s(self, told: Told, time_s: float) -> float:
        if told.began_s is not None:
            return min(told.began_s, time_s)
        # Lines of one class look alike: where the first of them tell of no duration, the others need not be searched.
        if self.searched >= _SEARCHED_FOR_DURATIONS and not self.lasts:
            return time_s
        self.searched += 1
        lasted = lasted_s(told.text)
        self.lasts = self.lasts or lasted > 0
        return time_s - lasted

    def _keep_worst(self, rule: LogRule, numbers: dict[str, float]) -> None:
        """The figures kept are the worst line's, so that 'queue_ms' says how bad it got."""
        gate = rule.gate.group if rule.gate else rule.climbs
        if not self.numbers or numbers.get(gate, 0.0) > self.numbers.get(gate, 0.0):
            self.numbers = numbers

    def event(self, rule: LogRule) -> LogEvent:
        """The class as it happened."""
        tellers = sorted(self.tellers, key=lambda one: (-self.tellers[one], one))
        return LogEvent(
            rule=rule.id,
            severity=rule.level,
            count=self.count,
            first_s=self.first_s,
            last_s=self.last_s,
            place=self.place,
            line=self.line,
            meaning=rule.meaning,
            numbers=tuple(sorted(self.numbers.items())),
            echoes=self.echoes,
            sources=tuple(tellers[:_SHOWN_TELLERS]),
            file_line=self.file_line,
            busy_s=float(self.spans.busy_s),
            remedy=rule.remedy,
        )


def shown(told: Told, redact_prompts: bool = False) -> str:
    """A line as it may be kept: without secrets, cut.

    What a wrapper escaped, hid in numbers, or put behind a row of fields of its own is kept as its program wrote it.
    """
    line = clean(told.data)
    exported = told.data.startswith(b"MESSAGE=") or _LENGTH in told.data[:8]
    if exported or not 0 <= line.find(told.text[:_COMPARED_CHARACTERS]) <= _WRAPPED_CHARACTERS:
        line = told.text
    if redact_prompts:
        line = blank_prompts(line)
    return redact(line)[:SHOWN_CHARACTERS]
