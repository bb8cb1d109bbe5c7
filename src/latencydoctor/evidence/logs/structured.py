"""Lines that are one JSON object: a wrapper's around a program's text, or a program's own.

One parse serves all of them; which keys there are tells whose line it is. Wrappers (Docker, journald, cloud exports)
hand back the text inside, which may again be a line of any format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeGuard, cast

from latencydoctor.evidence.logs.clock import ISO, epoch_s, iso_parts, parse_rfc3339
from latencydoctor.evidence.logs.damage import tidy
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft
from latencydoctor.evidence.logs.structured_programs import describe
from latencydoctor.evidence.logs.wrappers import SYSLOG_LEVELS, unix_micros

_PIECE_KEYS = ("log", "stream", "time")
_TIME_KEYS = ("time", "timestamp", "ts", "asctime", "@timestamp", "eventTime", "date")
_LEVEL_KEYS = ("level", "severity", "levelname", "lvl", "log.level")
_STATUS_KEYS = ("status", "status_code", "http_status", "response_code", "code")
_NUMBERS = (int, float)
_NUMBERED_LEVELS = {10: "DEBUG", 20: "DEBUG", 30: "INFO", 40: "WARNING", 50: "ERROR", 60: "CRITICAL"}


def json_line(text: str, draft: Draft, dating: Dating) -> str | None:
    """One JSON object, whoever wrote it; None for anything else."""
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    values = cast("dict[str, object]", parsed)
    inner = _wrapped(values, draft, dating)
    return _own(values, draft, dating) if inner is None else inner


def _wrapped(values: dict[str, object], draft: Draft, dating: Dating) -> str | None:
    log = values.get("log")
    if isinstance(log, str) and ("stream" in values or "time" in values or len(values) == 1):
        return _docker(log, values, draft, dating)
    if "MESSAGE" in values:
        return _journald(values, draft, dating)
    if "textPayload" in values or "jsonPayload" in values:
        return _cloud(values, draft, dating)
    return None


def _docker(log: str, values: Mapping[str, object], draft: Draft, dating: Dating) -> str:
    """Docker's json-file driver: the text ends with a newline, except where a long line was cut."""
    stream = values.get("stream")
    if stream in ("stdout", "stderr"):
        draft.stream = str(stream)
    _wrapper_time(values, ("time", "date", "@timestamp"), draft, dating)
    place = values.get("kubernetes")
    if isinstance(place, dict):
        draft.within("/".join(str(place[key]) for key in ("pod_name", "container_name") if key in place))
    draft.partial = not log.endswith("\n") and all(key in values for key in _PIECE_KEYS)
    return tidy(log.rstrip("\r\n"))


def _journald(values: Mapping[str, object], draft: Draft, dating: Dating) -> str:
    """journald's JSON: all values are strings, but what is no text is an array of byte numbers.

    A field that an entry has more than once is an array of either.
    """
    message = _text_of(values["MESSAGE"])
    journal_fields({key: value for key, value in values.items() if isinstance(value, str)}, draft, dating)
    return tidy(message.rstrip("\r\n"))


def _text_of(value: object, most_inner: int = 1) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    if most_inner and value and all(isinstance(one, str | list) for one in value):
        return "\n".join(_text_of(one, most_inner - 1) for one in value)
    return bytes(one for one in value if isinstance(one, int) and 0 <= one < 256).decode("utf-8", "replace")


def journal_fields(values: Mapping[str, str], draft: Draft, dating: Dating) -> None:
    """What the fields of a journal's entry say about its message: when, whose, how bad."""
    moment = unix_micros(values.get("__REALTIME_TIMESTAMP", ""))
    if moment is not None:
        draft.naive_s, draft.zone_s = moment, 0.0
        dating.wrapped(draft)
    transport = values.get("_TRANSPORT", "")
    ident = values.get("SYSLOG_IDENTIFIER", "")
    if transport == "kernel" or ident == "kernel":
        draft.program, draft.whole = "kernel", True
        draft.within(values.get("_HOSTNAME", ""))
    else:
        if not ident.startswith("systemd"):
            draft.within(values.get("CONTAINER_NAME") or values.get("_SYSTEMD_UNIT") or ident)
        else:
            draft.program, draft.whole = "systemd", True
            draft.within(values.get("UNIT", ""))
    # What a container or a unit prints gets a level by its stream, whatever it says.
    if "CONTAINER_NAME" not in values and transport != "stdout":
        draft.priority = SYSLOG_LEVELS.get(values.get("PRIORITY", ""), "")


def _cloud(values: Mapping[str, object], draft: Draft, dating: Dating) -> str | None:
    """A cloud's log export: its severity is a default by the stream."""
    _wrapper_time(values, ("timestamp", "receiveTimestamp"), draft, dating)
    resource = values.get("resource")
    labels = resource.get("labels") if isinstance(resource, dict) else None
    if isinstance(labels, dict):
        names = (labels.get("pod_name"), labels.get("container_name"))
        draft.within("/".join(one for one in names if isinstance(one, str)))
    inner = values.get("textPayload")
    if isinstance(inner, str):
        return tidy(inner.rstrip("\r\n"))
    payload = values.get("jsonPayload")
    return _own(cast("dict[str, object]", payload), draft, dating) if isinstance(payload, dict) else None


def _wrapper_time(values: Mapping[str, object], keys: tuple[str, ...], draft: Draft, dating: Dating) -> None:
    parts = _stamp(values, keys)
    if parts is not None:
        draft.naive_s, draft.zone_s = parts
        dating.wrapped(draft)


def _own(values: dict[str, object], draft: Draft, dating: Dating) -> str:
    """A program's own JSON line. Only its message decides what it means: other fields hold what users wrote."""
    told = describe(values)
    parts = _stamp(values, _TIME_KEYS)
    if parts is None and told.moment:
        moment = parse_rfc3339(told.moment)
        parts = None if moment is None else (moment, 0.0)
    draft.head(told.program, told.level or _level(values), told.file_line)
    draft.structured = True
    if parts is not None:
        draft.naive_s, draft.zone_s = parts
        dating.own(draft, told.program)
    event = values.get("event")
    draft.event = event if isinstance(event, str) else ""
    fields = {key: float(value) for key, value in values.items() if type(value) in _NUMBERS and is_number(value)}
    fields.update(told.fields)
    draft.fields = tuple(sorted(fields.items())) if fields else ()
    draft.within(told.source)
    draft.process = told.process or draft.process
    # Elsewhere a count is any number; where the line names an event it says how often that happened.
    draft.count = max(1, int(fields.get("count", 1))) if draft.event else 1
    if fields:
        draft.status = next((int(fields[key]) for key in _STATUS_KEYS if 100 <= fields.get(key, 0) <= 599), 0)
    return tidy(told.text or draft.event)


def _stamp(values: Mapping[str, object], keys: tuple[str, ...]) -> tuple[float, float | None] | None:
    for key in keys:
        value = values.get(key)
        if isinstance(value, str):
            match = ISO.match(value)
            parts = iso_parts(match) if match else None
            if parts is not None:
                return parts
        elif type(value) in _NUMBERS and isinstance(value, int | float):
            moment = epoch_s(value)
            if moment is not None:
                return moment, 0.0
    return None


def _level(values: Mapping[str, object]) -> str:
    for key in _LEVEL_KEYS:
        value = values.get(key)
        if isinstance(value, str):
            return LEVELS.get(value.strip().upper(), "")
        if isinstance(value, int):
            return _NUMBERED_LEVELS.get(value, "")
    return ""


def is_number(value: object) -> TypeGuard[float]:
    """Whether a JSON value is a measurement: Python's reader takes NaN, Infinity and integers of any length too."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18
