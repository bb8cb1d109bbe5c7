"""The timeline of a diagnosis in words: what began when, at most one dozen rows of it on a screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from latencydoctor.model.diagnosis import Diagnosis, Moment, MomentKind
from latencydoctor.model.evidence import IncidentState
from latencydoctor.report.foreign import clean, markdown, plain
from latencydoctor.report.markdown_table import QUERY_LIMIT, code, table
from latencydoctor.report.units import amount, clock
from latencydoctor.report.wording import name

MOST_ROWS = 12

_BEFORE_S = 900.0
"""What began longer before the incident is history, and gives way first."""


def on_screen(result: Diagnosis) -> RenderableType | None:
    """The timeline as rows; None where there is no order to show."""
    shown = choose(result)
    if len(shown) < 2:
        return None
    # One column: rich takes room from the first ones of several for a long last one.
    grid = Table.grid()
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for one in shown:
        grid.add_row(_told(one))
    if len(shown) < len(result.timeline):
        left = len(result.timeline) - len(shown)
        grid.add_row(Text(f"and {left} more (--format json)", style="dim"))
    return grid


def in_markdown(result: Diagnosis) -> list[str]:
    """The whole timeline as a section; empty where there is no order to show."""
    if len(result.timeline) < 2:
        return []
    rows = (
        (clock(one.at_s), one.kind.value, markdown(_words(one)), code(one.detail or one.proof, QUERY_LIMIT))
        for one in result.timeline
    )
    return ["## What began when (UTC)", "", *table(("time", "of", "what", "shown by"), rows)]


def choose(result: Diagnosis) -> Sequence[Moment]:
    """The moments for a screen, in order: those of the incident before those long before it, earliest first."""
    moments = result.timeline
    if len(moments) <= MOST_ROWS:
        return moments
    since_s = result.incident.since_s if result.incident.state is IncidentState.INCIDENT else None
    near = [one for one in moments if since_s is None or one.at_s >= since_s - _BEFORE_S]
    room = MOST_ROWS - 1
    # The incident's own onset is what everything else is compared with.
    kept = [one for one in near if one.kind is MomentKind.INCIDENT]
    kept += [one for one in near if one.kind is not MomentKind.INCIDENT][: room - len(kept)]
    return [one for one in moments if any(one is other for other in kept)]


def _told(one: Moment) -> Text:
    text = Text(f"{clock(one.at_s)}  ")
    text.append(f"{one.kind.value:<11}  ", style="dim")
    text.append(_words(one))
    return text.append_text(plain(f"  {one.detail}", style="dim")) if one.detail else text


def _words(one: Moment) -> str:
    if one.kind is MomentKind.INCIDENT:
        # Its value is of the last windows, not of this moment.
        limit = f" at or above {amount(one.baseline, one.unit)}" if one.baseline is not None else ""
        return f"begins: {name(one.what)}{limit}" if one.what else "begins"
    if one.kind is MomentKind.LOG:
        level = f"{one.severity.value} " if one.severity else ""
        return f"{level}{clean(one.what)} x{one.value or 0:.0f}"
    before = f" {amount(one.baseline, one.unit)} →" if one.baseline is not None else ""
    return f"{name(one.what)}{before} {amount(one.value, one.unit)}"
