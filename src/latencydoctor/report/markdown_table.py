"""Tables and inline code in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from latencydoctor.report.foreign import clean


def code(text: str) -> str:
    """Inline code inside a table cell: a bar or a backtick in it would break out."""
    return f"`{clean(text, 500).replace('`', chr(39)).replace('|', chr(0xA6))}`" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table and the empty line after it; cells are escaped by the caller."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]
