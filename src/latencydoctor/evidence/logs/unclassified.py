"""Loud lines that no rule knows, grouped by what they have in common, so that nothing loud is hidden.

A line becomes a template: quoted texts, numbers, addresses, identifiers and paths are masked. Only templates whose
lines come in a burst are shown. Memory is bounded: kinds of lines that come after `MOST_TEMPLATES` are one more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from latencydoctor.evidence.redact import redact
from latencydoctor.model.evidence import LogEvent, Severity

UNCLASSIFIED = "unclassified"
MOST_TEMPLATES = 2000
MOST_SHOWN = 10
OTHERS = "(lines of further kinds, of which there are more than are told apart)"
MEANING = "No rule knows these lines; they are loud and came in a burst, so they are shown as they are."

_BURST = 5
_BURST_S = 60.0
_BURST_LINES = 200
_SMALL_BURST = 3
_RATE_RATIO = 5.0
_QUIET_BEFORE_S = 300.0
"""A rate before the burst means something only if the log was watched for so long."""

_KEPT_TIMES = 8
_MASKED_CHARACTERS = 400
_MASK = re.compile(
    r"(?<!\w)'[^'\n]{0,200}'(?!\w)"
    r"|\"[^\"\n]{0,200}\""
    r"|(?<!\w)[A-Za-z][\w+.-]{1,15}://[^\s'\")\]]{1,300}"
    r"|(?<![\w.])/[\w.@+/~-]{1,300}"
    r"|(?<![\w.-])[A-Za-z_.-]{0,40}\d[\w.:%@+-]{0,120}"
)
_LISTS = re.compile(r"<\*>(?:[,; ]{1,2}<\*>)+")


def template(text: str) -> str:
    """What a message has in common with others of its kind; its first line only, whatever differs masked as `<*>`."""
    line = text[:_MASKED_CHARACTERS].split("\n", 1)[0]
    return _LISTS.sub("<*>", _MASK.sub("<*>", line)).strip()


@dataclass(frozen=True, slots=True)
class Loud:
    """One loud line without a class."""

    severity: Severity
    text: str
    time_s: float | None
    number: int
    place: str
    teller: str
    file_line: str
    count: int = 1


@dataclass(slots=True)
class Group:
    """What has been seen of one template, `line`; `firsts` are its first times, `recent` its latest in this file."""

    severity: Severity
    place: str
    file_line: str
    line: str
    count: int = 0
    first_s: float | None = None
    last_s: float | None = None
    burst: bool = False
    tellers: dict[str, int] = field(default_factory=dict)
    firsts: list[float] = field(default_factory=list)
    recent: list[tuple[float | None, int]] = field(default_factory=list)


class Templates:
    """Counts loud lines by template. One for each file, merged into one for all."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self._since_s: float | None = None

    def watch_from(self, time_s: float | None) -> None:
        """The file's earliest moment: from then on silence means that nothing happened."""
        if time_s is not None and (self._since_s is None or time_s < self._since_s):
            self._since_s = time_s

    def add(self, loud: Loud) -> None:
        """Count a line."""
        masked = self._kept(template(loud.text))
        group = self.groups.get(masked)
        if group is None:
            file_line = "" if masked == OTHERS else loud.file_line
            group = self.groups[masked] = Group(loud.severity, loud.place, file_line, redact(masked))
        before = group.count
        group.count += loud.count
        if loud.severity.rank < group.severity.rank:
            group.severity = loud.severity
        if loud.teller in group.tellers or len(group.tellers) < _KEPT_TIMES:
            group.tellers[loud.teller] = group.tellers.get(loud.teller, 0) + loud.count
        _see(group, loud.time_s)
        if not group.burst:
            self._look_for_burst(group, loud, before)

    def _kept(self, masked: str) -> str:
        """The template under which a line is counted: its own while there is room."""
        return masked if masked in self.groups or len(self.groups) < MOST_TEMPLATES else OTHERS

    def _look_for_burst(self, group: Group, loud: Loud, before: int) -> None:
        group.recent = [one for one in group.recent if _close(one, (loud.time_s, loud.number))]
        group.recent += [(loud.time_s, loud.number)] * min(loud.count, _BURST)
        earlier = before - (len(group.recent) - min(loud.count, _BURST))
        group.burst = len(group.recent) >= _BURST or (
            len(group.recent) >= _SMALL_BURST and self._rare_before(loud.time_s, earlier)
        )

    def _rare_before(self, time_s: float | None, earlier: int) -> bool:
        if time_s is None or self._since_s is None:
            return False
        watched_s = time_s - _BURST_S - self._since_s
        return watched_s >= _QUIET_BEFORE_S and earlier / watched_s * _RATE_RATIO <= _SMALL_BURST / _BURST_S

    def merge(self, other: Templates) -> None:
        """Add what was seen in a further file; a burst may be spread over several."""
        for masked, theirs in other.groups.items():
            kept = self._kept(masked)
            ours = self.groups.get(kept)
            if ours is None:
                self.groups[kept] = theirs if kept == masked else replace(theirs, line=kept, file_line="")
                continue
            _merge(ours, theirs)

    def events(self) -> tuple[LogEvent, ...]:
        """The templates that burst, worst and most frequent first, at most `MOST_SHOWN`."""
        return self._ordered(burst=True)[:MOST_SHOWN]

    def quiet(self) -> tuple[LogEvent, ...]:
        """All others in the same order: so few lines of each that they would only bury what is known."""
        return self._ordered(burst=False)

    def _ordered(self, *, burst: bool) -> tuple[LogEvent, ...]:
        found = sorted(
            ((masked, group) for masked, group in self.groups.items() if group.burst == burst),
            key=lambda one: (one[1].severity.rank, -one[1].count, one[0]),
        )
        return tuple(_event(group) for _, group in found)


def _close(one: tuple[float | None, int], now: tuple[float | None, int]) -> bool:
    if one[0] is None or now[0] is None:
        return now[1] - one[1] <= _BURST_LINES
    return abs(now[0] - one[0]) <= _BURST_S


def _see(group: Group, time_s: float | None) -> None:
    if time_s is None:
        return
    group.first_s = time_s if group.first_s is None else min(group.first_s, time_s)
    group.last_s = time_s if group.last_s is None else max(group.last_s, time_s)
    if len(group.firsts) < _KEPT_TIMES:
        group.firsts.append(time_s)


def _merge(ours: Group, theirs: Group) -> None:
    ours.count += theirs.count
    if theirs.severity.rank < ours.severity.rank:
        ours.severity = theirs.severity
    if theirs.first_s is not None and (ours.first_s is None or theirs.first_s < ours.first_s):
        ours.first_s, ours.place, ours.file_line = theirs.first_s, theirs.place, theirs.file_line
    if theirs.last_s is not None:
        ours.last_s = theirs.last_s if ours.last_s is None else max(ours.last_s, theirs.last_s)
    for teller, count in theirs.tellers.items():
        if teller in ours.tellers or len(ours.tellers) < _KEPT_TIMES:
            ours.tellers[teller] = ours.tellers.get(teller, 0) + count
    times = sorted(ours.firsts + theirs.firsts)
    together = any(late - early <= _BURST_S for early, late in zip(times, times[_BURST - 1 :], strict=False))
    ours.burst = ours.burst or theirs.burst or together
    ours.firsts = times[:_KEPT_TIMES]
    ours.recent = []


def _event(group: Group) -> LogEvent:
    tellers = sorted(group.tellers, key=lambda one: (-group.tellers[one], one))
    return LogEvent(
        rule=UNCLASSIFIED,
        severity=group.severity,
        count=group.count,
        first_s=group.first_s,
        last_s=group.last_s,
        place=group.place,
        line=group.line,
        meaning=MEANING,
        sources=tuple(tellers[:5]),
        file_line=group.file_line,
        unclassified=True,
    )
