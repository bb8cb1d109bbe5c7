"""Which program wrote a JSON line, and where it keeps its message: Ray Serve, Knative, TGI, Alertmanager, the stack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from latencydoctor.evidence.logs.structured_access import access_text

_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ns|µs|us|ms|s)$")
_UNIT_MS = {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1e3}
_TGI_TIMES = {
    "total_time": "total_ms",
    "validation_time": "validation_ms",
    "queue_time": "queue_ms",
    "inference_time": "inference_ms",
}
_TRACE_KEYS = ("exc_text", "exc_info", "exception", "traceback")
_QUIET = ("", "info", "information", "notice", "debug", "trace")
_ALERT_LEVELS = {"critical": "CRITICAL", "page": "CRITICAL", "error": "ERROR", "warning": "WARNING", "info": "INFO"}


class Told(NamedTuple):
    """What the keys say. `moment` is a time that stands where only this program has it; `fields` are in their units."""

    program: str
    text: str
    level: str = ""
    file_line: str = ""
    moment: str = ""
    source: str = ""
    process: str = ""
    fields: tuple[tuple[str, float], ...] = ()


def describe(values: Mapping[str, object]) -> Told:
    """Recognise the program of a JSON line by its keys; unknown ones give their message only."""
    if "alerts" in values and ("receiver" in values or "groupLabels" in values):
        return _alerts(values)
    if "target" in values:
        nested = values.get("fields")
        if isinstance(nested, dict):
            return _tgi(values, _text(nested, "message"))
        if _text(values, "target").startswith("text_generation"):
            return _tgi(values, _text(values, "message"))
    if values.get("action") == "EJECT" and "cluster_name" in values:
        return Told("envoy", f"outlier detection ejected {_text(values, 'upstream_url')}: {_text(values, 'type')}")
    message = _message(values)
    if "levelname" in values:
        return _python(values, message)
    if "caller" in values or ("logger" in values and "severity" in values):
        return Told("knative", message, file_line=_text(values, "caller"))
    access = access_text(values)
    if access:
        # A quiet line's message may be what a user wrote; its status speaks for itself.
        quiet = not message or _text(values, "level", "severity").lower() in _QUIET
        return Told("envoy" if "response_flags" in values else "proxy", access if quiet else f"{message}: {access}")
    return Told("stack" if "event" in values and "message" in values else "", message)


def duration_ms(text: str) -> float | None:
    """A Rust duration such as `1.2µs` or `3.4s` in milliseconds; None if it is none."""
    match = _DURATION.match(text)
    return None if match is None else float(match[1]) * _UNIT_MS[match[2]]


def _text(values: Mapping[str, object], *keys: str) -> str:
    for key in keys:
        value = values.get(key)
        if isinstance(value, str):
            return value
    return ""


def _message(values: Mapping[str, object]) -> str:
    """The message with the error that it is about, and the traceback, where these stand in fields of their own."""
    message = _text(values, "message", "msg")
    error = _text(values, "error", "err")
    if error and error not in message:
        message = f"{message}: {error}" if message else error
    trace = _text(values, *_TRACE_KEYS)
    return f"{message}\n{trace}" if trace else message


def _python(values: Mapping[str, object], message: str) -> Told:
    """Python's logging as JSON; Ray Serve's two schemas name what served the request."""
    place = f"{_text(values, 'filename')}:{values['lineno']}" if "filename" in values and "lineno" in values else ""
    serve = any(key in values for key in ("component_name", "deployment", "replica"))
    process = " ".join(
        value for key in ("deployment", "component_name", "replica", "component_id") if (value := _text(values, key))
    )
    return Told("ray" if serve else "", message, file_line=place, process=process if serve else "")


def _tgi(values: Mapping[str, object], message: str) -> Told:
    fields: dict[str, float] = {}
    span = values.get("span")
    for holder in (values, span if isinstance(span, dict) else {}):
        for key, name in _TGI_TIMES.items():
            written = _text(holder, key)
            value = duration_ms(written)
            if value is not None and name not in fields:
                fields[name] = value
                message = f'{message} {key}="{written}"'
    place = f"{_text(values, 'filename')}:{values['line_number']}" if "line_number" in values else ""
    return Told("tgi", message, file_line=place, fields=tuple(fields.items()))


def _alerts(values: Mapping[str, object]) -> Told:
    """An alert group: it tells of what fires in it; a group may hold resolved alerts too, or nothing else."""
    alerts = values.get("alerts")
    listed = [one for one in alerts if isinstance(one, dict)] if isinstance(alerts, list) else []
    firing = [one for one in listed if one.get("status") != "resolved"]
    starts = sorted(start for one in firing or listed if (start := _text(one, "startsAt")))
    common = values.get("commonLabels")
    labels = common if isinstance(common, dict) else {}
    told = []
    levels = []
    for one in (firing or listed)[:10]:
        own = one.get("labels")
        own_labels = own if isinstance(own, dict) else {}
        notes = one.get("annotations")
        summary = _text(notes, "summary", "description", "message") if isinstance(notes, dict) else ""
        told.append(f"{_text(own_labels, 'alertname') or _text(labels, 'alertname')}: {summary}".rstrip(": "))
        levels.append(_ALERT_LEVELS.get((_text(own_labels, "severity") or _text(labels, "severity")).lower(), ""))
    worst = next((level for level in ("CRITICAL", "ERROR", "WARNING") if level in levels), "")
    text = "; ".join(dict.fromkeys(told)) or _text(values, "title", "message")
    return Told("alertmanager", text, worst if firing else "INFO", moment=starts[0] if starts else "")
