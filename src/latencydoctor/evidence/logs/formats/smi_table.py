"""`nvidia-smi --query-gpu=... --format=csv`: rows whose columns only the header names, of which the clock reasons tell.

A header is remembered with its stream. A row under it says at its end which harmful reasons lower the clocks; that the
card is held at its power limit or has nothing to do is normal and is not told.
"""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import clock_s, date_s
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import Draft

_HEADER = re.compile(
    r"[a-z][\w.]{1,80}(?: \[[\w/%]{1,12}\])?(?:, [a-z][\w.]{1,80}(?: \[[\w/%]{1,12}\])?){0,80}$", re.ASCII
)
_REASON = re.compile(r"clocks_(?:throttle|event)_reasons\.(\w{1,40})$", re.ASCII)
_HARMFUL = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
_BITS = {0x8: "hw_slowdown", 0x20: "sw_thermal_slowdown", 0x40: "hw_thermal_slowdown", 0x80: "hw_power_brake_slowdown"}
_ACTIVE = "active"
"""The column that holds all reasons at once, as bits."""

_STAMP = re.compile(r"(\d{4}/\d\d/\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?, ", re.ASCII)
_BITS_VALUE = re.compile(r"0x[0-9A-Fa-f]{1,16}$", re.ASCII)


def header(text: str, draft: Draft, dating: Dating) -> str | None:
    """`timestamp, index, clocks_event_reasons.hw_slowdown, ...`: what the columns below are."""
    if "clocks_" not in text[:2000] or "_reasons." not in text[:2000] or _HEADER.match(text) is None:
        return None
    dating.columns = tuple(column.partition(" [")[0] for column in text.split(", "))
    draft.head("nvidia_smi", "INFO")
    return text


def row(text: str, draft: Draft, dating: Dating) -> str | None:
    """A row under such a header, followed by the harmful reasons that are active in it."""
    if not dating.columns or text.count(", ") != len(dating.columns) - 1:
        return None
    values = text.split(", ")
    reasons = sorted(
        {name for column, value in zip(dating.columns, values, strict=True) for name in _told(column, value)}
    )
    stamp = _STAMP.match(text)
    midnight, clock = (date_s(stamp[1]), clock_s(stamp[2], stamp[3])) if stamp else (None, None)
    if midnight is not None and clock is not None:
        draft.naive_s, draft.zone_s = midnight + clock, None
        dating.own(draft, "nvidia_smi")
    draft.head("nvidia_smi")
    return f"{text} (clocks lowered by {len(reasons)} reasons: {', '.join(reasons)})" if reasons else text


def _told(column: str, value: str) -> list[str]:
    match = _REASON.match(column)
    if match is None:
        return []
    if match[1] == _ACTIVE and _BITS_VALUE.match(value):
        bits = int(value, 16)
        return [name for bit, name in _BITS.items() if bits & bit]
    return [match[1]] if match[1] in _HARMFUL and value == "Active" else []
