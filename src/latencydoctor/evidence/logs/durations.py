"""Durations inside messages: what timed out after ten minutes began ten minutes before the line says so."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import clock_s
from latencydoctor.evidence.logs.lines import LineRecord

_UNITS = r"(milliseconds|millisecs|msecs|ms|seconds|second|secs|sec|s|minutes|minute|mins|min)\b"
_NUMBER = r"(\d{1,10}(?:\.\d{1,9})?) ?"
_SPANS = tuple(
    re.compile(words + _NUMBER + _UNITS + after, re.ASCII | re.IGNORECASE)
    for words, after in (
        (r"\bran for ", " before timing out"),
        (r"\btimed out (?:after|in) (?:waiting )?", ""),
        (r"\b(?:stuck|blocked|hung|unresponsive|no progress) for (?:more than |over )?", ""),
        (r"\b(?:found|progress|response|heartbeat|answer) (?:in|within|for)(?: the)?(?: last)? ", ""),
        (r"\bfor(?: the)? last ", ""),
        (r"\b(?:did not|didn't|not) (?:respond|answer|finish|complete)(?:ed|ing)? (?:in|within|for|after) ", ""),
        (r"\bwait(?:ed|ing) (?:for )?(?:more than |over )?", r" (?:before|and gave up|without)"),
    )
)
_HEARTBEAT = re.compile(r"tic start time: (\d\d:\d\d:\d\d)\. last_heartbeat time: (\d\d:\d\d:\d\d)", re.ASCII)
_HINTS = ("for ", "out ", " in ", "within", "heartbeat", "wait")
_LOOKED_AT_CHARACTERS = 4096
_DAY_S = 86_400.0
_LONGEST_S = 2 * _DAY_S


def began_s(record: LineRecord) -> float | None:
    """When what a record tells of began: its moment, moved back by a duration in its text; None without a moment.

    Only durations that end with the line count: settings, and figures of work that was done, do not.
    """
    if record.began_s is not None:
        return record.began_s
    if record.time_s is None:
        return None
    return record.time_s - lasted_s(record.text)


def lasted_s(text: str) -> float:
    """How long before the line that it stands on something began, by the line's own words; 0 if it does not say."""
    if not any(hint in text for hint in _HINTS):
        return 0.0
    beats = _HEARTBEAT.search(text, 0, _LOOKED_AT_CHARACTERS)
    if beats is not None:
        seen, last = clock_s(beats[1]), clock_s(beats[2])
        # These clocks have no date: the difference over midnight is a day short.
        return (seen - last) % _DAY_S if seen is not None and last is not None else 0.0
    for pattern in _SPANS:
        match = pattern.search(text, 0, _LOOKED_AT_CHARACTERS)
        if match is not None:
            return min(float(match[1]) * _scale(match[2]), _LONGEST_S)
    return 0.0


def _scale(unit: str) -> float:
    if unit.startswith("mi") and not unit.startswith("mill"):
        return 60.0
    return 1e-3 if unit.startswith("m") else 1.0
