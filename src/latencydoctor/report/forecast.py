"""Forecasts as people read them."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from latencydoctor.forecast.capacity import Sizing
from latencydoctor.forecast.estimate import Band, Estimate
from latencydoctor.report.foreign import clean
from latencydoctor.report.units import amount

_TITLES = ("settings", "replicas", "rate", "p50", "p95", "p99", "load", "capacity")
_WIDE = 110


def show_rows(rows: list[tuple[str, int, Estimate]], console: Console) -> None:
    """One line a forecast: what is set, the rate, percentiles, how much of the capacity is used.

    On a narrow screen what is set stands in a line above the figures: beside them neither could be read.
    """
    lines: list[tuple[str, ...]] = []
    styles: list[str] = []
    levels: list[Text] = []
    for settings, replicas, one in rows:
        capacity = amount(one.capacity_rps.value, "/s")
        head = (clean(settings), str(replicas), amount(one.rate_rps, "/s"))
        if one.p99_ms is None:
            lines.append((*head, "-", "-", "no bound", amount(one.load_ratio, "ratio"), capacity))
            styles.append("red")
            levels.append(Text(f"{amount(one.rate_rps, 'requests/s')}: {clean(one.unstable)}", style="red"))
            continue
        figures = (value(one.p50_ms), value(one.p95_ms), with_interval(one.p99_ms))
        lines.append((*head, *figures, amount(one.load_ratio, "ratio"), capacity))
        styles.append("")
        if one.vip_p99_ms is not None:
            levels.append(
                Text(
                    f"{amount(one.rate_rps, 'requests/s')}: p99 of VIP {with_interval(one.vip_p99_ms)}, "
                    f"of the others {with_interval(one.standard_p99_ms)}"
                )
            )
    if console.width < _WIDE:
        _stacked(lines, styles, console)
    else:
        _side_by_side(lines, styles, console)
    for line in levels:
        console.print(line)


def _side_by_side(lines: list[tuple[str, ...]], styles: list[str], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in _TITLES:
        table.add_column(title, justify="left" if title == "settings" else "right")
    for line, style in zip(lines, styles, strict=True):
        table.add_row(*line, style=style)
    console.print(table)


def _stacked(lines: list[tuple[str, ...]], styles: list[str], console: Console) -> None:
    figures = [_TITLES[1:], *(line[1:] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*figures, strict=True)]
    rows = [" ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in figures]
    console.print(Text(rows[0], style="bold"))
    for line, row, style in zip(lines, rows[1:], styles, strict=True):
        console.print(Text(line[0], style=style))
        console.print(Text(row, style=style))


def show_sizing(found: Sizing, console: Console) -> None:
    """How many replicas are needed, and why not one fewer."""
    load = f"{amount(found.rate_rps, 'requests/s')} within {amount(found.slo_ms, 'ms')}"
    if found.reason or found.estimate is None:
        console.print(Text(f"{load}: {clean(found.reason)}", style="red"))
        return
    one = found.estimate
    word = "replica" if found.replicas == 1 else "replicas"
    console.print(Text(f"{load}: {found.replicas:,} {word}", style="bold"))
    console.print(
        f"  p99 {with_interval(one.p99_ms)}, p95 {value(one.p95_ms)}, p50 {value(one.p50_ms)}; "
        f"load {amount(one.load_ratio, 'ratio')} of {amount(one.capacity_rps.value, 'requests/s')}"
    )
    if found.one_less is not None:
        less = found.one_less
        told = clean(less.unstable) if less.p99_ms is None else f"p99 {with_interval(less.p99_ms)}"
        console.print(
            Text(f"  one fewer: {told}, load {amount(less.load_ratio, 'ratio')}", style="dim"),
        )


def show_basis(basis: tuple[str, ...], notes: tuple[str, ...], measured_p99_ms: float | None, console: Console) -> None:
    """What the forecast rests on and what it leaves out."""
    if measured_p99_ms is not None:
        console.print(f"measured now: p99 {amount(measured_p99_ms, 'ms')}")
    for line in basis:
        console.print(Text(f"by {clean(line)}", style="dim"))
    for line in notes:
        console.print(Text(clean(line), style="dim"))


def head(*, simulated: bool, console: Console) -> None:
    """Says before any figure where it comes from."""
    if simulated:
        console.print(Text("SIMULATED ACCELERATOR", style="bold magenta"))


def value(band: Band | None) -> str:
    """The figure alone."""
    return "-" if band is None else amount(band.value, "ms")


def with_interval(band: Band | None) -> str:
    """The figure and its interval."""
    if band is None:
        return "-"
    high = "no bound" if band.high is None else amount(band.high, "ms")
    return f"{amount(band.value, 'ms')} ({amount(band.low, 'ms')} to {high})"
