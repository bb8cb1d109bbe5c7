"""Times of log lines: what a stamp says as seconds since the epoch, with the year taken from a reference time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_FUTURE_SLACK_S = 86_400.0
"""A stamp without a year may lie this far after the reference: clocks differ, and files are read while written."""


def parse_rfc3339(text: str) -> float | None:
    """The moment a stamp such as `2026-11-30T07:20:24.123Z` names; without a zone it counts as UTC. None if none."""
    match = _RFC3339.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    moment = _moment(year, month, day, hour, minute, second)
    if moment is None:
        return None
    return moment + float(f"0.{match[7] or 0}") - _offset_s(match[8])


def resolve_year(month: int, day: int, clock: tuple[int, int, float], reference_s: float) -> float | None:
    """The latest moment with this month, day and UTC clock (hour, minute, second) that is not after the reference.

    Triton's default stamp has no year. A day is allowed for clocks that run ahead. None for dates that do not exist
    (old Windows builds of Triton print a month 13).
    """
    hour, minute, second = clock
    newest_year = datetime.fromtimestamp(reference_s + _FUTURE_SLACK_S, UTC).year
    # 29 February needs up to eight years (1900 and 2100 are no leap years).
    for year in range(newest_year, newest_year - 9, -1):
        moment = _moment(year, month, day, hour, minute, int(second))
        if moment is not None and moment <= reference_s + _FUTURE_SLACK_S:
            return moment + second % 1
    return None


def _moment(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float | None:
    # A leap second (60) is the first moment of the next minute, as POSIX time has it.
    try:
        base = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    if second > 60:
        return None
    return base.timestamp() + max(second - 59, 0)


def _offset_s(zone: str | None) -> float:
    if zone is None or zone == "Z":
        return 0.0
    sign = -1 if zone[0] == "-" else 1
    return sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])).total_seconds()
