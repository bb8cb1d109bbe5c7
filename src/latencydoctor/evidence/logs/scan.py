"""Finds the few lines of a log that any pattern could mean, in compiled code, before Python looks at a line.

`whole_lines` cuts a byte stream into blocks of complete lines with memory bounded by `CHUNK_BYTES` and
`MAX_LINE_BYTES`; a `Scanner` runs one database over a block and yields the candidate lines with the exact set of
patterns that match each. The engine is hyperscan where it has a wheel and RE2 elsewhere: neither backtracks, so a
pattern from a rule file cannot make a hostile log slow. Patterns are bytes, case-sensitive unless they start with
`(?i)`, and are judged one line at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from latencydoctor.errors import ContentError

_modules: dict[str, Any] = {}
try:
    import hyperscan
except ImportError:  # it has no wheel for every platform
    pass
else:
    _modules["hyperscan"] = hyperscan
try:
    import re2
except ImportError:  # installed only where hyperscan is not, and with the tests
    pass
else:
    _modules["re2"] = re2

CHUNK_BYTES = 1024 * 1024
"""How much a reader should hand over at a time; larger blocks gained nothing when tried."""

MAX_LINE_BYTES = 256 * 1024
"""The part of a line that is looked at; dumps of arguments and prompts reach 100 kB, the rest is cut off."""

LOOK_BACK_BYTES = 16 * 1024
"""How far before a line its record's first line is searched: tracebacks through a model run to about 10 kB."""


@dataclass(frozen=True, slots=True)
class Block:
    """Complete lines, the last one's newline included where there is one; `first_line` counts from 1.

    `before` is the end of what came earlier in the same stream, at most `LOOK_BACK_BYTES` of it.
    """

    data: bytes
    first_line: int
    before: bytes = b""


@dataclass(frozen=True, slots=True)
class RawLine:
    """A candidate line without its newline, its number in the file, and which patterns match it."""

    number: int
    data: bytes
    patterns: frozenset[int]
    block: Block
    start: int

    def lines_before(self) -> list[bytes]:
        """The lines before this one, nearest first, as far back as `LOOK_BACK_BYTES` reach; the first may be cut."""
        behind = self.block.data[max(0, self.start - LOOK_BACK_BYTES) : self.start]
        if len(behind) < LOOK_BACK_BYTES:
            behind = self.block.before[len(behind) - LOOK_BACK_BYTES :] + behind
        return behind.split(b"\n")[-2::-1]


class BlockMatcher(Protocol):
    """Finds the lines of a block that any of its patterns matches."""

    def ends(self, data: bytes) -> list[int]:
        """Offsets where matches end, ascending; at least one inside each line that matches."""
        ...


class LineMatcher(Protocol):
    """Says which of its patterns match one line."""

    def which(self, line: bytes) -> frozenset[int]:
        """The places of those patterns in the sequence that was compiled."""
        ...


class PatternError(ContentError):
    """A pattern that the engine refuses; `index` is its place in the sequence that was to be compiled."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"the pattern cannot be used: {reason}", hint="Patterns must suit hyperscan and RE2 alike.")
        self.index = index


class _HyperscanBlocks:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._database = module.Database(mode=module.HS_MODE_BLOCK)
        self._database.compile(expressions=list(patterns), flags=0)

    def ends(self, data: bytes) -> list[int]:
        found: list[int] = []
        last_line_end = -1

        def on_match(_id: int, _start: int, end: int, _flags: int, _context: object) -> None:
            # One end a line is enough, and a pattern may report thousands in a long one.
            nonlocal last_line_end
            if end > last_line_end:
                found.append(end)
                newline = data.find(b"\n", end - 1)
                last_line_end = len(data) if newline < 0 else newline + 1

        self._database.scan(data, match_event_handler=on_match)
        return found


class _HyperscanLines:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._database = module.Database(mode=module.HS_MODE_BLOCK)
        ids = list(range(len(patterns)))
        self._database.compile(expressions=list(patterns), ids=ids, elements=len(ids), flags=module.HS_FLAG_SINGLEMATCH)

    def which(self, line: bytes) -> frozenset[int]:
        found: set[int] = set()

        def on_match(index: int, _start: int, _end: int, _flags: int, _context: object) -> None:
            found.add(index)

        self._database.scan(line, match_event_handler=on_match)
        return frozenset(found)


def _re2_options(module: Any) -> Any:
    options = module.Options()
    # Bytes, whatever they are: as UTF-8, RE2 would refuse to look at the rest of a damaged line.
    options.encoding = module.Options.Encoding.LATIN1
    options.log_errors = False
    return options


class _Re2Blocks:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        either = b"|".join(b"(?:" + pattern + b")" for pattern in patterns)
        self._pattern = module.compile(either, _re2_options(module))

    def ends(self, data: bytes) -> list[int]:
        return [match.end() for match in self._pattern.finditer(data)]


class _Re2Lines:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._set = module.Set.SearchSet(_re2_options(module))
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()

    def which(self, line: bytes) -> frozenset[int]:
        # RE2 answers None, not an empty list, when nothing matches.
        return frozenset(self._set.Match(line) or ())


_Matcher = TypeVar("_Matcher")


def _compile(
    makers: dict[str, Callable[[Any, Sequence[bytes]], _Matcher]], patterns: Sequence[str], name: str
) -> _Matcher:
    """A matcher from the engine called `name`, else from the first one installed; `PatternError` when it refuses."""
    available = [one for one in makers if one in _modules and name in ("", one)]
    if not available:
        raise ContentError("no engine for log patterns is installed", hint="Install hyperscan or google-re2.")
    module, make = _modules[available[0]], makers[available[0]]
    encoded = [pattern.encode() for pattern in patterns]
    try:
        return make(module, encoded)
    except module.error as error:
        reason = str(error)
    # Engines say why, not which.
    for index, pattern in enumerate(encoded):
        try:
            make(module, [pattern])
        except module.error as error:
            raise PatternError(index, str(error)) from error
    raise PatternError(0, reason)


def match_blocks(patterns: Sequence[str], engine: str = "") -> BlockMatcher:
    """Compiles patterns for blocks; `PatternError` names the first that is refused."""
    makers: dict[str, Callable[[Any, Sequence[bytes]], BlockMatcher]]
    makers = {"hyperscan": _HyperscanBlocks, "re2": _Re2Blocks}
    return _compile(makers, patterns, engine)


def match_lines(patterns: Sequence[str], engine: str = "") -> LineMatcher:
    """Compiles patterns for single lines; `PatternError` names the first that is refused."""
    makers: dict[str, Callable[[Any, Sequence[bytes]], LineMatcher]]
    makers = {"hyperscan": _HyperscanLines, "re2": _Re2Lines}
    return _compile(makers, patterns, engine)


class Scanner:
    """Finds candidate lines in blocks. Only `patterns` make a line a candidate; `also` are merely reported on it."""

    def __init__(self, patterns: Sequence[str], also: Sequence[str] = (), engine: str = "") -> None:
        self._wanted = match_blocks(patterns, engine) if patterns else None
        self._all = match_lines([*patterns, *also], engine) if patterns else None
        self._wanted_count = len(patterns)

    def which(self, text: str) -> frozenset[int]:
        """The patterns that match a text; `also` patterns are numbered after the others."""
        return self._all.which(text.encode("utf-8", "replace")) if self._all else frozenset()

    def candidates(self, block: Block) -> Iterator[RawLine]:
        """The lines of a block that match, in order."""
        data = block.data
        line_end = -1
        number = block.first_line
        counted_to = 0
        for end in self._wanted.ends(data) if self._wanted else ():
            if end <= line_end:
                continue
            # A match that ends with a newline belongs to the line which that newline ends.
            start = data.rfind(b"\n", 0, max(end - 1, 0)) + 1
            newline = data.find(b"\n", max(end - 1, 0))
            line_end = len(data) if newline < 0 else newline
            number += data.count(b"\n", counted_to, start)
            counted_to = start
            line = data[start:line_end].rstrip(b"\r")
            patterns = self._all.which(line) if self._all else frozenset()
            # A pattern may have matched only across a line break; alone, the line means nothing then.
            if any(index < self._wanted_count for index in patterns):
                yield RawLine(number, line, patterns, block, start)


def whole_lines(chunks: Iterable[bytes]) -> Iterator[Block]:
    """Cuts a stream into blocks of whole lines. What of a line exceeds `MAX_LINE_BYTES` is left out."""
    pending = before = b""
    overlong = False
    number = 1
    for chunk in chunks:
        data = pending + chunk
        if overlong:
            # The head of this line went out already, or is still pending: drop everything up to its newline.
            newline = chunk.find(b"\n")
            if newline < 0:
                continue
            data, overlong = pending + chunk[newline:], False
        cut = data.rfind(b"\n") + 1
        if cut:
            yield Block(data[:cut], number, before)
            before = (before + data[max(0, cut - LOOK_BACK_BYTES) : cut])[-LOOK_BACK_BYTES:]
            number += data.count(b"\n", 0, cut)
        pending = data[cut:]
        if len(pending) > MAX_LINE_BYTES:
            pending, overlong = pending[:MAX_LINE_BYTES], True
    if pending:
        yield Block(pending, number, before)
