"""Stamps to seconds since the epoch: dates, clocks, fractions and zones, each part cheap because lines share days.

Here a stamp is read as it stands; which year or zone it means where it does not say so is `dating`'s business.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?: ?(Z\b|[+-]\d\d:?\d\d\b))?(?: (UTC|GMT)\b)?",
    re.ASCII,
)
"""Date, hms, fraction, offset, zone by name."""

_HTTP_DATE = re.compile(r"\w{3}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d:\d\d:\d\d) ([+-]\d{4})", re.ASCII)

MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}


@lru_cache(maxsize=2048)
def midnight_s(year: int, month: int, day: int) -> float | None:
    """The first moment of a day in UTC; None for days that do not exist."""
    try:
        return datetime(year, month, day, tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=2048)
def date_s(date: str) -> float | None:
    """The first moment of a day written as `2026-11-30` or `2026/11/30`; None for days that do not exist."""
    return midnight_s(int(date[:4]), int(date[5:7]), int(date[8:10]))


def clock_s(hms: str, fraction: str | None = None) -> float | None:
    """Seconds since midnight; None for a clock that no day has. 60 s is a leap second: the next minute's first."""
    whole = _whole_s(hms)
    return whole + float(f"0.{fraction}") if fraction and whole is not None else whole


@lru_cache(maxsize=4096)
def _whole_s(hms: str) -> float | None:
    hours, minutes, seconds = int(hms[:2]), int(hms[3:5]), int(hms[6:8])
    if hours > 23 or minutes > 59 or seconds > 60:
        return None
    return float(hours * 3600 + minutes * 60 + seconds)


def offset_s(zone: str) -> float:
    """How far a zone such as `Z`, `+05:30` or `-0800` is ahead of UTC."""
    if zone == "Z":
        return 0.0
    seconds = int(zone[1:3]) * 3600.0 + int(zone[-2:]) * 60.0
    return -seconds if zone[0] == "-" else seconds


def iso_parts(match: re.Match[str]) -> tuple[float, float | None] | None:
    """What an `ISO` match says: its own clock as if it were UTC, and its zone's offset; None if no such moment."""
    date, hms, fraction, zone, name = match.groups()
    day = date_s(date)
    clock = clock_s(hms, fraction)
    if day is None or clock is None:
        return None
    if zone is not None:
        return day + clock, offset_s(zone)
    return day + clock, None if name is None else 0.0


def parse_rfc3339(text: str) -> float | None:
    """The moment a stamp such as `2026-11-30T07:20:24.123Z` names; without a zone it counts as UTC. None if none."""
    match = ISO.match(text)
    parts = iso_parts(match) if match else None
    return None if parts is None else parts[0] - (parts[1] or 0.0)


_FIRST_S, _LAST_S = 6.3e8, 7.3e9
"""1990 to 2200: a stamp outside names no moment, such as the zero of Go's clock (year 1) or of one never set (1970)."""


def real(moment_s: float) -> float | None:
    """A moment as it is; None where no clock that was set can have stood."""
    return moment_s if _FIRST_S <= moment_s <= _LAST_S else None


def epoch_s(number: float) -> float | None:
    """A count since the epoch in seconds, milliseconds, microseconds or nanoseconds, told apart by its size."""
    if not 0 < number < 1e19:
        return None
    for scale in (1.0, 1e3, 1e6, 1e9):
        # No unit's count of one of these years is another unit's of any.
        if real(number / scale) is not None:
            return number / scale
    return None


def parse_http_date(text: str) -> float | None:
    """The moment that `Mon, 30 Nov 2026 07:20:26 +0000` names; None if none."""
    match = _HTTP_DATE.match(text)
    if match is None or match[2] not in MONTHS:
        return None
    day, month, year, hms, zone = match.groups()
    midnight, clock = midnight_s(int(year), MONTHS[month], int(day)), clock_s(hms)
    return None if midnight is None or clock is None else real(midnight + clock - offset_s(zone))
