"""Lines that begin with a date in brackets: SGLang, gunicorn, Ray's C++ parts, and others; and levels in brackets."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import ISO, iso_parts
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft
from latencydoctor.evidence.logs.formats import collectives, proxies, ray
from latencydoctor.evidence.logs.formats.dated import generic
from latencydoctor.evidence.logs.formats.worded import level_first

_TAGS = re.compile(r"((?: [A-Z]{2}\d{1,4}){0,4})\] ?", re.ASCII)
_GUNICORN = re.compile(r"\] \[(\d{1,10})\] \[(DEBUG|INFO|WARNING|ERROR|CRITICAL)\] ?", re.ASCII)
_DIGITS = re.compile(r"\d{1,4}", re.ASCII)
_LEVEL = re.compile(r"\[(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\] ?", re.ASCII)


def dated(text: str, draft: Draft, dating: Dating) -> str | None:
    """`[<date> <clock>...] ...`."""
    stamp = ISO.match(text, 1)
    parts = iso_parts(stamp) if stamp else None
    if stamp is None or parts is None:
        return None
    draft.naive_s, draft.zone_s = parts
    rest = text[stamp.end() :]
    gunicorn = _GUNICORN.match(rest)
    if gunicorn is not None:
        dating.own(draft, "gunicorn")
        draft.head("gunicorn", LEVELS[gunicorn[2]])
        return rest[gunicorn.end() :]
    if rest.startswith('] "'):
        return proxies.envoy_request(rest[2:], draft, dating)
    whole = draft.zone_s is None and stamp[3] is None
    found = _sglang(rest, draft, dating) if whole else ray.core(rest, draft, dating)
    if found is not None:
        return found
    rest = rest.removeprefix("]")
    inner = collectives.nccl(rest.lstrip(" "), draft, dating)
    if inner is not None:
        dating.own(draft, "nccl")
        return inner
    return generic(rest, draft, dating)


def _sglang(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`[YYYY-MM-DD HH:MM:SS[ <rank tags>]] <message>`: no level of its own, but uvicorn's lines inside have one."""
    match = _TAGS.match(rest)
    if match is None:
        return None
    dating.own(draft, "sglang")
    draft.rank = ".".join(_DIGITS.findall(match[1])) or draft.rank
    message = rest[match.end() :]
    inner = level_first(message, draft, dating) if message[:1] in "TDIWEC" else None
    draft.head("sglang", draft.level)
    return message if inner is None else inner


def level(text: str, draft: Draft, _dating: Dating) -> str | None:
    """`[ERROR] <message>`."""
    match = _LEVEL.match(text)
    if match is None:
        return None
    draft.head("", LEVELS[match[1]])
    return text[match.end() :]
