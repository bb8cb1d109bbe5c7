"""Finds the few lines of a log that any pattern could mean, in compiled code, before Python looks at a line.

A `Scanner` runs one database of sieves (see `sieve`) over the raw bytes; `which` says exactly which patterns match a
message after unwrapping.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Iterator, Sequence
from typing import Protocol

from latencydoctor.evidence.logs.blocks import MAX_LINE_BYTES, Block, LineCounter, Look, RawLine, last_state
from latencydoctor.evidence.logs.engine import (
    BlockMatcher,
    LineMatcher,
    PatternError,
    blocks_from,
    blocks_version,
    match_blocks,
    match_lines,
)
from latencydoctor.evidence.logs.levels import LOUD
from latencydoctor.evidence.logs.lines import ALWAYS_LOOK
from latencydoctor.evidence.logs.sieve import Sieve, Word, sieve

_A_FEW = 4
"""More than one, as the coarse form may match where the pattern does not."""


class CompiledStore(Protocol):
    """Keeps what took long to compile until the next start."""

    def load(self, key: str) -> Sequence[bytes] | None:
        """What was saved under that key, None where nothing was."""
        ...

    def save(self, key: str, parts: Sequence[bytes]) -> None:
        """Keep it, if that can be done."""
        ...


class Scanner:
    """Finds candidate lines in blocks. Only `patterns` make a line a candidate; `also` are merely told apart.

    So do the heads of lines at ERROR and above, and what `look_for` names: patterns for raw bytes, as they are. Of
    those `patterns` that are `seldom` asked for (has it ever been seen?) and match everyday lines, the first few lines
    of a block are enough. With a `store` the same patterns are compiled only once.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        also: Sequence[str] = (),
        engine: str = "",
        look_for: Sequence[str] = (*LOUD, *ALWAYS_LOOK),
        seldom: Container[str] = (),
        store: CompiledStore | None = None,
    ) -> None:
        self._engine = engine
        self._told_apart = [*patterns, *also]
        self._lines_in = LineCounter()
        self._which: LineMatcher | None = None
        self._store = store
        self._key = _key([*patterns, *also], look_for, [one for one in patterns if one in seldom], engine)
        self._matchers = _kept(store, self._key, engine)
        self._sets: list[list[str]] = []
        if self._matchers is None:
            self._sets = _sets(patterns, self._told_apart, look_for, seldom)

    def prepare(self) -> None:
        """Compile what looking at the first block needs; otherwise that happens then."""
        if self._matchers is None:
            self._matchers = [match_blocks(one, self._engine) for one in self._sets]
            parts = [one.packed() for one in self._matchers]
            if self._store is not None and all(parts):
                self._store.save(self._key, parts)
        if self._which is None and self._told_apart:
            self._which = match_lines(self._told_apart, self._engine)

    def which(self, text: str) -> frozenset[int]:
        """The patterns that match a text; `also` patterns are numbered after the others."""
        if self._which is None:
            self.prepare()
        return self._which.which(text.encode("utf-8", "replace")) if self._which is not None else frozenset()

    def candidates(self, block: Block) -> Iterator[RawLine]:
        """The lines of a block that may match, in order."""
        data = block.data
        line_end = -1
        look = block.look or self._where(data)
        for end, line in zip(look.ends, look.lines, strict=True):
            if end <= line_end:
                continue
            start = data.rfind(b"\n", 0, end - 1) + 1
            newline = data.find(b"\n", end - 1)
            line_end = len(data) if newline < 0 else newline
            if end - start > MAX_LINE_BYTES:
                start = last_state(data, end - 1)
                if start < 0:
                    continue
            shown = data[start : min(line_end, start + MAX_LINE_BYTES)].rstrip(b"\r")
            yield RawLine(block.first_line + line, shown, block, start, line_end)

    def look(self, data: bytes) -> Look:
        """Scan a piece beforehand: where candidates are, in which lines, and how many lines it has."""
        seen = self._where(data)
        last = seen.ends[-1] - 1 if seen.ends else 0
        rest = self._lines_in(data, last, len(data))
        return Look(seen.ends, seen.lines, (seen.lines[-1] if seen.lines else 0) + rest)

    def _where(self, data: bytes) -> Look:
        """The same without the lines behind the last candidate."""
        if self._matchers is None:
            self.prepare()
        ends = self._ends(data)
        lines: list[int] = []
        line = counted_to = 0
        for end in ends:
            line += self._lines_in(data, counted_to, end - 1)
            counted_to = end - 1
            lines.append(line)
        return Look(ends, lines, line)

    def _ends(self, data: bytes) -> list[int]:
        """Where candidates are: all that the first matcher finds, of those that are seldom asked for only a few."""
        assert self._matchers is not None
        found = [end for one in self._matchers[1:] for end in one.ends(data, _A_FEW)]
        ends = self._matchers[0].ends(data)
        return sorted([*ends, *found]) if found else ends


def _sets(
    patterns: Sequence[str], told_apart: Sequence[str], look_for: Sequence[str], seldom: Container[str]
) -> list[list[str]]:
    """What to look for in raw bytes: everything at once, then each form of which a few places are enough."""
    sieves = [_sieve(index, pattern) for index, pattern in enumerate(told_apart)]
    wanted = list(zip(patterns, sieves, strict=False))
    everyday = {one.form for pattern, one in wanted if pattern in seldom and not one.words}
    forms = dict.fromkeys(form for _pattern, one in wanted for form in _forms(one) if form not in everyday)
    return [list(forms | dict.fromkeys(look_for)), *([form] for form in sorted(everyday))]


def _key(patterns: Sequence[str], look_for: Sequence[str], seldom: Sequence[str], engine: str) -> str:
    """Names exactly what is compiled, and with what."""
    text = json.dumps([patterns, look_for, seldom, blocks_version(engine)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _kept(store: CompiledStore | None, key: str, engine: str) -> list[BlockMatcher] | None:
    """The matchers that an earlier start compiled, None where there are none or this machine cannot use them."""
    parts = store.load(key) if store is not None else None
    if not parts:
        return None
    found = [blocks_from(part, engine) for part in parts]
    usable = [one for one in found if one is not None]
    return usable if len(usable) == len(found) else None


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
