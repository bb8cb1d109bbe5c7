"""TGI's launcher and router in text form: Rust's compact tracing lines. Always UTC."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft
from latencydoctor.evidence.logs.structured_programs import duration_ms

_LEVEL = re.compile(r" {1,4}(TRACE|DEBUG|INFO|WARN|ERROR) ", re.ASCII)
_SPAN = re.compile(r"[\w-]{1,60}(?:\{[^{}]{0,20000}\})?: ?", re.ASCII)
_TARGET = re.compile(r"(text_generation\w{0,40}(?:::\w{1,60}){0,6}|[a-z_]\w{0,60}(?:::\w{1,60}){1,8}): ", re.ASCII)
_PLACE = re.compile(r"([\w./-]{1,200}\.rs:\d{1,7}): ", re.ASCII)
# Fields of a span may hold braces, and what users asked for; the launcher and the router name themselves behind it.
_LATER = re.compile(r"(text_generation\w{0,40}(?:::\w{1,60}){0,6}): ", re.ASCII)
_TIMES = re.compile(r"\b(total|validation|queue|inference)_time=\"([^\"]{1,40})\"", re.ASCII)
_MOST_SPANS = 6


def after_stamp(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`  LEVEL [<span>{k=v}:]<target>: [<file>:<line>: ]<message>[ k=v]`, behind the stamp.

    A request's times stand in its spans; they are handed on behind the message too, where patterns see them.
    """
    level = _LEVEL.match(rest)
    if level is None:
        return None
    position = level.end()
    target = _TARGET.match(rest, position)
    for _ in range(_MOST_SPANS):
        if target is not None:
            break
        span = _SPAN.match(rest, position)
        if span is None:
            target = _LATER.search(rest, position, position + 32_768)
            break
        position = span.end()
        target = _TARGET.match(rest, position)
    if target is None:
        return None
    dating.own(draft, "tgi")
    place = _PLACE.match(rest, target.end())
    draft.head("tgi", LEVELS[level[1]], place[1] if place else "")
    message = rest[(place or target).end() :]
    if "queue_time=" not in rest:
        return message
    found = dict(_TIMES.findall(rest))
    times = ((name, duration_ms(value)) for name, value in found.items())
    draft.fields = tuple(sorted((f"{name}_ms", value) for name, value in times if value is not None))
    return " ".join((message, *(f'{name}_time="{value}"' for name, value in found.items())))
