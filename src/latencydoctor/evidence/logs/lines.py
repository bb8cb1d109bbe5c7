"""What one log line says: its moment, its level, its message and its numbers, whichever known format it has.

Formats are tried in order by `read_line`; each is one function from text to `LineRecord | None`, so a further format
is a further function. Known here: the bundled stack's JSON event lines (and any JSON line with a message), Triton's
two text formats with escaped messages, and stamped lines in general (an RFC 3339 or ISO stamp in front).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeGuard, cast

from latencydoctor.evidence.logs.clock import parse_rfc3339, resolve_year

_TRITON = re.compile(
    r"([EWI])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d\.\d{1,9}) \d+ [\w./-]+:\d+\] ?(.*)", re.ASCII | re.DOTALL
)
_TRITON_ISO = re.compile(r"(\d{4}-\d\d-\d\dT[\d:]{8}Z) ([EWI]) \d+ [\w./-]+:\d+\] ?(.*)", re.ASCII | re.DOTALL)
_STAMPED = re.compile(r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)(.*)", re.DOTALL)
_LEVELS = {"E": "ERROR", "W": "WARNING", "I": "INFO", "WARN": "WARNING", "FATAL": "CRITICAL"}
_TIME_KEYS = ("time", "timestamp", "ts", "asctime")
_LEVEL_KEYS = ("level", "severity", "levelname")
_MESSAGE_KEYS = ("message", "msg", "error")
_RANK = re.compile(r"\[rank(\d+)\]:? ?|\(Worker_TP(\d+) pid=\d+\) ?|(?<= )TP(\d+)\]", re.ASCII)
_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]", re.ASCII)
# Terminal colour sequences go as a whole; then whatever is left of the control characters.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class LineRecord:
    """One line, understood. `event` is the name a structured line gives itself; `count` the events it stands for.

    `level` is empty where the format has none. `continued` marks a line without a head of its own: a row of a table,
    a frame of a traceback, or a program that prints no stamp; `structured` one that was a JSON object. `rank` is the
    worker's number where a prefix names one.
    """

    time_s: float | None
    level: str
    text: str
    event: str = ""
    fields: tuple[tuple[str, float], ...] = ()
    count: int = 1
    continued: bool = False
    structured: bool = False
    rank: str = ""


def clean(data: bytes) -> str:
    """The text of a line as it may be shown: undecodable bytes replaced, control and direction characters gone."""
    return _CONTROL.sub("", data.decode("utf-8", "replace"))


def read_line(text: str, reference_s: float) -> LineRecord:
    """What a cleaned line says; `reference_s` gives stamps without a year theirs. Never fails."""
    record = _json_line(text) or _triton_line(text, reference_s) or _stamped_line(text)
    return record or _with_marks(None, "", text, continued=True)


def _json_line(text: str) -> LineRecord | None:
    if not text.startswith("{"):
        return None
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    values = cast("dict[str, object]", parsed)
    level = _first_text(values, _LEVEL_KEYS).upper()
    event = values.get("event")
    fields = {key: float(value) for key, value in values.items() if _is_number(value)}
    return LineRecord(
        time_s=parse_rfc3339(_first_text(values, _TIME_KEYS)),
        level=_LEVELS.get(level, level),
        text=_first_text(values, _MESSAGE_KEYS),
        event=event if isinstance(event, str) else "",
        fields=tuple(sorted(fields.items())),
        count=max(1, int(fields.get("count", 1))),
        structured=True,
    )


def _first_text(values: dict[str, object], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := values.get(key), str)), "")


def _is_number(value: object) -> TypeGuard[float]:
    # Python's reader takes NaN, Infinity and integers of any length; none of those is a measurement.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18


def _triton_line(text: str, reference_s: float) -> LineRecord | None:
    match = _TRITON.match(text)
    if match is not None:
        clock = (int(match[4]), int(match[5]), float(match[6]))
        moment = resolve_year(int(match[2]), int(match[3]), clock, reference_s)
        return _with_marks(moment, _LEVELS[match[1]], _unescape(match[7]))
    match = _TRITON_ISO.match(text)
    if match is not None:
        return _with_marks(parse_rfc3339(match[1]), _LEVELS[match[2]], _unescape(match[3]))
    return None


def _stamped_line(text: str) -> LineRecord | None:
    match = _STAMPED.match(text)
    if match is None:
        return None
    level = re.search(r"\b(CRITICAL|FATAL|ERROR|WARN(?:ING)?|INFO|DEBUG)\b", match[2][:80])
    return _with_marks(parse_rfc3339(match[1]), _LEVELS.get(level[1], level[1]) if level else "", match[2])


def _unescape(message: str) -> str:
    """Triton writes messages as JSON strings since 2024; older ones are plain."""
    if len(message) < 2 or not (message.startswith('"') and message.endswith('"')):
        return message
    try:
        inner: object = json.loads(message)
    except ValueError:
        return message[1:-1]
    return inner if isinstance(inner, str) else message


def _with_marks(time_s: float | None, level: str, text: str, continued: bool = False) -> LineRecord:
    rank = _RANK.search(text[:200])
    repeated = _REPEATED.search(text[-200:])
    number = next((group for group in rank.groups() if group is not None), "") if rank else ""
    count = max(1, int(repeated[1])) if repeated else 1
    return LineRecord(time_s, level, text, count=count, continued=continued, rank=number)
