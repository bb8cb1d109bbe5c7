"""Finds the few lines of a log that any pattern could mean, in compiled code, before Python looks at a line.

A `Scanner` has two halves. An `Eye` runs one database of sieves (see `sieve`) over a piece of the raw bytes and may
work in a thread of its own; `which` says exactly which patterns match a message
after unwrapping.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence

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

_A_FEW = 4
"""More than one, as the coarse form may match where the pattern does not."""

_FEW = 24
"""So few patterns are asked one by one: the engine takes long to compile a handful together."""


class Scanner:
    """Finds candidate lines in blocks. Only `patterns` make a line a candidate; `also` are merely told apart.

    So do the heads of lines at ERROR and above, and what `look_for` names: patterns for raw bytes, as they are. Of
    those `patterns` that are `seldom` asked for (has it ever been seen?) and match everyday lines, the first few lines
    of a block are enough.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        also: Sequence[str] = (),
        engine: str = "",
        look_for: Sequence[str] = (*LOUD, *ALWAYS_LOOK),
        seldom: Container[str] = (),
    ) -> None:
        self._engine = engine
        self._sieves = [_sieve(index, pattern) for index, pattern in enumerate([*patterns, *also])]
        wanted = list(zip(patterns, self._sieves, strict=False))
        everyday = {one.form for pattern, one in wanted if pattern in seldom and not one.words}
        forms = dict.fromkeys(form for _pattern, one in wanted for form in _forms(one) if form not in everyday)
        self._forms = list(forms | dict.fromkeys(look_for))
        self._seldom = sorted(everyday)
        self._lines_in = LineCounter()
        self._eye: Eye | None = None
        self._which = _Which([*patterns, *also], self._sieves, engine)

    def prepare(self) -> None:
        """Compile what looking at the first block needs; otherwise that happens then."""
        if self._eye is None:
            forms = [[form] for form in self._seldom]
            if self._forms:
                forms.insert(0, self._forms)
            matchers = [match_blocks(one, self._engine) for one in forms]
            blocks = matchers.pop(0) if self._forms else None
            self._eye = Eye(blocks, matchers)
            self._which.prepare(blocks, self._forms)

    def eye(self) -> Eye:
        """One half of it for another thread: what looks at pieces."""
        self.prepare()
        assert self._eye is not None
        return self._eye.twin()

    def which(self, text: str) -> frozenset[int]:
        """The patterns that match a text; `also` patterns are numbered after the others."""
        self.prepare()
        return self._which(text.encode("utf-8", "replace"))

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
            number += self._lines_in(data, counted_to, start)
            counted_to = start
            line = data[start : min(line_end, start + MAX_LINE_BYTES)].rstrip(b"\r")
            yield RawLine(number, line, block, start, line_end)

    def _ends(self, data: bytes) -> list[int]:
        self.prepare()
        assert self._eye is not None
        return self._eye.ends(data)


class Eye:
    """Looks at pieces in one thread. Other threads run while it does.

    `blocks` finds all lines, each of `seldom` only the first few.
    """

    def __init__(self, blocks: BlockMatcher | None, seldom: Sequence[BlockMatcher]) -> None:
        self._blocks = blocks
        self._seldom = tuple(seldom)
        self._count = LineCounter()

    def twin(self) -> Eye:
        """Another one for the same patterns."""
        return Eye(self._blocks.twin() if self._blocks else None, [one.twin() for one in self._seldom])

    def ends(self, data: bytes) -> list[int]:
        """Where candidates are."""
        found = self._blocks.ends(data) if self._blocks else []
        more = [end for one in self._seldom for end in one.ends(data, _A_FEW)]
        return sorted([*found, *more]) if more else found

    def look(self, piece: Piece) -> Look:
        """Scan a piece: where candidates are, and how many lines it has."""
        return Look(self.ends(piece.data), self._count(piece.data))


class _Which:
    """Which patterns match a line: those whose sieve lets it pass are compiled, each when it first comes up.

    `blocks` knows the sieves in `forms` already.
    """

    def __init__(self, patterns: list[str], sieves: list[Sieve], engine: str) -> None:
        self._patterns = patterns
        self._sieves = sieves
        self._engine = engine
        self._parts: list[tuple[BlockMatcher, list[list[int]]]] = []
        self._exact: dict[int, LineMatcher] = {}

    def prepare(self, blocks: BlockMatcher | None, forms: Sequence[str]) -> None:
        """Make ready; `blocks` is a matcher of `forms`, which need not be compiled again."""
        meant: dict[str, list[int]] = {}
        for index, one in enumerate(self._sieves):
            for form in _forms(one):
                meant.setdefault(form, []).append(index)
        if blocks is not None:
            self._parts.append((blocks, [meant.pop(form, []) for form in forms]))
        if meant:
            self._parts.append((match_blocks(list(meant), self._engine), list(meant.values())))

    def __call__(self, line: bytes) -> frozenset[int]:
        return frozenset(index for index in self._possible(line) if self._is(index, line))

    def _possible(self, line: bytes) -> Iterable[int]:
        if len(self._patterns) <= _FEW:
            return range(len(self._patterns))
        found: set[int] = set()
        for matcher, meant in self._parts:
            for one in matcher.which(line):
                found.update(meant[one])
        return found

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
