"""The log pyramid on a screen and as data: worst first, with count, rate, times, place, line and meaning."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from latencydoctor.model.evidence import Gap, LogEvent, QueryRecord
from latencydoctor.report import machine
from latencydoctor.report.foreign import clean
from latencydoctor.report.machine import dump
from latencydoctor.report.pyramid_rows import INDENT, Days, details, head, line
from latencydoctor.report.units import clock

SCHEMA = 2

Levels = Sequence[tuple[str, int]]
"""How many lines have which level."""

WHY = "latencydoctor diagnose --prometheus URL"
_MOST_GAPS = 3
_MOST_QUIET = 10
_LEAST_ROWS = 8


def show(
    events: Sequence[LogEvent],
    gaps: Sequence[Gap],
    files: Sequence[QueryRecord],
    console: Console,
    *,
    meaning: bool,
    levels: Levels = (),
    quiet: Sequence[LogEvent] = (),
    why: str = WHY,
) -> None:
    """Print the pyramid; `meaning` adds what each class says and what to do, `levels` how many lines have which.

    `quiet` are kinds of loud lines that no rule knows: their number is said, and one of them, with `meaning` more.

    `why` is the command that says what lies behind them.

    On a terminal it fits one screen unless `meaning` is asked for: first lines go, then the least classes.
    """
    days = Days(events)
    fits = console.is_terminal and not meaning
    top = [Text(_summary(events, files, days), style="bold")]
    bottom = [*_quiet(quiet, meaning), *_gaps(gaps, most=_MOST_GAPS if fits else len(gaps))]
    if levels:
        bottom.append(Text("lines    " + ", ".join(f"{count} {level}" for level, count in levels), style="dim"))
    if events:
        bottom.append(_next(meaning, why))
    # What can be pasted is never cut: the terminal breaks it into as many rows as it needs.
    command = bottom[-1] if events else None
    broken = len(command.plain) // console.width if command else 0
    room = max(console.height - 1 - len(top) - len(bottom) - broken, _LEAST_ROWS) if fits else None
    for row in (*top, *_rows(events, days, meaning, room), *bottom):
        if row is command:
            console.print(row, soft_wrap=True)
        elif fits:
            console.print(row, no_wrap=True, overflow="ellipsis", crop=True)
        elif console.is_terminal and row.plain.startswith(INDENT):
            console.print(Padding(row[len(INDENT) :], (0, 0, 0, len(INDENT))))
        else:
            # Unwrapped, so that a line of the report is a line for grep.
            console.print(row, soft_wrap=not console.is_terminal)


def as_text(
    events: Sequence[LogEvent],
    gaps: Sequence[Gap],
    files: Sequence[QueryRecord],
    *,
    meaning: bool,
    levels: Levels = (),
    quiet: Sequence[LogEvent] = (),
    why: str = WHY,
) -> str:
    """What `show` prints, as text for a file."""
    text = io.StringIO()
    console = Console(file=text, width=120, color_system=None, force_terminal=False, markup=False, highlight=False)
    show(events, gaps, files, console, meaning=meaning, levels=levels, quiet=quiet, why=why)
    return text.getvalue()


def document(
    events: Sequence[LogEvent],
    gaps: Sequence[Gap],
    files: Sequence[QueryRecord],
    levels: Levels = (),
    quiet: Sequence[LogEvent] = (),
) -> str:
    """The same as JSON; `worst` is the highest level of the events, null when there are none."""
    worst = min((event.severity for event in events), key=lambda one: one.rank, default=None)
    found: dict[str, object] = {"schema": SCHEMA, "worst": worst, "events": events, "gaps": gaps, "files": files}
    if quiet:
        kinds = [{"count": one.count, "place": one.place, "line": one.line} for one in quiet[:_MOST_QUIET]]
        found["quiet"] = {"lines": sum(one.count for one in quiet), "kinds": len(quiet), "first": kinds}
    return dump(found | ({"levels": dict(levels)} if levels else {}))


def one_line(event: LogEvent) -> str:
    """An event that has just come, on one line."""
    when = "" if event.first_s is None else f"{clock(event.first_s)} "
    count = f" x{event.count}" if event.count != 1 else ""
    return clean(f"{when}{event.severity.value:<8} {event.rule}{count}  {event.place}  {event.line}", limit=1000)


def one_object(event: LogEvent) -> str:
    """The same as one JSON object."""
    return json.dumps(machine.plain(event), sort_keys=True, ensure_ascii=False, allow_nan=False)


def _rows(events: Sequence[LogEvent], days: Days, meaning: bool, room: int | None) -> list[Text]:
    """The classes in at most `room` rows: as many as fit with their lines, the rest without, or by number only."""
    whole = len(events) if room is None else max(0, min(len(events), room - len(events)))
    bare = len(events) - whole if room is None or len(events) <= room else room - 1
    rows: list[Text] = []
    for event in events[:whole]:
        rows += [head(event, days), line(event, short=room is not None), *(details(event) if meaning else ())]
    rows += [head(event, days) for event in events[whole : whole + bare]]
    left = len(events) - whole - bare
    if left:
        rows.append(Text(f"and {left} more classes (-v tells of all)", style="dim"))
    return rows


def _summary(events: Sequence[LogEvent], files: Sequence[QueryRecord], days: Days) -> str:
    read = sum(one.outcome in ("ok", "empty") for one in files)
    where = _some(read, "file")
    if not events:
        # A file without a byte, or a program that only complained, says nothing of health.
        was_told = any(one.outcome == "ok" for one in files)
        return f"nothing of the known classes in {where}" if was_told else "there was nothing to read"
    known = [event for event in events if not event.unclassified]
    told = [f"{_some(len(known), 'class', 'classes')}, {_some(sum(one.count for one in known), 'event')}"]
    if len(known) < len(events):
        told.append(f"{len(events) - len(known)} unknown")
    return f"{', '.join(told)} in {where}{days.span}"


def _some(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def _quiet(quiet: Sequence[LogEvent], meaning: bool) -> list[Text]:
    """What is loud and unknown but came in no burst: its number, so that a screen without it hides nothing."""
    if not quiet:
        return []
    lines = _some(sum(one.count for one in quiet), "line")
    kinds = "" if len(quiet) == 1 else f" of {len(quiet):,} kinds"
    shown = quiet[: _MOST_QUIET if meaning else 1]
    said = [Text(f"unknown  {lines}{kinds} at ERROR or above that no rule knows, in no burst", style="yellow")]
    return said + [Text(clean(f"{INDENT}{one.place}  {one.line}", limit=1000), style="dim") for one in shown]


def _gaps(gaps: Sequence[Gap], most: int) -> list[Text]:
    shown = gaps if len(gaps) <= most else gaps[: most - 1]
    rows = [Text(f"not read {clean(gap.detail)} ({gap.reason.value})", style="yellow") for gap in shown]
    if len(shown) < len(gaps):
        rows.append(Text(f"not read {len(gaps) - len(shown)} more (-v tells of all)", style="yellow"))
    return rows


def _next(meaning: bool, why: str) -> Text:
    said = "" if meaning else "-v: what to do; why: "
    return Text(f"next     {said}{clean(why, limit=1000)}", style="bold cyan")
