"""The log pyramid on a screen and as data: worst first, with count, rate, times, place, line and meaning."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from latencydoctor.model.evidence import Gap, LogEvent, QueryRecord, Severity
from latencydoctor.report import machine
from latencydoctor.report.foreign import clean, plain
from latencydoctor.report.machine import dump
from latencydoctor.report.units import amount, clock

SCHEMA = 1

Levels = Sequence[tuple[str, int]]
"""How many lines have which level."""

_STYLE = {
    Severity.CRITICAL: "bold red",
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.INFO: "default",
}
_INDENT = " " * 9


def show(
    events: Sequence[LogEvent],
    gaps: Sequence[Gap],
    files: Sequence[QueryRecord],
    console: Console,
    *,
    meaning: bool,
    levels: Levels = (),
) -> None:
    """Print the pyramid; `meaning` adds what each class says about the system, `levels` how many lines have which."""
    rows = [row for event in events for row in _event(event, meaning)]
    if not events:
        read = sum(one.outcome in ("ok", "empty") for one in files)
        where = "1 file" if read == 1 else f"{read} files"
        rows.append(Text(f"nothing of the known classes in {where}" if read else "there was nothing to read"))
    rows += [Text(f"not read  {clean(gap.detail)} ({gap.reason.value})", style="yellow") for gap in gaps]
    if levels:
        rows.append(Text("lines     " + ", ".join(f"{count} {level}" for level, count in levels), style="dim"))
    for row in rows:
        # Unwrapped, so that a line of the report is a line for grep.
        console.print(row, soft_wrap=True)


def as_text(
    events: Sequence[LogEvent],
    gaps: Sequence[Gap],
    files: Sequence[QueryRecord],
    *,
    meaning: bool,
    levels: Levels = (),
) -> str:
    """What `show` prints, as text for a file."""
    text = io.StringIO()
    console = Console(file=text, width=120, color_system=None, markup=False, highlight=False)
    show(events, gaps, files, console, meaning=meaning, levels=levels)
    return text.getvalue()


def document(events: Sequence[LogEvent], gaps: Sequence[Gap], files: Sequence[QueryRecord], levels: Levels = ()) -> str:
    """The same as JSON; `worst` is the highest level seen, null when nothing was."""
    worst = min((event.severity for event in events), key=lambda one: one.rank, default=None)
    found = {"schema": SCHEMA, "worst": worst, "events": events, "gaps": gaps, "files": files}
    return dump(found | ({"levels": dict(levels)} if levels else {}))


def one_line(event: LogEvent) -> str:
    """An event that has just come, on one line."""
    when = "" if event.first_s is None else f"{clock(event.first_s)} "
    count = f" x{event.count}" if event.count != 1 else ""
    return clean(f"{when}{event.severity.value:<8} {event.rule}{count}  {event.place}  {event.line}", limit=1000)


def one_object(event: LogEvent) -> str:
    """The same as one JSON object."""
    return json.dumps(machine.plain(event), sort_keys=True, ensure_ascii=False, allow_nan=False)


def _event(event: LogEvent, meaning: bool) -> list[Text]:
    head = Text(f"{event.severity.value:<8} ", style=_STYLE[event.severity])
    head.append(clean(event.rule), style="bold")
    head.append(f" x{event.count}{_when(event)}", style="default")
    if event.numbers:
        head.append("  " + clean(", ".join(_number(name, value) for name, value in event.numbers)), style="cyan")
    line = Text(f"{_INDENT}{clean(event.place)}  ", style="dim")
    rows = [head, line.append_text(plain(event.line, limit=500))]
    return [*rows, Text(_INDENT + clean(event.meaning, limit=1000), style="dim")] if meaning else rows


def _number(name: str, value: float) -> str:
    words, _, unit = name.rpartition("_")
    if words and unit in ("ms", "bytes"):
        return f"{words.replace('_', ' ')} {amount(value, unit)}"
    return f"{name.replace('_', ' ')} {amount(value, '')}"


def _when(event: LogEvent) -> str:
    if event.first_s is None or event.last_s is None:
        return "  at no known time"
    if event.last_s <= event.first_s:
        return f"  at {clock(event.first_s)} UTC"
    rate = event.count / (event.last_s - event.first_s)
    return f"  {clock(event.first_s)} to {clock(event.last_s)} UTC, {rate:.3g}/s"
