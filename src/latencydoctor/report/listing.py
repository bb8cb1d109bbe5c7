"""Rules, dialects and playbooks as lists and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table

from latencydoctor.report.foreign import clean, plain

LONGEST_LINE = 1000

Fact = tuple[str, str | Sequence[str]]
"""A name and what there is to say under it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing of the content as a list shows it."""

    id: str
    kind: str
    status: str
    level: str
    title: str
    note: str = ""


def show_list(entries: Sequence[Entry], console: Console) -> None:
    """One line an entry: kind, id, level, status, title."""
    told = ((one, f"{one.title} ({one.note})" if one.note else one.title) for one in entries)
    show_lines([(entry.kind, entry.id, entry.level, entry.status, title) for entry, title in told], console)


def show_lines(rows: Sequence[Sequence[str]], console: Console, head: Sequence[str] = ()) -> None:
    """One line a row, however long: a pipe must not see one broken, nor a terminal an id that is cut."""
    cleaned = [[clean(text) for text in row] for row in ([head] if head else []) + list(rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cleaned, strict=True)]
    for index, row in enumerate(cleaned):
        cells = [set_cell_size(text, width) for text, width in zip(row[:-1], widths, strict=False)]
        style = "bold" if head and index == 0 else ""
        console.print(plain("  ".join([*cells, row[-1]]), style=style, limit=LONGEST_LINE), soft_wrap=True)


def show_page(facts: Sequence[Fact], console: Console) -> None:
    """Names and texts of one entry; lists one item a line, empty ones left out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        texts = [text for text in ((value,) if isinstance(value, str) else value) if text]
        for index, text in enumerate(texts):
            table.add_row(clean(name) if index == 0 else "", plain(text, limit=2000))
    console.print(table)
