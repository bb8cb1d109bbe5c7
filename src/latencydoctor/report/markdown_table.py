"""Tables and inline code in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from latencydoctor.report.foreign import clean

QUERY_LIMIT = 4000
"""A query is there to be pasted: it is whole, or of no use."""

_BAR = re.compile(r"(?<!\\)\|")
_BACKTICKS = re.compile("`+")


def code(text: str, limit: int = 500) -> str:
    """Inline code inside a table cell, which reads as `text` once it is rendered: no bar or backtick in it breaks out.

    Only a bar behind a backslash becomes another character: renderers do not agree on what that pair means in a table.
    """
    if not text:
        return ""
    kept = _BAR.sub(r"\|", clean(text, limit).replace("\\|", "\\\xa6"))
    fence = "`" * (max(map(len, _BACKTICKS.findall(kept)), default=0) + 1)
    room = " " if "`" in kept[:1] + kept[-1:] else ""
    return f"{fence}{room}{kept}{room}{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table and the empty line after it; cells are escaped by the caller."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]
