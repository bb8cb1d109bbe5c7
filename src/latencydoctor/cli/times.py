"""Times and lengths of time as people type them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from latencydoctor.errors import UsageError

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_S = 36525 * 86400.0
_LAST_S = 253402300799.0
"""The end of the year 9999, which is the last that a date can be written of."""

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


_LENGTH_HINT = "Write it as 500ms, 90s, 30m or 1h30m."


def length_s(text: str, option: str) -> float:
    """Seconds in `90s`, `30m`, `1h30m`; `UsageError` naming the option otherwise."""
    parts = _LENGTH.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"{option} is {text!r}, not a length of time", hint=_LENGTH_HINT)
    total_s = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    if total_s <= 0:
        raise UsageError(f"{option} must be longer than nothing", hint=_LENGTH_HINT)
    if total_s > _LONGEST_S:
        raise UsageError(f"{option} is too long: more than a century", hint=_LENGTH_HINT)
    return total_s


def moment_s(text: str, option: str, form: str = "") -> float:
    """Seconds since the epoch of an RFC 3339 time (UTC when it has no zone) or of a number that already is that.

    `UsageError` for anything else; `form` is one more that the option takes.
    """
    try:
        moment = _number_or_date_s(text)
    except (ValueError, OverflowError):
        moment = -1.0
    # Not a number is not in any range either.
    if not 0 <= moment <= _LAST_S:
        hint = f"Write it as {form + ', ' if form else ''}2026-11-30T07:20:24Z or as seconds since 1970."
        raise UsageError(f"{option} is {text!r}, not a time", hint=hint)
    return moment


def span_s(text: str, option: str, now_s: float) -> tuple[float, float]:
    """Start and end of `START/END` (two times) or `LENGTH@AGO` (so long, ending so long before `now_s`)."""
    hint = "Write it as 2026-11-30T07:00Z/2026-11-30T07:30Z, or as 30m@24h for half an hour that ended a day ago."
    first, slash, second = text.partition("/")
    if slash:
        start_s, end_s = moment_s(first, option), moment_s(second, option)
    elif "@" in text:
        length, _, ago = text.partition("@")
        end_s = now_s - length_s(ago, option)
        start_s = end_s - length_s(length, option)
    else:
        raise UsageError(f"{option} is {text!r}, not a span of time", hint=hint)
    if not 0 <= start_s < end_s:
        raise UsageError(f"{option} must end after it starts", hint=hint)
    if end_s > now_s:
        raise UsageError(f"{option} ends after the time that is diagnosed", hint=hint)
    return start_s, end_s


def _number_or_date_s(text: str) -> float:
    with suppress(ValueError):
        return float(text)
    parsed = datetime.fromisoformat(text)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def zone(text: str, option: str) -> tzinfo | None:
    """The zone named as `Europe/Berlin`, `UTC` or `+02:00`; None when the text is empty."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if not text:
        return None
    offset = re.fullmatch(r"([+-])(\d\d):?([0-5]\d)", text, re.ASCII)
    try:
        if offset is None:
            return ZoneInfo(text)
        length = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-length if offset[1] == "-" else length)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        hint = "Write it as Europe/Berlin, UTC or +02:00."
        raise UsageError(f"{option} is {text!r}, which is no time zone known here", hint=hint) from error
