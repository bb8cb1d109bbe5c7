"""Coarser forms of patterns that compiled code finds quickly in the raw bytes of a log.

A rule's pattern is judged on a message after unwrapping. The bytes of a file may hold that message escaped (Docker's
and journald's JSON, a ticket's HTML), and hundreds of patterns together are slow while hundreds of plain words are
not. So each pattern gives a `Sieve`: words of which one stands in every line that the pattern could match, or, where
all such words are common in healthy logs, the pattern itself without what makes it slow. What passes is judged again.

The forms are derived from Python's own parse of the pattern.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from latencydoctor.evidence.logs.coarse import coarse_form, refuse

_parser: Any = importlib.import_module("re._parser")

_MOST_SPELLINGS = 16
"""Of how many spellings a word may be before it is cut: each is looked for by itself."""

_LONGEST = 48
_SHORTEST_END = 14
_ENOUGH = 12.0
"""Two points a letter outside the common words: six letters of its own make a word rare enough."""

_COMMON_WORDS = re.compile(
    r"(?<![A-Za-z])(?:requests?|models?|batch(?:es)?|queue[ds]?|tokens?|reqs?|usage|info|warn(?:ing)?|error|failed|times?|timeout|https?"
    r"|post|get|infer(?:ence)?|servers?|workers?|cache|gpu|cuda|memory|prompts?|generation|throughput|running|waiting"
    r"|prefix|hit|rate|engine|health|metrics?|load(?:ed|ing)?|start(?:ed|ing)?|read[ys]?|connection|process(?:ed|ing)?"
    r"|input|output|using|default|config(?:uration)?|size|message|status|response|client|instance|for|the|not|was|with|from|out|of|to|is|in|at|be|an?)(?![A-Za-z])",
    re.IGNORECASE,
)
_PAIRS = (
    "thheineranreonatenndtiesorteedisitalarstntngsehaasouiolevecomedehiriroicneearalichllbemasiomurue"
    "queqkemoodeltookbatccaacrvworkadfousaggetrprcelalodissecctunemutotpenc"
)
_COMMON_PAIRS = frozenset(_PAIRS[place : place + 2] for place in range(0, len(_PAIRS), 2))
_ESCAPED = frozenset("\"'<>&\\`")
"""What a wrapper may write differently; a backslash and everything that is no printable ASCII as well."""


class Word(NamedTuple):
    """A text to look for; `caseless` in any case."""

    text: str
    caseless: bool = False


@dataclass(frozen=True, slots=True)
class Sieve:
    """Either `words`, one of which a matching line holds, or `form`, a coarser pattern. `exact` says no more is asked.

    `exact` is the text that the whole pattern stands for, where it stands for just one, else empty.
    """

    words: tuple[Word, ...]
    form: str = ""
    exact: str = ""


def sieve(pattern: str) -> Sieve:
    """The sieve of a pattern. Raises `re.error` for one that is no regular expression or not of the linear kind."""
    tree = _parser.parse(pattern)
    caseless = bool(tree.state.flags & re.IGNORECASE)
    refuse(tree)
    spellings, found = _of_sequence(tree, caseless)
    if spellings is not None:
        found = [spellings, *found]
    usable = [words for words in found if all(len(word.text) > 1 for word in words)]
    if not usable:
        return Sieve((), coarse_form(tree, caseless))
    best = max(usable, key=_rarity)
    whole = best is spellings
    if not whole and _rarity(best) < _ENOUGH:
        return Sieve((), coarse_form(tree, caseless))
    only = best[0] if whole and len(best) == 1 and "\\" not in pattern.replace("\\.", "").replace("\\(", "") else None
    exact = only.text if only is not None and not only.caseless and not _has_anchor(tree) else ""
    return Sieve(tuple(_fewest([_quick_part(word) for word in _shared(best)])), exact=exact)


_Words = list[Word]


def _of_sequence(tree: Iterable[Any], caseless: bool) -> tuple[_Words | None, list[_Words]]:
    """All spellings of a sequence, None where they are too many or not known, and the words it cannot do without."""
    run: _Words = [Word("", caseless)]
    found: list[_Words] = []
    whole = True
    for item in _with_words(tree):
        spellings, inner = _of_item(item, caseless)
        joined = None if spellings is None else _join(run, spellings)
        found += inner
        if joined is not None:
            run = joined
            continue
        whole = False
        found.append(run)
        run = spellings if spellings is not None else [Word("", caseless)]
    found.append(run)
    return (run if whole else None), [words for words in found if all(word.text for word in words)]


def _with_words(tree: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """The items by name, letters that follow each other made one item `WORD`."""
    word = ""
    for name, value in getattr(tree, "data", tree):
        if name is _parser.LITERAL and 32 <= value < 127 and (letter := chr(value)) not in _ESCAPED:
            word += letter
            continue
        if word:
            yield "WORD", word
            word = ""
        yield str(name), value
    if word:
        yield "WORD", word


def _of_item(item: tuple[str, Any], caseless: bool) -> tuple[_Words | None, list[_Words]]:
    name, value = item
    if name == "WORD":
        return [Word(value, caseless)], []
    if name == "IN":
        return _letters([one[1] if str(one[0]) == "LITERAL" else -1 for one in value], caseless), []
    if name == "AT":
        return [Word("", caseless)], []
    if name == "SUBPATTERN":
        _group, added, removed, inner = value
        inside = (caseless or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
        return _of_sequence(inner, inside)
    if name == "BRANCH":
        return _of_branches([_of_sequence(branch, caseless) for branch in value[1]])
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return _of_repeat(value, caseless)
    return None, []


def _letters(codes: list[int], caseless: bool) -> _Words | None:
    if len(codes) > 4 or any(not 32 <= code < 127 or chr(code) in _ESCAPED for code in codes):
        return None
    return [Word(chr(code), caseless) for code in codes]


def _of_branches(branches: list[tuple[_Words | None, list[_Words]]]) -> tuple[_Words | None, list[_Words]]:
    spellings: _Words | None = []
    needed: _Words | None = []
    for whole, found in branches:
        spellings = None if spellings is None or whole is None else spellings + whole
        best = max(
            [*found, *([whole] if whole and all(word.text for word in whole) else [])], key=_rarity, default=None
        )
        needed = None if needed is None or best is None else needed + best
    if spellings is not None and len(spellings) > _MOST_SPELLINGS:
        spellings = None
    return spellings, [needed] if needed else []


def _of_repeat(value: Any, caseless: bool) -> tuple[_Words | None, list[_Words]]:
    least, most, inner = value
    spellings, found = _of_sequence(inner, caseless)
    if spellings is not None and (least, most) == (0, 1):
        return [*spellings, Word("", caseless)], []
    if spellings is not None and least == most == 1:
        return spellings, found
    needed = [*found, *([spellings] if spellings and all(word.text for word in spellings) else [])]
    return None, needed if least else []


def _join(before: _Words, after: _Words) -> _Words | None:
    if len(before) * len(after) > _MOST_SPELLINGS:
        return None
    joined = [Word(one.text + two.text, one.caseless or two.caseless) for one in before for two in after]
    return joined if all(len(word.text) <= _LONGEST for word in joined) else None


def _rarity(words: _Words) -> float:
    """How sure it is that healthy lines lack all of these words: the least of them decides."""
    return min(2.0 * len(_COMMON_WORDS.sub("", word.text).replace(" ", "")) + 0.1 * len(word.text) for word in words)


def _shared(words: _Words) -> _Words:
    """The beginning or the end that all have in common, where that is rare enough by itself."""
    if len(words) == 1 or len({word.caseless for word in words}) > 1:
        return words
    texts = [word.text for word in words]
    parts = _beginning(texts), _beginning([text[::-1] for text in texts])[::-1]
    best = max((Word(part, words[0].caseless) for part in parts), key=lambda one: _rarity([one]))
    return [best] if _rarity([best]) >= 1.6 * _ENOUGH else words


def _beginning(texts: list[str]) -> str:
    """What all texts begin with: the first and the last in order differ where any two do."""
    first, last = min(texts), max(texts)
    return first[
        : next((place for place, letter in enumerate(first) if not last.startswith(letter, place)), len(first))
    ]


def _fewest(words: _Words) -> _Words:
    """Without words that contain another one."""
    by_length = sorted(dict.fromkeys(words), key=lambda word: len(word.text))
    kept: _Words = []
    for word in by_length:
        if not any(one.text in word.text and one.caseless >= word.caseless for one in kept):
            kept.append(word)
    return kept


def _quick_part(word: Word) -> Word:
    """The word up to where its last letters are the least usual: the engine looks at the ends of words first."""
    text = word.text.lower() if word.caseless else word.text
    odd = [a + b not in _COMMON_PAIRS for a, b in pairwise(text)]
    ends = range(len(text), min(len(text), _SHORTEST_END) - 1, -1)
    return Word(text[: max(ends, key=lambda end: sum(odd[max(end - 6, 0) : end - 1]))], word.caseless)


def _has_anchor(tree: Iterable[Any]) -> bool:
    return any(str(item[0]) == "AT" for item in tree)
