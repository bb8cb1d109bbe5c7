"""KServe's server lines."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft

_LINE = re.compile(
    r" (?:\d{1,10} )?([A-Za-z_][\w.]{1,100}) (DEBUG|INFO|WARNING|ERROR|CRITICAL):? {1,9}"
    r"(?:\[(\S{1,100}\(\)):(\d{1,7})\] ?)?",
    re.ASCII,
)
_TIMING = re.compile(r"(?: \d{1,10})? [\w.]{1,100} [\w.:]{1,200} (\d{1,9}(?:\.\d{1,20})?) ?, ?\[", re.ASCII)
_STATUS = re.compile(r"'http_status:(\d{3})'", re.ASCII)


def after_stamp(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`YYYY-MM-DD HH:MM:SS.mmm [<pid> ]<logger> LEVEL[:] [<func>():<line>] <message>`, behind the stamp."""
    match = _LINE.match(rest)
    if match is not None:
        logger, level, function, line = match.groups()
        program = "uvicorn" if logger.startswith("uvicorn") else "kserve" if function or "kserve" in logger else ""
        dating.own(draft, program)
        draft.head(program, LEVELS[level], f"{function}:{line}" if function else "")
        timing(rest, draft)
        return rest[match.end() :]
    if "'http_status:" not in rest:
        return None
    dating.own(draft, "kserve")
    draft.head("kserve")
    timing(rest, draft)
    return rest.lstrip(" ")


def timing(text: str, draft: Draft) -> None:
    """`<metric> <seconds float>, ['http_status:500', 'http_method:POST', 'time:wall']`."""
    status = _STATUS.search(text, 0, 2000) if "'http_status:" in text else None
    if status is None:
        return
    draft.status = int(status[1])
    seconds = _TIMING.match(text)
    if seconds is not None:
        draft.fields = (("request_ms", float(seconds[1]) * 1e3),)
