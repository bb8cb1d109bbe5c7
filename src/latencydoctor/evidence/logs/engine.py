"""The engines that find patterns in bytes: hyperscan where it has a wheel, RE2 elsewhere.

Neither backtracks, so a pattern from a rule file cannot make a hostile log slow, and both let other threads run while
they look. Patterns are bytes, case-sensitive unless they start with `(?i)`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from copy import copy
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


TOKEN_KINDS = 256
"""Of how many patterns a `TokenMatcher` may be."""


class BlockMatcher(Protocol):
    """Finds the lines of a block that any of its patterns matches. One serves one thread at a time."""

    def ends(self, data: bytes, most: int | None = None) -> list[int]:
        """Offsets where matches end, ascending; at least one inside each line that matches, or each of the first."""
        ...

    def which(self, line: bytes) -> Collection[int]:
        """The places of the patterns that match one line, in the sequence that was compiled."""
        ...

    def twin(self) -> BlockMatcher:
        """Another one for the same patterns, for another thread."""
        ...


class LineMatcher(Protocol):
    """Says which of its patterns match one line."""

    def which(self, line: bytes) -> frozenset[int]:
        """The places of those patterns in the sequence that was compiled."""
        ...


class TokenMatcher(Protocol):
    """Finds every place where one of its patterns matches."""

    def tokens(self, data: bytes) -> array[int]:
        """`end * TOKEN_KINDS + index of the pattern` of each, ends ascending, as 64-bit integers."""
        ...


class PatternError(ContentError):
    """A pattern that the engine refuses; `index` is its place in the sequence that was to be compiled."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"the pattern cannot be used: {reason}", hint="Patterns must suit hyperscan and RE2 alike.")
        self.index = index


class _HyperscanBlocks:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._module = module
        self._database = module.Database(mode=module.HS_MODE_BLOCK)
        ids = list(range(len(patterns)))
        self._database.compile(expressions=list(patterns), ids=ids, elements=len(ids), flags=0)
        self._scratch = None

    def which(self, line: bytes) -> Collection[int]:
        found: set[int] = set()

        def on_match(index: int, _start: int, _end: int, _flags: int, _context: object) -> None:
            found.add(index)

        self._database.scan(line, match_event_handler=on_match, scratch=self._scratch)
        return found

    def twin(self) -> _HyperscanBlocks:
        # The compiled patterns may be shared; what a scan scribbles on may not.
        other = copy(self)
        other._scratch = self._module.Scratch(self._database)
        return other

    def ends(self, data: bytes, most: int | None = None) -> list[int]:
        found: list[int] = []
        line_end = -1
        find, size = data.find, len(data)

        def on_match(_id: int, _start: int, end: int, _flags: int, _context: object) -> bool | None:
            # One end a line is enough, and a pattern may report thousands in a long one.
            nonlocal line_end
            if end > line_end:
                found.append(end)
                newline = find(b"\n", end - 1)
                line_end = size if newline < 0 else newline + 1
                return len(found) == most
            return None

        # Which is how it tells that it was stopped.
        with suppress(self._module.ScanTerminated):
            self._database.scan(data, match_event_handler=on_match, scratch=self._scratch)
        return found


class _HyperscanTokens:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._database = module.Database(mode=module.HS_MODE_BLOCK)
        ids = list(range(len(patterns)))
        self._database.compile(expressions=list(patterns), ids=ids, elements=len(ids), flags=0)

    def tokens(self, data: bytes) -> array[int]:
        found = array("q")
        append = found.append

        def on_match(index: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append(end * TOKEN_KINDS + index)

        self._database.scan(data, match_event_handler=on_match)
        return found


class _HyperscanLines:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._database = module.Database(mode=module.HS_MODE_BLOCK)
        ids = list(range(len(patterns)))
        # Telling each match only once makes many patterns together take ten times as long to compile.
        flags = module.HS_FLAG_SINGLEMATCH if len(ids) == 1 else 0
        self._database.compile(expressions=list(patterns), ids=ids, elements=len(ids), flags=flags)

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
    options.max_mem = 256 * 1024 * 1024
    return options


class _Re2Blocks:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        either = b"|".join(b"(?:" + pattern + b")" for pattern in patterns)
        self._pattern = module.compile(either, _re2_options(module))
        self._lines = _Re2Lines(module, patterns)

    def which(self, line: bytes) -> Collection[int]:
        return self._lines.which(line)

    def twin(self) -> _Re2Blocks:
        return self

    def ends(self, data: bytes, most: int | None = None) -> list[int]:
        found: list[int] = []
        place, search = 0, self._pattern.search
        while len(found) != most and (match := search(data, place)) is not None:
            found.append(match.end())
            newline = data.find(b"\n", max(match.end() - 1, place))
            if newline < 0:
                break
            place = newline + 1
        return found


class _Re2Tokens:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        either = b"|".join(b"(" + pattern + b")" for pattern in patterns)
        self._pattern = module.compile(either, _re2_options(module))

    def tokens(self, data: bytes) -> array[int]:
        found = self._pattern.finditer(data)
        return array("q", (match.end() * TOKEN_KINDS + match.lastindex - 1 for match in found))


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


def match_tokens(patterns: Sequence[str], engine: str = "") -> TokenMatcher:
    """Compiles patterns, at most `TOKEN_KINDS` and without groups, to find all their places."""
    makers: dict[str, Callable[[Any, Sequence[bytes]], TokenMatcher]]
    makers = {"hyperscan": _HyperscanTokens, "re2": _Re2Tokens}
    return _compile(makers, patterns, engine)
