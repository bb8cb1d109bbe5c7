"""Redis and Valkey of all ages."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import MONTHS, clock_s, midnight_s
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import Draft

_STAMP = r"(\d\d) ([A-Z][a-z]{2}) (?:(\d{4}) )?(\d\d:\d\d:\d\d)(?:\.(\d{1,6}))? ([.\-*#]) ?"
_LINE = re.compile(r"\d{1,10}:[XCSM] " + _STAMP, re.ASCII)
_OLD_LINE = re.compile(r"\[\d{1,10}\] " + _STAMP, re.ASCII)
_LEVELS = {".": "DEBUG", "-": "DEBUG", "*": "INFO", "#": "WARNING"}


def line(text: str, draft: Draft, dating: Dating) -> str | None:
    """`<pid>:<role> DD Mon[ YYYY] HH:MM:SS.mmm <c> <message>`; local time."""
    return _read(_LINE.match(text), text, draft, dating)


def old_line(text: str, draft: Draft, dating: Dating) -> str | None:
    """`[<pid>] DD Mon HH:MM:SS <c> <message>`."""
    return _read(_OLD_LINE.match(text), text, draft, dating)


def _read(match: re.Match[str] | None, text: str, draft: Draft, dating: Dating) -> str | None:
    if match is None or match[2] not in MONTHS:
        return None
    day, month, year, hms, fraction, level = match.groups()
    clock = clock_s(hms, fraction)
    naive_s: float | None = None
    if clock is not None and year is None:
        naive_s = dating.yearless(MONTHS[month], int(day), clock, draft)
    elif clock is not None:
        midnight = midnight_s(int(year), MONTHS[month], int(day))
        naive_s = None if midnight is None else midnight + clock
    if naive_s is not None:
        draft.naive_s, draft.zone_s = naive_s, None
        dating.own(draft, "redis")
    draft.head("redis", _LEVELS[level])
    return text[match.end() :]
