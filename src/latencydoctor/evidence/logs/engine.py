"""The engines that find patterns in bytes: hyperscan where it has a wheel, RE2 elsewhere.

Neither backtracks, so a pattern from a rule file cannot make a hostile log slow, and both let other threads run while
they look. Patterns are bytes, case-sensitive unless they start with `(?i)`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
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
    """Finds the lines of a block that any of its patterns matches, one block at a time."""

    def ends(self, data: bytes, most: int | None = None) -> list[int]:
        """Offsets where matches end, ascending; at least one inside each line that matches, or each of the first."""
        ...

    def packed(self) -> bytes:
        """It as bytes for `blocks_from`, empty where compiling is quicker than reading."""
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


class _NoBlocks:
    """What finds nothing, as engines refuse to be of no pattern."""

    def packed(self) -> bytes:
        return b""

    def ends(self, data: bytes, most: int | None = None) -> list[int]:  # noqa: ARG002 - the protocol's
        return []


class _HyperscanBlocks:
    def __init__(self, module: Any, database: Any) -> None:
        self._module = module
        self._database = database

    def packed(self) -> bytes:
        return bytes(self._module.dumpb(self._database))

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
            self._database.scan(data, match_event_handler=on_match)
        return found


def _hyperscan_database(module: Any, patterns: Sequence[bytes]) -> Any:
    database = module.Database(mode=module.HS_MODE_BLOCK)
    ids = list(range(len(patterns)))
    # Not so that each match is told only once: many patterns together would take ten times as long to compile.
    database.compile(expressions=list(patterns), ids=ids, elements=len(ids), flags=0)
    return database


def _hyperscan_blocks(module: Any, patterns: Sequence[bytes]) -> _HyperscanBlocks:
    return _HyperscanBlocks(module, _hyperscan_database(module, patterns))


class _HyperscanTokens:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._database = _hyperscan_database(module, patterns)

    def tokens(self, data: bytes) -> array[int]:
        found = array("q")
        append = found.append

        def on_match(index: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append(end * TOKEN_KINDS + index)

        self._database.scan(data, match_event_handler=on_match)
        return found


class _HyperscanLines:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._database = _hyperscan_database(module, patterns)

    def which(self, line: bytes) -> frozenset[int]:
        found: set[int] = set()

        def on_match(index: int, _start: int, _end: int, _flags: int, _context: object) -> None:
            found.add(index)

        self._database.scan(line, match_event_handler=on_match)
        return frozenset(found)


_RE2_SEARCH_BYTES = 256 * 1024 * 1024
_RE2_SET_BYTES = 64 * 1024 * 1024
"""What RE2 may remember of where it has been; it forgets and goes on when that is full."""


def _re2_options(module: Any, most_bytes: int) -> Any:
    options = module.Options()
    # Bytes, whatever they are: as UTF-8, RE2 would refuse to look at the rest of a damaged line.
    options.encoding = module.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = most_bytes
    return options


class _Re2Blocks:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        either = b"|".join(b"(?:" + pattern + b")" for pattern in patterns)
        self._pattern = module.compile(either, _re2_options(module, _RE2_SEARCH_BYTES))

    def packed(self) -> bytes:
        return b""

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
        self._pattern = module.compile(either, _re2_options(module, _RE2_SEARCH_BYTES))

    def tokens(self, data: bytes) -> array[int]:
        found = self._pattern.finditer(data)
        return array("q", (match.end() * TOKEN_KINDS + match.lastindex - 1 for match in found))


class _Re2Lines:
    def __init__(self, module: Any, patterns: Sequence[bytes]) -> None:
        self._set = module.Set.SearchSet(_re2_options(module, _RE2_SET_BYTES))
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


_BLOCKS: dict[str, Callable[[Any, Sequence[bytes]], BlockMatcher]] = {"hyperscan": _hyperscan_blocks, "re2": _Re2Blocks}


def match_blocks(patterns: Sequence[str], engine: str = "") -> BlockMatcher:
    """Compiles patterns for blocks; `PatternError` names the first that is refused."""
    return _compile(_BLOCKS, patterns, engine) if patterns else _NoBlocks()


def blocks_version(engine: str = "") -> str:
    """The engine that `match_blocks` takes, with its version."""
    name = next((one for one in _BLOCKS if one in _modules and engine in ("", one)), "")
    return f"{name} {getattr(_modules.get(name), '__version__', '')}"


def blocks_from(packed: bytes, engine: str = "") -> BlockMatcher | None:
    """A matcher that was `packed`; None where this engine, or this machine's processor, cannot use it."""
    module = _modules.get("hyperscan")
    if module is None or engine not in ("", "hyperscan"):
        return None
    try:
        database = module.loadb(packed, module.HS_MODE_BLOCK)
        database.scratch = module.Scratch(database)
    except module.error:
        return None
    return _HyperscanBlocks(module, database)


def match_lines(patterns: Sequence[str], engine: str = "") -> LineMatcher:
    """Compiles patterns for single lines; `PatternError` names the first that is refused."""
    makers: dict[str, Callable[[Any, Sequence[bytes]], LineMatcher]]
    # Of some hundred patterns at once RE2 is ready in a tenth of the time, and quicker on one line.
    makers = {"re2": _Re2Lines, "hyperscan": _HyperscanLines}
    return _compile(makers, patterns, engine)


def refuse(patterns: Sequence[str]) -> None:
    """`PatternError` for the first pattern that one of the engines installed here refuses."""
    for engine in _modules:
        match_lines(patterns, engine)


def match_tokens(patterns: Sequence[str], engine: str = "") -> TokenMatcher:
    """Compiles patterns, at most `TOKEN_KINDS` and without groups, to find all their places."""
    makers: dict[str, Callable[[Any, Sequence[bytes]], TokenMatcher]]
    makers = {"hyperscan": _HyperscanTokens, "re2": _Re2Tokens}
    return _compile(makers, patterns, engine)
