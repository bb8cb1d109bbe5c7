"""What `config check` found, one line a source."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from latencydoctor.model.configuration import Probed
from latencydoctor.report.foreign import clean

_STYLES = {"ok": "green", "wrong": "bold red", "unreachable": "yellow"}


def show(probed: Probed, console: Console) -> None:
    """Print the file, then each source with its state and what to do about it."""
    console.print(f"configuration: {clean(probed.path) or 'no file; defaults and flags'}", soft_wrap=True)
    if not probed.sources:
        console.print("no source is configured", style="yellow")
        console.print("hint: give --prometheus URL, or write sources: into latencydoctor.yaml")
        return
    table = Table.grid(padding=(0, 2))
    for source in probed.sources:
        words = Text(clean(source.detail))
        if source.hint:
            words.append(f"\nhint: {clean(source.hint)}", style="dim")
        state = Text(source.state, style=_STYLES.get(source.state, ""))
        table.add_row(source.name, state, Text(clean(source.address)), words)
    console.print(table)
