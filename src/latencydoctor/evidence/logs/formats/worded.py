"""Lines that begin with their level as a word: vLLM, Ray and Ray Serve, uvicorn, Python's logging."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import ISO, clock_s, iso_parts
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft
from latencydoctor.evidence.logs.formats import ray

_VLLM = re.compile(
    r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) {1,4}(\d\d)-(\d\d) (\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))? "
    r"(?:\[([^\s\]]{1,200}:\d{1,7})\]|([^\s\]]{1,200}:\d{1,7})\]) ?",
    re.ASCII,
)
_LEVEL = re.compile(
    r"(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)(?::( {1,9})|:([\w.\-]{1,100}):| {1,9}|\t)", re.ASCII
)


def level_first(text: str, draft: Draft, dating: Dating) -> str | None:
    """Any line with a level in front; None where the word does not stand for one."""
    match = _VLLM.match(text)
    if match is not None:
        return _vllm(text, match, draft, dating)
    match = _LEVEL.match(text)
    if match is None:
        return None
    level, padding, logger = match.groups()
    rest = text[match.end() :]
    if padding is not None or logger is not None:
        # uvicorn pads its prefix to ten columns; a level that fills them leaves one space.
        uvicorn = padding is not None and len(match[0]) == 10
        draft.head("uvicorn" if uvicorn else "", LEVELS[level])
        return rest
    stamp = ISO.match(rest)
    parts = iso_parts(stamp) if stamp else None
    if stamp is None or parts is None or rest[10:11] != " ":
        return None
    draft.naive_s, draft.zone_s = parts
    return ray.serve(rest[stamp.end() :], level, draft, dating)


def _vllm(text: str, match: re.Match[str], draft: Draft, dating: Dating) -> str:
    level, month, day, hms, fraction, place, old_place = match.groups()
    clock = clock_s(hms, fraction)
    naive_s = None if clock is None else dating.yearless(int(month), int(day), clock, draft)
    if naive_s is not None:
        draft.naive_s, draft.zone_s = naive_s, None
        dating.own(draft, "vllm")
    draft.head("vllm", LEVELS[level], place or old_place)
    return text[match.end() :]
