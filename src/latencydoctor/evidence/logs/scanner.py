"""Finds the few lines of a log that any pattern could mean, in compiled code, before Python looks at a line.

A `Scanner` has two halves. `look` runs one database of sieves (see `sieve`) over a piece of the raw bytes and may
run in several threads, each with a scanner of its own from `twin`; `which` says exactly which patterns match a message
after unwrapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from latencydoctor.evidence.logs.blocks import MAX_LINE_BYTES, Block, LineCounter, Look, Piece, RawLine
from latencydoctor.evidence.logs.engine import (
    BlockMatcher,
    LineMatcher,
    PatternError,
    match_blocks,
    match_lines,
)
from latencydoctor.evidence.logs.levels import LOUD
from latencydoctor.evidence.logs.lines import ALWAYS_LOOK
from latencydoctor.evidence.logs.sieve import Sieve, Word, sieve


class Scanner:
    """Finds candidate lines in blocks. Only `patterns` make a line a candidate; `also` are merely told apart.

    So do the heads of lines at ERROR and above, and what `look_for` names: patterns for raw bytes, as they are.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        also: Sequence[str] = (),
        engine: str = "",
        look_for: Sequence[str] = (*LOUD, *ALWAYS_LOOK),
    ) -> None:
        self._engine = engine
        self._sieves = [_sieve(index, pattern) for index, pattern in enumerate([*patterns, *also])]
        wanted = [form for one in self._sieves[: len(patterns)] for form in _forms(one)]
        self._forms = list(dict.fromkeys([*wanted, *look_for]))
        self._blocks: BlockMatcher | None = None
        self._which = _Which([*patterns, *also], self._sieves, engine)
        self._count = LineCounter()

    def prepare(self) -> None:
        """Compile what looking at the first block needs; otherwise that happens then."""
        if self._blocks is None and self._forms:
            self._blocks = match_blocks(self._forms, self._engine)

    def which(self, text: str) -> frozenset[int]:
        """The patterns that match a text; `also` patterns are numbered after the others."""
        return self._which(text.encode("utf-8", "replace"))

    def look(self, piece: Piece) -> Look:
        """Scan a piece: where candidates are, and how many lines it has."""
        return Look(self._ends(piece.data), self._count(piece.data))

    def candidates(self, block: Block) -> Iterator[RawLine]:
        """The lines of a block that may match, in order."""
        data = block.data
        line_end = -1
        number = block.first_line
        counted_to = 0
        for end in self._ends(data) if block.ends is None else block.ends:
            if end <= line_end:
                continue
            start = data.rfind(b"\n", 0, end - 1) + 1
            newline = data.find(b"\n", end - 1)
            line_end = len(data) if newline < 0 else newline
            if end - start > MAX_LINE_BYTES:
                continue
            number += data.count(b"\n", counted_to, start)
            counted_to = start
            line = data[start : min(line_end, start + MAX_LINE_BYTES)].rstrip(b"\r")
            yield RawLine(number, line, block, start, line_end)

    def _ends(self, data: bytes) -> list[int]:
        self.prepare()
        return self._blocks.ends(data) if self._blocks else []


class _Which:
    """Which patterns match a line: those whose sieve lets it pass are compiled, each when it first comes up."""

    def __init__(self, patterns: list[str], sieves: list[Sieve], engine: str) -> None:
        self._patterns = patterns
        self._sieves = sieves
        self._engine = engine
        self._meant: list[list[int]] = []
        self._could: LineMatcher | None = None
        self._exact: dict[int, LineMatcher] = {}

    def __call__(self, line: bytes) -> frozenset[int]:
        if not self._patterns:
            return frozenset()
        if self._could is None:
            forms: dict[str, list[int]] = {}
            for index, one in enumerate(self._sieves):
                for form in _forms(one):
                    forms.setdefault(form, []).append(index)
            self._meant = list(forms.values())
            self._could = match_lines(list(forms), self._engine)
        passed = self._could.which(line)
        if not passed:
            return passed
        return frozenset(
            index for index in {index for one in passed for index in self._meant[one]} if self._is(index, line)
        )

    def _is(self, index: int, line: bytes) -> bool:
        text = self._sieves[index].exact
        if text:
            return text.encode() in line
        matcher = self._exact.get(index)
        if matcher is None:
            matcher = self._exact[index] = match_lines([self._patterns[index]], self._engine)
        return bool(matcher.which(line))


def _sieve(index: int, pattern: str) -> Sieve:
    try:
        return sieve(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(index, str(error)) from error


def _forms(one: Sieve) -> list[str]:
    return [_written(word) for word in one.words] or [one.form]


def _written(word: Word) -> str:
    escaped = re.escape(word.text)
    return f"(?i){escaped}" if word.caseless else escaped
