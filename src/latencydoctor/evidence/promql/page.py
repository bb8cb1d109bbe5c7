"""Reads a metrics page: the text format 0.0.4 and OpenMetrics, strictly, a page at a time.

A page that is wrong anywhere is wrong as a whole, as Prometheus sees it: half a page would pass for a service that
lost its series. prometheus-client has a parser too: it takes seconds for a page of 100,000 series, ten times as long as
this one does once it has seen the page's labels, and reads an exemplar's value as a time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from latencydoctor.evidence.promql.values import NAME, Labels, make_labels

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
# Possessive quantifiers: a hostile line must not be tried in many ways.
_LABELS = r'\{((?:[^"}]|"(?:[^"\\]|\\.)*+")*+)\}'
_LINE = re.compile(rf"({_NAME})[ \t]*(?:{_LABELS})?[ \t]*([^ \t#]++)(?:[ \t]++([^ \t#]++))?[ \t]*", re.ASCII)
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*+)"[ \t]*(,|$)', re.ASCII)
_ESCAPE = re.compile(r'\\(["\\n])')
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n"}

END = "# EOF"

_SHOWN_CHARACTERS = 60


class PageError(Exception):
    """The page cannot be read: the line, counted from 1, and what is wrong there."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Reading:
    """One sample of a page; `own_time_ms` is the time it carries, if any."""

    labels: Labels
    value: float
    own_time_ms: int | None = None


def is_openmetrics(page: str) -> bool:
    """Whether a page says by its last line that it is OpenMetrics."""
    return page.rstrip("\n").endswith("\n" + END) or page.rstrip("\n") == END


def read_page(page: str, heads: dict[str, Labels], wanted: Collection[str] | None = None) -> Iterator[Reading]:
    """All samples in the page's order; `PageError` where it is wrong.

    `heads` remembers the labels of lines seen before: from the second page of a server on, only numbers are new. Lines
    of metrics that are not `wanted` (None for all) carry their name as their only label.
    """
    openmetrics = is_openmetrics(page)
    if not page.strip():
        raise PageError(0, "the page is empty")
    if not page.endswith("\n") and not openmetrics:
        # A number may have lost its last digits, and would still look like one.
        raise PageError(page.count("\n") + 1, "the page breaks off in the middle of a line")
    for number, line in enumerate(page.split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        head, _, text = line.rpartition(" ")
        labels = heads.get(head)
        if labels is None and wanted is not None and head.endswith("}"):
            labels = heads.get(head[: head.find("{")])
            labels = None if labels is None or labels[0][1] in wanted else labels
        if labels is not None:
            yield Reading(labels, _value(text, number))
        elif line.strip(" \t") and not line.lstrip(" \t").startswith("#"):
            yield _read_line(line, number, heads, wanted, openmetrics=openmetrics)


def _read_line(
    line: str, number: int, heads: dict[str, Labels], wanted: Collection[str] | None, *, openmetrics: bool
) -> Reading:
    found = _LINE.match(line)
    if found is None:
        raise PageError(number, _strange(line))
    rest = line[found.end() :]
    if rest and not (openmetrics and rest.startswith("# ")):
        raise PageError(number, f"unexpected text after the value: {_short(rest)}")
    name, inside, text, stamp = found.groups()
    value = _value(text, number)
    own_time_ms = None if stamp is None else _stamp_ms(stamp, number, openmetrics=openmetrics)
    if wanted is not None and name not in wanted:
        # From now on lines of this name are known by it, and their labels are not looked at.
        return Reading(heads.setdefault(name, ((NAME, name),)), value, own_time_ms)
    labels = make_labels([(NAME, name), *_labels(inside or "", number)])
    head, _, last = line.rpartition(" ")
    if stamp is None and not rest and last == text:
        # Only a line that is nothing but head, blank and value may be recognised by its head the next time.
        heads[head] = labels
    return Reading(labels, value, own_time_ms)


def _labels(text: str, number: int) -> list[tuple[str, str]]:
    # Nothing here may take longer for each label the more there are: a line may hold a million of them.
    pairs: dict[str, str] = {}
    position, end = 0, len(text.rstrip(" \t"))
    while position < end:
        found = _LABEL.match(text, position)
        if found is None:
            raise PageError(number, f"unreadable labels: {_short(text[position : position + 2 * _SHOWN_CHARACTERS])}")
        name, value, _ = found.groups()
        if name in pairs or name == NAME:
            raise PageError(number, f"the label {_short(name)} occurs twice")
        pairs[name] = _ESCAPE.sub(lambda escape: _ESCAPED[escape[1]], value)
        position = found.end()
    return list(pairs.items())


def _value(text: str, number: int) -> float:
    try:
        # float() takes more than the format has: 1_000, other scripts' digits, blanks around it.
        if text.isascii() and "_" not in text and text == text.strip():
            return float(text)
    except ValueError:
        pass
    raise PageError(number, f"{_short(text)} is no number")


def _stamp_ms(text: str, number: int, *, openmetrics: bool) -> int:
    try:
        if text.isascii() and "_" not in text:
            return round(float(text) * 1000) if openmetrics else int(text)
    except (ValueError, OverflowError):
        pass
    raise PageError(number, f"{_short(text)} is no time")


def _strange(line: str) -> str:
    if line.lstrip(" \t").startswith("<"):
        return f"this is a web page, not a metrics page: {_short(line)}"
    return f"no sample: {_short(line)}"


def _short(text: str) -> str:
    """Foreign text for a message, cut and without control characters."""
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")
