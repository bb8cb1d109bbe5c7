"""Log rules and readings for tests, built from plain words."""

from __future__ import annotations

from dataclasses import replace

from latencydoctor.evidence.logs.blocks import RawLine, whole_lines
from latencydoctor.evidence.logs.compiled import RuleBook
from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.evidence.logs.told import Told
from latencydoctor.model.evidence import LogEvent, Severity, Window
from latencydoctor.model.rule import LogRule

REFERENCE_S = 1_796_100_000.0
START_S = 1_796_023_200.0
"""2026-11-30T07:20:00Z."""

_BARE = LogRule("", "", "stable", Severity.ERROR, (), (), (), None, "", (), "", ())


def rule(rule_id: str, *patterns: str, **changes: object) -> LogRule:
    """A rule for lines that any of the patterns matches; `changes` are fields of it."""
    # The fields have types of their own, which keywords of any name cannot tell.
    return replace(_BARE, id=rule_id, title=rule_id, patterns=patterns, **changes)  # type: ignore[arg-type]  # any field, by name


def at(seconds: float) -> str:
    """A stamp, so many seconds after `START_S`."""
    minutes, rest = divmod(seconds, 60)
    return f"2026-11-30T07:{20 + int(minutes):02d}:{rest:06.3f}Z"


def stamped(*lines: tuple[float, str]) -> str:
    """A log: each line at so many seconds."""
    return "".join(f"{at(seconds)} {text}\n" for seconds, text in lines)


def read(rules: list[LogRule], *texts: str, window: Window | None = None) -> tuple[LogEvent, ...]:
    """The pyramid of some files."""
    reader = LogReader(rules, window)
    for number, text in enumerate(texts):
        reader.read(f"{number}.log", whole_lines([text.encode()]), REFERENCE_S)
    return reader.events()


def counts(rules: list[LogRule], *texts: str) -> dict[str, int]:
    """The number of events by class."""
    return {one.rule: one.count for one in read(rules, *texts)}


def echoes(rules: list[LogRule], *texts: str) -> dict[str, tuple[int, int]]:
    """The number of events and of their echoes by class."""
    return {one.rule: (one.count, one.echoes) for one in read(rules, *texts)}


def told(one: LogRule, seconds: float | None, number: int = 1, text: str = "words", **changes: object) -> Told:
    """A telling of a rule's first way."""
    way = RuleBook([one]).first_way[one.id]
    time_s = None if seconds is None else START_S + seconds
    made = Told(time_s, number, way, text, text.encode())
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def raw_lines(text: str, chunk_bytes: int = 1 << 20) -> list[RawLine]:
    """Every line of a text as a candidate, read in chunks of that size."""
    data = text.encode()
    chunks = [data[place : place + chunk_bytes] for place in range(0, len(data), chunk_bytes)]
    everything = Scanner([], look_for=(r"\n",))
    return [line for block in whole_lines(chunks) for line in everything.candidates(block)]
