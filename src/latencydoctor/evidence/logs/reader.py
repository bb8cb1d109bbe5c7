"""The log pyramid: from blocks of log bytes to one event a rule, however many lines, copies or frames told of it.

A `LogReader` takes one file after the other and adds up. What counts as one event: a line's own `count`; a record with
its traceback and the exceptions chained in it; copies of one message by different ranks; the rows of a table that
repeat a line. Everything else counts line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from latencydoctor.errors import ContentError
from latencydoctor.evidence.logs.lines import LineRecord, clean, read_line
from latencydoctor.evidence.logs.quantities import find_numbers
from latencydoctor.evidence.logs.scan import Block, PatternError, RawLine, Scanner
from latencydoctor.evidence.redact import redact
from latencydoctor.model.evidence import LogEvent, Window
from latencydoctor.model.rule import LogRule, NumberGate

SHOWN_CHARACTERS = 500
"""How much of a line an event keeps."""

_REDACTED_CHARACTERS = 4096
_RANK_COPIES_WITHIN_S = 30.0
"""Ranks of one job report the same death within seconds; collective time-outs trail by less than this."""

_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
_QUIET_LEVELS = frozenset({"INFO", "DEBUG", "TRACE"})


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: LogRule
    patterns: frozenset[int]
    unless: frozenset[int]
    numbers: tuple[re.Pattern[str], ...]


@dataclass(slots=True)
class _Tally:
    """What has been counted for a rule; `head`, `ranks` and the like belong to the file being read."""

    count: int = 0
    first_s: float | None = None
    last_s: float | None = None
    place: str = ""
    line: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    head: int = 0
    in_this_file: bool = False
    ranks: dict[str, tuple[set[str], float | None]] = field(default_factory=dict)


class LogReader:
    """Classifies logs by rules; lines stamped outside `window` are left out.

    `scanner` may be handed in when several readers use the same rules: compiling their patterns takes a tenth of a
    second. A scanner serves one reader at a time.
    """

    def __init__(self, rules: Sequence[LogRule], window: Window | None = None, scanner: Scanner | None = None) -> None:
        self._window = window
        self._scanner = scanner or scanner_for(rules)
        compiled = _compile(rules)
        self._rules = {rule_id: one for rule_id, one in compiled.items() if not one.rule.benign}
        self._benign = frozenset().union(*(one.patterns for one in compiled.values() if one.rule.benign))
        self._tallies = {rule_id: _Tally() for rule_id in self._rules}

    def read(self, place: str, blocks: Iterable[Block], reference_s: float) -> int:
        """Add what one file says and return the number of events it added.

        `place` names the file in events; `reference_s`, a moment soon after its end, dates stamps that have no year.
        """
        before = sum(tally.count for tally in self._tallies.values())
        for tally in self._tallies.values():
            tally.head, tally.in_this_file = 0, False
            tally.ranks.clear()
        for block in blocks:
            for line in self._scanner.candidates(block):
                self._take(place, line, reference_s)
        return sum(tally.count for tally in self._tallies.values()) - before

    def events(self) -> tuple[LogEvent, ...]:
        """All events so far, one a rule that fired, worst level first, then by first time."""
        found = [
            LogEvent(
                rule=rule_id,
                severity=self._rules[rule_id].rule.level,
                count=tally.count,
                first_s=tally.first_s,
                last_s=tally.last_s,
                place=tally.place,
                line=tally.line,
                meaning=self._rules[rule_id].rule.meaning,
                numbers=tuple(sorted(tally.numbers.items())),
            )
            for rule_id, tally in self._tallies.items()
            if tally.count
        ]
        return tuple(
            sorted(found, key=lambda one: (one.severity.rank, one.first_s is None, one.first_s or 0.0, one.rule))
        )

    def _take(self, place: str, line: RawLine, reference_s: float) -> None:
        text = clean(line.data)
        record = read_line(text, reference_s)
        rules = self._rules_of(line, record)
        if not rules:
            return
        head, time_s = line.number, record.time_s
        if record.continued:
            head, time_s = _head_of(line, reference_s)
        if time_s is not None and self._window is not None and not self._window.holds(time_s):
            return
        for compiled in rules:
            numbers = {**find_numbers(compiled.numbers, record.text), **_own_numbers(compiled, record)}
            if not _passes(compiled.rule.gate, numbers):
                continue
            tally = self._tallies[compiled.rule.id]
            copy = _is_copy(tally, record, head, time_s)
            tally.head, tally.in_this_file = head, True
            if not copy:
                _add(tally, compiled.rule, numbers, record.count, time_s, f"{place}:{line.number}", text)

    def _rules_of(self, line: RawLine, record: LineRecord) -> tuple[_Compiled, ...]:
        """A structured line that names a known event is that event; else its message decides, unless it is quiet."""
        if record.event in self._rules:
            return (self._rules[record.event],)
        hits = line.patterns
        if record.structured:
            if record.level in _QUIET_LEVELS:
                return ()
            # Other fields hold what users wrote.
            hits = self._scanner.which(record.text)
        if hits & self._benign:
            return ()
        return tuple(one for one in self._rules.values() if hits & one.patterns and not hits & one.unless)


def scanner_for(rules: Sequence[LogRule], engine: str = "") -> Scanner:
    """The scanner that a reader of these rules needs; `engine` is `hyperscan` or `re2`, by default the best there is.

    Raises `ContentError` with the rule's id for a pattern that the engine refuses.
    """
    wanted, unless = _patterns(rules)
    try:
        return Scanner(wanted, unless, engine)
    except PatternError as error:
        pattern = [*wanted, *unless][error.index]
        culprits = [rule.id for rule in rules if pattern in (*_wanted(rule), *rule.unless)]
        hint = "`latencydoctor rules check` names the line."
        raise ContentError(f"log rule {', '.join(culprits)}: {error.message}", hint=hint) from error


def _patterns(rules: Sequence[LogRule]) -> tuple[list[str], list[str]]:
    """All patterns, each once (many rules share what makes a line benign): those looked for, and those that excuse."""
    wanted = dict.fromkeys(pattern for rule in rules if not rule.benign for pattern in _wanted(rule))
    excuses = (pattern for rule in rules for pattern in (*rule.unless, *(rule.patterns if rule.benign else ())))
    return list(wanted), [pattern for pattern in dict.fromkeys(excuses) if pattern not in wanted]


def _wanted(rule: LogRule) -> tuple[str, ...]:
    """A rule's patterns, and that of a JSON line which names the rule as its event; escaped quotes do not match it."""
    return (*rule.patterns, f'"event": ?"{re.escape(rule.id)}"')


def _compile(rules: Sequence[LogRule]) -> dict[str, _Compiled]:
    """Each rule with the numbers its patterns have in the scanner, where those that excuse follow those looked for."""
    wanted, unless = _patterns(rules)
    number = {pattern: index for index, pattern in enumerate([*wanted, *unless])}
    return {
        rule.id: _Compiled(
            rule,
            frozenset(number[pattern] for pattern in (rule.patterns if rule.benign else _wanted(rule))),
            frozenset(number[pattern] for pattern in rule.unless),
            tuple(re.compile(pattern) for pattern in rule.numbers),
        )
        for rule in rules
    }


def _own_numbers(compiled: _Compiled, record: LineRecord) -> dict[str, float]:
    """A structured line's fields that the rule's number patterns name."""
    names = {name for pattern in compiled.numbers for name in pattern.groupindex}
    return {name: value for name, value in record.fields if name in names}


def _passes(gate: NumberGate | None, numbers: dict[str, float]) -> bool:
    if gate is None:
        return True
    value = numbers.get(gate.group)
    bound = numbers.get(gate.at_least_group) if gate.at_least_group else 0.0
    if value is None or bound is None:
        return gate.counts_when_absent
    if gate.at_least_group:
        return value >= bound
    return (gate.above is None or value > gate.above) and (gate.below is None or value < gate.below)


def _is_copy(tally: _Tally, record: LineRecord, head: int, time_s: float | None) -> bool:
    """Whether a line tells again what the rule has already counted in this file."""
    if record.continued and tally.in_this_file and (tally.head == head or record.text.startswith("|")):
        return True
    if not record.rank:
        return False
    # Ranks differ in device, process and sizes; the words are the same.
    said = re.sub(r"\d+(?:\.\d+)?", "#", record.text)
    ranks, since_s = tally.ranks.get(said, (set(), None))
    late = time_s is not None and since_s is not None and time_s - since_s > _RANK_COPIES_WITHIN_S
    if ranks and record.rank not in ranks and not late:
        ranks.add(record.rank)
        return True
    tally.ranks[said] = ({record.rank}, time_s)
    return False


def _head_of(line: RawLine, reference_s: float) -> tuple[int, float | None]:
    """The number of the first line of the record that a line without a head belongs to, and that record's moment.

    The first line is the nearest one with a stamp, or where the chain of tracebacks begins if that is nearer and does
    not follow a stamped line directly.
    """
    head = start = 0
    for back, data in enumerate(line.lines_before(), 1):
        text = clean(data)
        record = read_line(text, reference_s)
        if not record.continued:
            return head or line.number - back, record.time_s
        if start and text.strip():
            # What stands before a traceback tells whether it is a link of a chain.
            head = 0 if any(words in text for words in _CHAINED) else head or start
            start = 0
        if not head and _TRACEBACK in text:
            start = line.number - back
    return head or start or line.number, None


def _add(
    tally: _Tally,
    rule: LogRule,
    numbers: dict[str, float],
    count: int,
    time_s: float | None,
    place: str,
    text: str,
) -> None:
    tally.count += count
    if not tally.line or (time_s is not None and (tally.first_s is None or time_s < tally.first_s)):
        tally.place = place
        tally.line = redact(text[:_REDACTED_CHARACTERS])[:SHOWN_CHARACTERS]
    if time_s is not None:
        tally.first_s = time_s if tally.first_s is None else min(tally.first_s, time_s)
        tally.last_s = time_s if tally.last_s is None else max(tally.last_s, time_s)
    gate = rule.gate.group if rule.gate else ""
    # The figures kept are the worst line's, so that 'queue_ms' says how bad it got.
    if not tally.numbers or numbers.get(gate, 0.0) > tally.numbers.get(gate, 0.0):
        tally.numbers = numbers
