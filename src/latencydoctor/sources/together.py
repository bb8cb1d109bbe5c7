"""Asks several expressions in one query; one that fails is found by halving, so that the others keep their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from latencydoctor.evidence.combine import MARK, combine
from latencydoctor.sources.answers import Labelled, parse_elements
from latencydoctor.sources.transport import FailureKind, TransportError

Ask = Callable[[str, int], object]
"""Asks a query that holds so many expressions; raises `TransportError`."""

Elements = tuple[Labelled, ...] | TransportError

_BY_CONTENT = frozenset({FailureKind.STATUS, FailureKind.TOO_LARGE})
"""Failures that one expression may have caused; a server that is away is away for all of them."""


def ask_together(ask: Ask, expressions: Sequence[str]) -> list[Elements]:
    """Each expression's elements without the mark, or its failure."""
    answers = _ask_once(ask, expressions)
    if not isinstance(answers, TransportError):
        return answers
    if len(expressions) == 1 or answers.kind not in _BY_CONTENT:
        return [answers] * len(expressions)
    return _halve(ask, expressions)


def _halve(ask: Ask, expressions: Sequence[str]) -> list[Elements]:
    """For expressions that failed together: what is known of one half saves asking about the other."""
    if len(expressions) == 1:
        return ask_together(ask, expressions)
    middle = len(expressions) // 2
    first, second = expressions[:middle], expressions[middle:]
    answers = _ask_once(ask, first)
    if not isinstance(answers, TransportError):
        # The culprit must be in the second half, so that half is not asked as a whole again.
        return [*answers, *_halve(ask, second)]
    if answers.kind not in _BY_CONTENT:
        return [answers] * len(expressions)
    return [*(_halve(ask, first) if len(first) > 1 else [answers]), *ask_together(ask, second)]


def _ask_once(ask: Ask, expressions: Sequence[str]) -> list[Elements] | TransportError:
    try:
        elements = parse_elements(ask(combine(expressions), len(expressions)))
        return [elements] if len(expressions) == 1 else _taken_apart(elements, len(expressions))
    except TransportError as error:
        return error


def _taken_apart(elements: Sequence[Labelled], count: int) -> list[Elements]:
    parts: list[list[Labelled]] = [[] for _ in range(count)]
    marks = {str(index): part for index, part in enumerate(parts)}
    for element in elements:
        labels = dict(element.labels)
        part = marks.get(labels.pop(MARK, ""))
        if part is None:
            raise TransportError(FailureKind.NOT_JSON, "the server answered another question")
        part.append(Labelled(labels, element.samples))
    return [tuple(part) for part in parts]
