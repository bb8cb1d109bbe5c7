"""Rules made ready to judge lines: which of them a set of matching patterns means, decided once a set, not once a line.

`scanner_for` compiles all patterns of all rules into one scanner; a `RuleBook` has the same rules with the numbers
that their patterns have in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from latencydoctor.errors import ContentError
from latencydoctor.evidence.logs.engine import PatternError
from latencydoctor.evidence.logs.scanner import CompiledStore, Scanner
from latencydoctor.evidence.logs.sieve import sieve
from latencydoctor.model.rule import LogRule

STRUCTURE = (
    r"Traceback \(most recent call last\)",
    "The above exception was the direct cause",
    "During handling of the above exception",
    "Caused by: ",
)
"""Lines that hold a record together; they are looked at whatever else they say."""

_REMEMBERED_SETS = 4096


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a class shows, with its patterns' numbers. `index` tells the ways of one class apart."""

    rule: LogRule
    index: int
    any: frozenset[int]
    echoes: frozenset[int]
    unless: frozenset[int]
    only_after: frozenset[int]
    not_after: frozenset[int]
    recovered: frozenset[int]
    real: frozenset[int]
    marks: frozenset[int]
    waits: bool
    echoing: bool
    """Whether other tellings may be echoes of this class, or it one of theirs."""

    @property
    def key(self) -> tuple[str, int]:
        """What it is told apart by."""
        return self.rule.id, self.index


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a set of matching patterns means: `ways` with whether the line only echoes, conditions still to be asked.

    `marks` are the ways for which such a line decides on other lines; `benign` those benign rules that match.
    """

    ways: tuple[tuple[Way, bool], ...]
    marks: tuple[Way, ...]
    benign: tuple[Way, ...]


NOTHING = Meaning((), (), ())


@lru_cache(maxsize=1024)
def number_patterns(rule_numbers: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    """A rule's number patterns, compiled when a line of it is first seen: most rules never are.

    Each with words of which one stands in every line that it matches, where that is known: looking for a word is quick.
    """
    return tuple((re.compile(pattern), _words_of(pattern)) for pattern in rule_numbers)


def _words_of(pattern: str) -> tuple[str, ...]:
    try:
        words = sieve(pattern).words
    except re.error:
        return ()
    return () if any(word.caseless for word in words) else tuple(word.text for word in words)


class RuleBook:
    """The rules of a reader: by id, and by what matches."""

    def __init__(self, rules: Sequence[LogRule]) -> None:
        wanted, excuses = _patterns(rules)
        self._number = {pattern: index for index, pattern in enumerate([*wanted, *excuses])}
        related = _related(rules)
        self._ways = tuple(
            self._way(one, index, one.id in related)
            for rule in rules
            for index, one in enumerate((rule, *rule.variants))
            if one.patterns
        )
        self.first_way = {way.rule.id: way for way in reversed(self._ways) if not way.rule.benign}
        """Each class's first way: that of a line which names the class itself."""
        self._meanings: dict[frozenset[int], Meaning] = {}

    def meaning(self, hits: frozenset[int]) -> Meaning:
        """What it means that these patterns match."""
        if not hits:
            return NOTHING
        found = self._meanings.get(hits)
        if found is None:
            found = self._meaning(hits)
            # Lines can be made to give ever new sets.
            if len(self._meanings) < _REMEMBERED_SETS:
                self._meanings[hits] = found
        return found

    def _meaning(self, hits: frozenset[int]) -> Meaning:
        ways: list[tuple[Way, bool]] = []
        marks: list[Way] = []
        benign: list[Way] = []
        for way in self._ways:
            if hits & way.marks:
                marks.append(way)
            if hits & way.unless or not hits & (way.any | way.echoes):
                continue
            if way.rule.benign:
                benign.append(way)
            else:
                ways.append((way, bool(hits & way.echoes)))
        return Meaning(tuple(ways), tuple(marks), tuple(benign))

    def _way(self, rule: LogRule, index: int, echoing: bool) -> Way:
        only_after, not_after, recovered, real = (self._numbers(patterns) for patterns in _marks(rule))
        return Way(
            rule=rule,
            index=index,
            any=self._numbers(rule.patterns),
            echoes=self._numbers(rule.echoes),
            unless=self._numbers(rule.unless),
            only_after=only_after,
            not_after=not_after,
            recovered=recovered,
            real=real,
            marks=only_after | not_after | recovered | real,
            waits=bool(rule.burst or rule.climbs or only_after or not_after or recovered or real),
            echoing=echoing,
        )

    def _numbers(self, patterns: Sequence[str]) -> frozenset[int]:
        return frozenset(self._number[pattern] for pattern in patterns)


def _related(rules: Sequence[LogRule]) -> set[str]:
    """The classes that echo something, or are echoed; a table's rows echo any, but need no note of it."""
    named = {original for rule in rules for original in rule.echo_of}
    return named | {one.id for one in _all_ways(rules) if one.echoes or one.echo_of}


def scanner_for(rules: Sequence[LogRule], engine: str = "", store: CompiledStore | None = None) -> Scanner:
    """The scanner that a reader of these rules needs; `engine` is `hyperscan` or `re2`, by default the best there is.

    With a `store` the same rules are compiled only once.

    Raises `ContentError` with the rule's id for a pattern that the engine refuses.
    """
    wanted, excuses = _patterns(rules)
    try:
        return Scanner(wanted, excuses, engine, seldom=seldom_patterns(rules), store=store)
    except PatternError as error:
        pattern = [*wanted, *excuses][error.index]
        culprits = [one.id for one in _all_ways(rules) if pattern in (*_wanted(one), *_excuses(one))]
        hint = "`latencydoctor rules check` names the line."
        raise ContentError(f"log rule {', '.join(culprits)}: {error.message}", hint=hint) from error


def patterns_of(rules: Sequence[LogRule]) -> list[str]:
    """All patterns that make a line worth looking at."""
    return _patterns(rules)[0]


def asked_for(rules: Sequence[LogRule]) -> dict[str, tuple[str, ...]]:
    """The patterns of rules that make a line worth looking at, each with the rules that have it."""
    found: dict[str, dict[str, None]] = {}
    for one in _all_ways(rules):
        for pattern in _wanted(one):
            found.setdefault(pattern, {})[one.id] = None
    return {pattern: tuple(owners) for pattern, owners in found.items()}


def seldom_patterns(rules: Sequence[LogRule]) -> set[str]:
    """Patterns of which it matters only whether they have been seen at all."""
    others = {pattern for one in _all_ways(rules) for patterns in _marks(one)[1:] for pattern in patterns}
    looked_for = {pattern for one in _all_ways(rules) for pattern in (*one.patterns, *one.echoes)}
    return {pattern for one in _all_ways(rules) for pattern in one.only_after} - others - looked_for


def _patterns(rules: Sequence[LogRule]) -> tuple[list[str], list[str]]:
    """All patterns, each once (many rules share what makes a line benign): those looked for, and those that excuse."""
    wanted = dict.fromkeys(pattern for one in _all_ways(rules) for pattern in _wanted(one))
    names = "|".join(re.escape(rule.id) for rule in rules if not rule.benign)
    # A JSON line that names a class as its event.
    wanted.update(dict.fromkeys((*STRUCTURE, f'"event": ?"(?:{names})"')))
    excuses = dict.fromkeys(pattern for one in _all_ways(rules) for pattern in _excuses(one))
    return list(wanted), [pattern for pattern in excuses if pattern not in wanted]


def _all_ways(rules: Sequence[LogRule]) -> Iterator[LogRule]:
    return (one for rule in rules for one in (rule, *rule.variants))


def _wanted(rule: LogRule) -> tuple[str, ...]:
    """Patterns that make a line worth looking at."""
    marks = tuple(pattern for patterns in _marks(rule) for pattern in patterns)
    return marks if rule.benign else (*rule.patterns, *rule.echoes, *marks)


def _marks(rule: LogRule) -> tuple[tuple[str, ...], ...]:
    """Patterns of lines that decide on others: only_after, not_after, recovered_by, real_when."""
    sequels = (rule.not_after, rule.recovered_by, rule.real_when)
    return (rule.only_after, *(one.patterns if one else () for one in sequels))


def _excuses(rule: LogRule) -> tuple[str, ...]:
    """Patterns that only say something of a line which is looked at anyway."""
    return (*rule.patterns, *rule.unless) if rule.benign else rule.unless
