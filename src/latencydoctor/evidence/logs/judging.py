"""Which classes one record shows: what its line matches, and the conditions that the record itself can answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from latencydoctor.evidence.logs.compiled import Meaning, RuleBook, Way, number_patterns
from latencydoctor.evidence.logs.lines import LineRecord
from latencydoctor.evidence.logs.quantities import find_numbers
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import NumberGate

_RANKS = {"CRITICAL": 0, "ERROR": 1, "WARNING": 2, "INFO": 3, "DEBUG": 4}
_QUIET = frozenset({"INFO", "DEBUG"})
_QUIET_PROGRAMS = frozenset({"", "stack"})
"""Programs whose quiet JSON lines may hold what users wrote; others' request lines have figures that count."""

Asked = Callable[[Way], bool]


class Hit(NamedTuple):
    """A class that a line shows, and the figures in it; `only_echoes` where it may merely tell again."""

    way: Way
    only_echoes: bool
    numbers: dict[str, float]


def hits_of(book: RuleBook, meaning: Meaning, record: LineRecord, level: str) -> tuple[Hit, ...]:
    """The classes that a line shows, `meaning` being what its patterns mean; `level` is the record's, or its head's."""
    if record.event and record.event in book.first_way:
        way = book.first_way[record.event]
        numbers = _numbers(way, record)
        return (Hit(way, False, numbers),) if _passes(way.rule.gate, numbers) else ()
    if record.structured and level in _QUIET and record.program in _QUIET_PROGRAMS:
        return ()
    found: list[Hit] = []
    # Rules that differ in their gates ask for the same figures.
    seen: dict[str, dict[str, float]] = {}
    for way, only_echoes in meaning.ways:
        if not _applies(way, record, level):
            continue
        numbers = _numbers(way, record, seen)
        if only_echoes or _passes(way.rule.gate, numbers):
            found.append(Hit(way, only_echoes, numbers))
    return tuple(found) if len(found) < 2 else _one_a_class(found)


def is_benign(meaning: Meaning, record: LineRecord, level: str, is_after: Asked) -> bool:
    """Whether a benign rule knows the line, so that it means nothing to any class.

    `is_after` says whether what a way's `only_after` asks for has been seen.
    """
    for way in meaning.benign:
        if not _applies(way, record, level) or (way.only_after and not is_after(way)):
            continue
        if way.rule.gate is None or _passes(way.rule.gate, _numbers(way, record)):
            return True
    return False


def rank_of(level: str) -> int:
    """0 is worst; what has no level comes last."""
    return _RANKS.get(level, len(_RANKS))


def _one_a_class(found: list[Hit]) -> tuple[Hit, ...]:
    """A line that shows one class in several ways is one event, of the way that is surest of it.

    Where all have conditions that other lines decide, each is tried; the line counts once all the same.
    """
    surest: dict[str, tuple[bool, bool]] = {}
    for hit in found:
        sure = (hit.only_echoes, hit.way.waits)
        surest[hit.way.rule.id] = min(sure, surest.get(hit.way.rule.id, sure))
    kept = [hit for hit in found if (hit.only_echoes, hit.way.waits) == surest[hit.way.rule.id]]
    return tuple(hit for hit in kept if hit.way.waits or hit is _first(kept, hit.way.rule.id))


def _first(found: list[Hit], rule_id: str) -> Hit:
    return next(hit for hit in found if hit.way.rule.id == rule_id)


def _applies(way: Way, record: LineRecord, level: str) -> bool:
    rule = way.rule
    if rule.programs and record.program and record.program not in rule.programs:
        return False
    if level and rule.level_at_least is not None and rank_of(level) > _rank(rule.level_at_least):
        return False
    if level and rule.level_at_most is not None and rank_of(level) < _rank(rule.level_at_most):
        return False
    return rule.statuses is None or rule.statuses[0] <= record.status <= rule.statuses[1]


def _rank(severity: Severity) -> int:
    return _RANKS[severity.value]


def _numbers(way: Way, record: LineRecord, seen: dict[str, dict[str, float]] | None = None) -> dict[str, float]:
    """The figures that the rule's patterns find, and a structured line's fields of the same names."""
    if not way.rule.numbers:
        return {}
    text = record.text
    seen = {} if seen is None else seen
    numbers: dict[str, float] = {}
    patterns = number_patterns(way.rule.numbers)
    for pattern, words in patterns:
        found = seen.get(pattern.pattern)
        if found is None:
            asked = not words or any(word in text for word in words)
            found = seen[pattern.pattern] = find_numbers((pattern,), text) if asked else {}
        # Of several patterns for one name the first that matches counts.
        numbers = {**found, **numbers} if found else numbers
    if record.fields:
        names = {name for pattern, _ in patterns for name in pattern.groupindex}
        numbers.update((name, value) for name, value in record.fields if name in names)
    return numbers


def _passes(gate: NumberGate | None, numbers: dict[str, float]) -> bool:
    if gate is None:
        return True
    value = numbers.get(gate.group)
    other = gate.at_least_group or gate.above_group
    bound = numbers.get(other) if other else 0.0
    if value is None or bound is None:
        return gate.counts_when_absent
    if other:
        return value >= bound if gate.at_least_group else value > bound
    return (gate.above is None or value > gate.above) and (gate.below is None or value < gate.below)
