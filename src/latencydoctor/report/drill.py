"""A drill as it runs and as it ended: phases with the clock since the page, the windows side by side, the last line."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from latencydoctor.model.drill import Drilled, DrillWindow
from latencydoctor.model.load import WindowStats
from latencydoctor.percent import percent
from latencydoctor.report.foreign import clean
from latencydoctor.report.units import amount, clock, span

PHASES = (
    ("up", "bring up the stack"),
    ("calm", "calm baseline"),
    ("crowd", "the crowd, until the alert fires"),
    ("before", "measure the incident"),
    ("diagnose", "diagnose from the public surfaces"),
    ("plan", "plan and show the change"),
    ("write", "apply: write the settings"),
    ("effect", "read back what is in effect"),
    ("verify", "verify on fresh metrics"),
    ("decision", "decide"),
    ("after", "measure the effect"),
    ("rollback", "prove the rollback"),
    ("applied again", "apply again and measure"),
    ("teardown", "tear everything down"),
)

_ROLLBACK_PHASES = ("rollback", "applied again")


def board(
    reached: dict[str, tuple[str, float | None]], current: str, page_s: float | None, *, rollback: bool
) -> RenderableType:
    """The live board: every phase with its last word; `reached` maps a phase to its text and fraction done."""
    phases = [one for one in PHASES if rollback or one[0] not in _ROLLBACK_PHASES]
    table = Table.grid(padding=(0, 1))
    # Without least widths rich takes the room of the first columns for the text beside them.
    table.add_column(min_width=2)
    table.add_column(no_wrap=True, min_width=max(len(title) for _, title in phases))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for phase, title in phases:
        text, done = reached.get(phase, ("", None))
        mark = "▶" if phase == current else ("✓" if phase in reached else " ")
        style = "bold" if phase == current else ("" if phase in reached else "dim")
        said = Text(clean(text), style="dim")
        if phase == current and done is not None:
            said = Text(f"{percent(min(done, 1.0), 0):>5}  ", style="bold") + said
        table.add_row(mark, Text(title, style=style), said)
    since = f"{span(page_s)} since the page" if page_s is not None else "no page yet"
    return Panel(table, title="flash crowd", subtitle=since, title_align="left", subtitle_align="right")


def summary(drilled: Drilled, console: Console) -> None:
    """The windows, the timeline and what did not go as designed."""
    figures = drilled.figures
    head = Text(f"{drilled.scenario.title}\n", style="bold")
    if figures.accelerator.startswith("sim:"):
        head.append(
            f"SIMULATED ACCELERATOR {figures.accelerator}: answers are real, device times are simulated\n", "magenta"
        )
    console.print(head)
    console.print(_windows(drilled.windows))
    console.print()
    console.print(_timeline(drilled))
    console.print()
    console.print(_outcome(drilled))


def _windows(windows: tuple[DrillWindow, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("window", no_wrap=True)
    classes = any(window.stats.vip for window in windows)
    by_priority = ("VIP p99", "standard p99", "turned away") if classes else ()
    for title in ("offered/s", "answered/s", "p50", "p99", "failed", "hit ratio", *by_priority):
        table.add_column(title, justify="right", no_wrap=True)
    for window in windows:
        stats = window.stats
        table.add_row(
            f"{window.label} ({stats.end_s - stats.start_s:.0f} s)",
            f"{stats.offered_rps:.1f}",
            f"{stats.answered_rps:.1f}",
            amount(stats.p50_ms, "ms"),
            amount(stats.p99_ms, "ms"),
            str(stats.failed_count),
            amount(stats.hit_ratio, "ratio"),
            *(_by_priority(stats) if classes else ()),
        )
    return table


def _by_priority(stats: WindowStats) -> tuple[str, str, str]:
    vip, standard = stats.vip, stats.standard
    return (
        amount(vip.p99_ms if vip else None, "ms"),
        amount(standard.p99_ms if standard else None, "ms"),
        amount(standard.shed_ratio if standard else None, "ratio"),
    )


def _timeline(drilled: Drilled) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for entry in sorted(drilled.record.timeline, key=lambda one: one.at_s):
        table.add_row(clock(entry.at_s), Text(clean(entry.what)))
    return table


def _outcome(drilled: Drilled) -> RenderableType:
    figures = drilled.figures
    if not drilled.misses:
        line = Text("as designed", style="bold green")
        line.append(f": cause {figures.cause or 'none, healthy'}", style="default")
        since = f"alert to verified fix {amount(figures.alert_to_verified_s, 's')}"
        if drilled.scenario.vip_p99_below_ms is not None:
            line.append(
                f", VIP p99 {amount(figures.vip_p99_before_ms, 'ms')} → {amount(figures.vip_p99_after_ms, 'ms')}, "
                f"{amount(figures.shed_after_ratio, 'ratio')} of the standard requests turned away, {since}"
            )
        elif figures.ratio is not None:
            line.append(
                f", p99 {amount(figures.p99_before_ms, 'ms')} → {amount(figures.p99_after_ms, 'ms')} "
                f"({figures.ratio:.1f} times), {since}"
            )
        return line
    return Group(*(Text(f"NOT AS DESIGNED: {miss}", style="bold red") for miss in drilled.misses))


def last_line(drilled: Drilled) -> str:
    """The figures as one JSON object on one line; absent figures are null, rates 0..1."""
    rounded = {
        key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(drilled.figures).items()
    }
    return json.dumps(rounded)
