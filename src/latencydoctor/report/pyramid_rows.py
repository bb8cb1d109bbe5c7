"""The rows of one class of the log pyramid: how often and when, the line that told of it, what it means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.text import Text

from latencydoctor.model.evidence import LogEvent, Severity
from latencydoctor.report.foreign import clean, plain
from latencydoctor.report.units import amount, clock

_STYLE = {
    Severity.CRITICAL: "bold red",
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.INFO: "default",
}
INDENT = " " * 9
_HEAD = re.compile(
    r"""^(?:\{"(?:log|message|msg|MESSAGE)":\ ?")?
    (?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|\ ?[+-]\d\d:?\d\d)?\]?\ +){0,2}
    (?:std(?:out|err)\ [FP]\ )?(?:\[\w{4,8}\]\ \d+\#\d+:\ (?:\*\d+\ )?)?(?=\S)""",
    re.ASCII | re.VERBOSE,
)
"""What stands before a message that says no more than the row above it: its wrapper, its stamp, its worker."""


class Days:
    """How times are told: with their day where the events are not all of one."""

    def __init__(self, events: Sequence[LogEvent]) -> None:
        times = [one for event in events for one in (event.first_s, event.last_s) if one is not None]
        self._first_s = min(times, default=None)
        self._last_s = max(times, default=None)
        self._many = bool(times) and _day(min(times)) != _day(max(times))

    def clock(self, time_s: float) -> str:
        """A moment."""
        return f"{_day(time_s)[5:]} {clock(time_s)}" if self._many else clock(time_s)

    @property
    def span(self) -> str:
        """From when to when all events were; empty where no time is known."""
        if self._first_s is None or self._last_s is None:
            return ""
        start = f", {_day(self._first_s)} {clock(self._first_s)}"
        end = f"{_day(self._last_s)} {clock(self._last_s)}" if self._many else clock(self._last_s)
        return f"{start} UTC" if self._first_s == self._last_s else f"{start} to {end} UTC"


def head(event: LogEvent, days: Days) -> Text:
    """Level, class, how often, when, the figures."""
    row = Text(f"{event.severity.value:<8} ", style=_STYLE[event.severity])
    row.append(clean(event.rule), style="bold")
    row.append(f" x{event.count}", style="default")
    if event.echoes:
        row.append(f" +{event.echoes} {'echo' if event.echoes == 1 else 'echoes'}", style="dim")
    row.append(_when(event, days), style="default")
    if event.numbers:
        row.append("  " + clean(", ".join(_number(name, value) for name, value in event.numbers)), style="cyan")
    return row


def line(event: LogEvent, *, short: bool = False) -> Text:
    """The first line, where it stands, where the program wrote it; a `short` one begins behind the program's head."""
    row = Text(f"{INDENT}{clean(event.place)}  ", style="dim")
    _, known, message = event.line.partition(event.file_line) if event.file_line else ("", "", "")
    if event.file_line and (short or not known):
        row.append(f"{clean(event.file_line)}  ", style="dim")
    said = message.lstrip('] :"') if known else _HEAD.sub("", event.line)
    return row.append_text(plain(said if short else event.line, limit=500))


def details(event: LogEvent) -> list[Text]:
    """Who told of it, what it means, what to do."""
    rows: list[Text] = []
    if event.sources and event.sources != (event.place.rpartition(":")[0],):
        rows.append(Text(f"{INDENT}from {clean(', '.join(event.sources))}", style="dim"))
    if event.meaning:
        rows.append(Text(f"{INDENT}{clean(event.meaning, limit=1000)}", style="dim"))
    if event.remedy:
        rows.append(Text(f"{INDENT}do: {clean(event.remedy, limit=1000)}"))
    return rows


def _number(name: str, value: float) -> str:
    words, _, unit = name.rpartition("_")
    if words and unit in ("ms", "bytes", "s"):
        return f"{words.replace('_', ' ')} {amount(value, unit)}"
    return f"{name.replace('_', ' ')} {amount(value, '')}"


def _when(event: LogEvent, days: Days) -> str:
    if event.first_s is None or event.last_s is None:
        return "  at no known time"
    if event.last_s <= event.first_s:
        return f"  at {days.clock(event.first_s)}"
    rate = f", {event.count * 60 / event.busy_s:.3g}/min" if event.busy_s and event.count > 1 else ""
    return f"  {days.clock(event.first_s)} to {days.clock(event.last_s)}{rate}"


def _day(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d")
