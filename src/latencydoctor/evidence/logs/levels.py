"""Levels of lines as they stand in the bytes of a file, under whatever wrappers, and how many lines have each.

A line's level is the first level word or letter near its beginning; one behind a JSON key says more than one in a
text, one behind a relay's mark more than the relay's own (TorchServe prints its workers' lines at INFO or WARN,
whatever they say), and journald's priority counts only where nothing else does.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from latencydoctor.evidence.logs.engine import TOKEN_KINDS, match_tokens

LEVELS = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")
NONE = "none"
"""What lines without a level are counted as: continuations, tables, SGLang's, the kernel's."""

_QUOTE = r'\\*"'
_KEY = rf"(?:level|severity|levelname|lvl){_QUOTE} ?: ?{_QUOTE}"
_STAMP = r"(?:0[1-9]|1[0-3])[0-3][0-9] [0-2][0-9]:[0-5][0-9]:"
_WORDS = {
    "CRITICAL": "CRITICAL|FATAL|EMERG|ALERT|PANIC",
    "ERROR": "ERROR|SEVERE",
    "WARNING": "WARN|WARNING",
    "INFO": "INFO|NOTICE",
    "DEBUG": "DEBUG|TRACE",
}
_LETTERS = {"CRITICAL": "FC", "ERROR": "E", "WARNING": "W", "INFO": "I", "DEBUG": "DV"}
_NAMES = {
    "CRITICAL": "crit|critical|d?panic|fatal|alert|emerg|emergency",
    "ERROR": "err|error",
    "WARNING": "warn|warning",
    "INFO": "info|notice",
    "DEBUG": "debug|trace",
}
_PRIORITIES = {"CRITICAL": "0-2", "ERROR": "3", "WARNING": "4", "INFO": "56", "DEBUG": "7"}
_REDIS = {"WARNING": "#", "INFO": r"\*", "DEBUG": r"[.\-]"}


def _letter_heads(letters: str) -> tuple[str, ...]:
    one = f"[{letters}]" if len(letters) > 1 else letters
    return (
        rf"\b{one}{_STAMP}",
        rf"[0-9]Z {one} [0-9]",
        rf"\[{one}:onnxruntime:",
        rf"\[TRT\] \[{one}\]",
        rf"\[{one}\] \[TRT\]",
        rf"[0-9]{{6}}: {one} [a-z]",
        rf",[0-9]{{3}} {one} [0-9]+ [0-9]+\] \(",
        rf"\[{one} ProcessGroup",
    )


def _heads(level: str) -> tuple[str, ...]:
    return (rf"\b(?:{_WORDS[level]})\b", *_letter_heads(_LETTERS[level]), rf"\[(?:{_NAMES[level]})\] [0-9]+#")


def _keyed(level: str) -> tuple[str, ...]:
    return (rf"{_KEY}(?i:{_NAMES[level]}){_QUOTE}", rf"\blevel=(?i:{_NAMES[level]})\b")


def _priority(level: str) -> str:
    return rf"PRIORITY{_QUOTE} ?: ?{_QUOTE}[{_PRIORITIES[level]}]{_QUOTE}"


def words_of(level: str) -> str:
    """The words of a level, as alternatives."""
    return _WORDS[level]


def pattern_of(level: str) -> str:
    """One pattern for what makes a line of that level, in all formats."""
    return "|".join(f"(?:{pattern})" for pattern in (*_heads(level), *_keyed(level), _priority(level)))


LOUD = tuple(
    pattern for level in ("CRITICAL", "ERROR") for pattern in (*_heads(level), *_keyed(level), _priority(level))
)
"""Heads of lines at ERROR and above: such lines are looked at even when no rule knows them."""

_RELAYED = (r"MODEL_LOG - ", r"\[resource\.labels\.containerName: ")
_RELAY = len(LEVELS)
_FIRST, _SECOND, _LAST = 0, 1, 2
_KIND_BITS = TOKEN_KINDS.bit_length() - 1
_HEAD_BYTES = 512
"""How far into a line its head reaches: wrappers nest, and thread names are long."""


@dataclass(frozen=True, slots=True)
class _Kind:
    pattern: str
    level: int
    rank: int


def _kinds() -> tuple[_Kind, ...]:
    found = [_Kind(pattern, _RELAY, _FIRST) for pattern in _RELAYED]
    for number, level in enumerate(LEVELS):
        found += [_Kind(pattern, number, _SECOND) for pattern in _heads(level)]
        found += [_Kind(pattern, number, _FIRST) for pattern in _keyed(level)]
        found.append(_Kind(_priority(level), number, _LAST))
        if level in _REDIS:
            found.append(_Kind(rf"[0-9]:[0-9][0-9]\.[0-9][0-9][0-9] {_REDIS[level]} ", number, _SECOND))
    return tuple(found)


@dataclass(slots=True)
class LevelCounts:
    """How many lines have which level, by name, in the order of `LEVELS`; without one is `none`."""

    lines: int = 0
    levels: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LEVELS, 0))

    def add(self, other: LevelCounts) -> None:
        """Add another count."""
        self.lines += other.lines
        for level, count in other.levels.items():
            self.levels[level] += count

    def histogram(self) -> Mapping[str, int]:
        """All levels and `none`, worst first."""
        return {**self.levels, NONE: self.lines - sum(self.levels.values())}


class LevelCounter:
    """Counts the levels of all lines of blocks. Blocks may come in any order."""

    def __init__(self, engine: str = "") -> None:
        kinds = _kinds()
        self._matcher = match_tokens([kind.pattern for kind in kinds], engine)
        self._numpy: Any = importlib.import_module("numpy")
        self._levels = self._numpy.array([kind.level for kind in kinds], dtype=self._numpy.int64)
        self._ranks = self._numpy.array([kind.rank for kind in kinds], dtype=self._numpy.int64)

    def count(self, data: bytes) -> LevelCounts:
        """The levels of complete lines; a last one may lack its newline."""
        numpy = self._numpy
        newlines = numpy.flatnonzero(numpy.frombuffer(data, dtype=numpy.uint8) == 10)
        lines = len(newlines) + (not data.endswith(b"\n") and bool(data))
        found = LevelCounts(lines)
        tokens = numpy.frombuffer(self._matcher.tokens(data), dtype=numpy.int64)
        if not len(tokens):
            return found
        ends, kinds = tokens >> _KIND_BITS, tokens & (TOKEN_KINDS - 1)
        line = numpy.searchsorted(newlines, ends - 1)
        starts = numpy.concatenate(([0], newlines + 1))[line]
        level, rank = self._levels[kinds], self._ranks[kinds]
        near = (ends - starts <= _HEAD_BYTES) | (rank == _FIRST)
        if (level == _RELAY).any():
            rank = self._behind_relays(line, level, rank)
            near &= level != _RELAY
        level, rank, line = level[near], rank[near], line[near]
        if (rank != _SECOND).any():
            order = numpy.argsort(line * 4 + rank, kind="stable")
            level, line = level[order], line[order]
        first = numpy.ones(len(line), dtype=bool)
        first[1:] = line[1:] != line[:-1]
        counts = numpy.bincount(level[first], minlength=len(LEVELS))
        found.levels = {name: int(count) for name, count in zip(LEVELS, counts, strict=True)}
        return found

    def _behind_relays(self, line: Any, level: Any, rank: Any) -> Any:
        """Ranks in which what a relay passes on comes before the relay's own level."""
        numpy = self._numpy
        relays = numpy.flatnonzero(level == _RELAY)
        # The last relay's mark at or before each token; on the same line, the token is what it passes on.
        place = numpy.searchsorted(relays, numpy.arange(len(level)), side="right") - 1
        behind = (place >= 0) & (line[relays[numpy.maximum(place, 0)]] == line)
        return numpy.where(behind, _FIRST, rank)
