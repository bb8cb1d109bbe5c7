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
    """One line an entry, however long: a pipe must not see one broken, and a terminal breaks lines itself."""
    rows = []
    for entry in entries:
        title = f"{entry.title} ({entry.note})" if entry.note else entry.title
        rows.append([clean(text) for text in (entry.kind, entry.id, entry.level, entry.status, title)])
    widths = [max((cell_len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        cells = [set_cell_size(text, width) for text, width in zip(row, widths, strict=False)]
        console.print(plain("  ".join([*cells, row[4]]), limit=LONGEST_LINE), soft_wrap=True)


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
