"""A labelled part of the screen: the label in the first column, what it holds beside it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

LABEL_WIDTH = 9


def line(label: str, content: Text) -> RenderableType:
    """A label and a text."""
    return block(label, content)


def block(label: str, content: RenderableType) -> RenderableType:
    """A label and whatever stands beside it."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=LABEL_WIDTH, no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_row(Text(label, style="bold"), content)
    return grid
