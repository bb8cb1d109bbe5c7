"""`key=value` lines: Prometheus, Alertmanager, containerd, dockerd, and Valkey where it is told to write so."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import ISO, epoch_s, iso_parts
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft

_START = re.compile(r"(?:time|ts|timestamp|level|lvl|t|pid|logger|msg|caller)=", re.ASCII)
_PAIR = re.compile(r"([A-Za-z_][\w.-]{0,60})=(?:\"((?:[^\"\\]|\\.){0,8000})\"|([^\s\"]{0,2000}))(?: |$)", re.ASCII)
_LOOKED_AT = 16_384
_MOST_PAIRS = 60
_TIMES = ("time", "ts", "timestamp", "t")
_ESCAPED = re.compile(r"\\(.)")


def pairs(text: str, draft: Draft, dating: Dating) -> str | None:
    """A line of pairs with a message among them."""
    if "=" not in text[:10] or not _START.match(text):
        return None
    values = _values(text)
    message = values.get("msg") or values.get("message")
    level = LEVELS.get((values.get("level") or values.get("lvl") or "").upper(), "")
    if message is None and "err" not in values and not level:
        return None
    program = _program(values)
    parts = _stamp(values)
    if parts is not None:
        draft.naive_s, draft.zone_s = parts
        dating.own(draft, program)
    draft.head(program, level, values.get("caller") or values.get("source") or "")
    error = values.get("err") or values.get("error") or ""
    return ": ".join(one for one in (message, error) if one) or text


def _values(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    position = 0
    for _ in range(_MOST_PAIRS):
        match = _PAIR.match(text, position, _LOOKED_AT)
        if match is None:
            break
        key, quoted, bare = match.groups()
        found.setdefault(key, bare if quoted is None else _ESCAPED.sub(r"\1", quoted.replace("\\n", "\n")))
        position = match.end()
    return found


def _stamp(values: dict[str, str]) -> tuple[float, float | None] | None:
    for key in _TIMES:
        value = values.get(key, "")
        match = ISO.match(value)
        if match is not None:
            return iso_parts(match)
        if re.fullmatch(r"\d{9,19}(?:\.\d{1,9})?", value, re.ASCII):
            moment = epoch_s(float(value))
            return None if moment is None else (moment, 0.0)
    return None


def _program(values: dict[str, str]) -> str:
    if "role" in values and "pid" in values:
        return "redis"
    component = f"{values.get('component', '')} {values.get('caller', '')} {values.get('source', '')}"
    if "alertmanager" in component or "dispatcher" in component or "notify" in component:
        return "alertmanager"
    return "prometheus" if "caller" in values or "source" in values else ""
