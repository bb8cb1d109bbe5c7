"""PyTorch's C++ lines (c10d above all), NCCL's, and those of UCX, which moves KV blocks between engines."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import clock_s
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft

_C10D = re.compile(
    r"\[([EWIFVD])(?:(\d\d)(\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?: \d{1,10})?)? "
    r"([\w./-]{1,200}\.\w{1,4}:\d{1,7})\] ?",
    re.ASCII,
)
_RANK = re.compile(r"(?:\[| )Rank (\d{1,6})\]", re.ASCII)
_NCCL = re.compile(
    r"(\S{1,255}):(\d{1,10}):(\d{1,10}) \[(\d{1,4})\] (?:\S{1,200} )?NCCL (INFO|WARN|ABORT|TRACE|VERSION)\b ?", re.ASCII
)
_UCX = re.compile(
    r"\[(\d{9,10}\.\d{6})\] \[[^\]\s]{1,255}:\d{1,10} {0,4}:\d{1,6}\] {1,30}(\S{1,100}:\d{1,7}) {1,4}UCX {1,4}"
    r"(FATAL|ERROR|WARN|DIAG|INFO|DEBUG|TRACE)\b ?",
    re.ASCII,
)
_NCCL_LEVELS = {"INFO": "INFO", "WARN": "WARNING", "ABORT": "CRITICAL", "TRACE": "DEBUG", "VERSION": "INFO"}


def bracket(text: str, draft: Draft, dating: Dating) -> str | None:
    """`[L<MMDD> HH:MM:SS.nnnnnnnnn <file>.cpp:<line>] <message>`; before torch 2.4 without the time."""
    match = _C10D.match(text)
    if match is None:
        return None
    letter, month, day, hms, fraction, place = match.groups()
    if month is not None:
        clock = clock_s(hms, fraction)
        naive_s = None if clock is None else dating.yearless(int(month), int(day), clock, draft)
        if naive_s is not None:
            draft.naive_s, draft.zone_s = naive_s, None
            dating.own(draft, "pytorch")
    draft.head("pytorch", LEVELS[letter], place)
    message = text[match.end() :]
    rank = _RANK.search(message, 0, 300)
    if rank is not None:
        draft.rank = draft.rank or rank[1]
    return message


def nccl(text: str, draft: Draft, _dating: Dating) -> str | None:
    """`<host>:<pid>:<tid> [<dev>] NCCL INFO|WARN <message>`."""
    if text.find(" NCCL ", 0, 600) < 0:
        return None
    match = _NCCL.match(text)
    if match is None:
        return None
    draft.head("nccl", _NCCL_LEVELS[match[5]])
    # Devices tell ranks apart on a node; the process does so across nodes.
    draft.rank = draft.rank or f"{match[1]}:{match[2]}:{match[4]}"
    # The library's name stays: its messages alone could be anyone's.
    return text[match.start(5) - len("NCCL ") :]


def ucx(text: str, draft: Draft, dating: Dating) -> str | None:
    """`[<seconds since 1970>.<micros>] [<host>:<pid>:<n>] <file>:<line> UCX  <LEVEL> <message>`."""
    match = _UCX.match(text)
    if match is None:
        return None
    draft.naive_s, draft.zone_s = float(match[1]), 0.0
    dating.own(draft, "ucx")
    draft.head("ucx", LEVELS.get(match[3], "INFO"), match[2])
    return text[match.end() :]
