"""The kernel's ring buffer: seconds since the boot, or a wall clock worked out of them by `dmesg -T`."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import MONTHS, clock_s, midnight_s
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import Draft

_UPTIME = re.compile(r"\[ {0,11}(\d{1,10}\.\d{6})\](?:\[ {0,12}[TC]\d{1,10}\])? ?", re.ASCII)
_WALL = re.compile(
    r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d) (\d{4})\] ?", re.ASCII
)
_HOST = re.compile(r"(?!(?:NVRM|Out|Memory|INFO|BUG)\b)[^\s:\[]{1,255} kernel: ", re.ASCII)


def uptime(text: str, draft: Draft, dating: Dating) -> str | None:
    """`[<seconds>.<micros>] <message>`, alone or behind a journal's head."""
    match = _UPTIME.match(text)
    if match is None:
        return None
    dating.since_boot(float(match[1]), draft)
    draft.head("kernel")
    rest = text[match.end() :]
    # journald's short-monotonic form.
    host = _HOST.match(rest)
    return rest[host.end() :] if host else rest


def wall_clock(text: str, draft: Draft, dating: Dating) -> str | None:
    """`[Www Mon DD HH:MM:SS YYYY] <message>`: local time, and it drifts while a machine sleeps."""
    match = _WALL.match(text)
    if match is None:
        return None
    month, day, hms, year = match.groups()
    midnight = midnight_s(int(year), MONTHS[month], int(day)) if month in MONTHS else None
    clock = clock_s(hms)
    if midnight is None or clock is None:
        return None
    draft.naive_s, draft.zone_s = midnight + clock, None
    dating.own(draft, "kernel")
    draft.head("kernel")
    return text[match.end() :]
