"""Ray Serve's text lines and Ray's own, from Python and from C++."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft

_SERVE = re.compile(r" (\S{1,200}) (\S{1,200}) (?:(\S{1,200}) )?-- ", re.ASCII)
_OLD_SERVE = re.compile(
    r" (\S{1,200}) (?:(\S{1,200}) )?(?:\S{1,200} ){0,3}?(\w[\w.]{0,100}\.py:\d{1,6}) -{1,2} ", re.ASCII
)
_CORE = re.compile(r" ([DIWEFC]) \d{1,10} \d{1,10}\] (?:\(([\w.-]{1,100})\) )?(\S{1,200}:\d{1,7}): ?", re.ASCII)
_PYTHON = re.compile(r"\t(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\S{1,200}:\d{1,7}) -- ", re.ASCII)
_ACCESS = re.compile(
    r"(?:\S{1,200} )?(?:GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS|CALL|WS) (?:\S{1,4000} )?"
    r"(\w{2,20}) (\d{1,10}(?:\.\d{1,6})?)ms$",
    re.ASCII,
)


def serve(rest: str, level: str, draft: Draft, dating: Dating) -> str:
    """`LEVEL YYYY-MM-DD HH:MM:SS,mmm <component> <id> [<request id> ]-- <message>`, behind the stamp."""
    match = _SERVE.match(rest)
    old = None if match else _OLD_SERVE.match(rest)
    program = "ray" if match or old else ""
    dating.own(draft, program)
    draft.head(program, LEVELS[level], old[3] if old else "")
    found = match or old
    if found is None:
        return rest.lstrip(" ")
    draft.process = " ".join(one for one in (found[1], found[2]) if one)
    message = rest[found.end() :]
    access(message, draft)
    return message


def core(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`[YYYY-MM-DD HH:MM:SS,mmm L <pid> <tid>] (<component>) <file>.cc:<line>: <message>`, behind the stamp."""
    match = _CORE.match(rest)
    if match is None:
        return None
    dating.own(draft, "ray")
    draft.head("ray", LEVELS[match[1]], match[3])
    draft.process = match[2] or draft.process
    return rest[match.end() :]


def python(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`YYYY-MM-DD HH:MM:SS,mmm<TAB>LEVEL <file>:<line> -- <message>`, behind the stamp."""
    match = _PYTHON.match(rest)
    if match is None:
        return None
    dating.own(draft, "ray")
    draft.head("ray", LEVELS[match[1]], match[2])
    return rest[match.end() :]


def access(message: str, draft: Draft) -> None:
    """`[<client> ]<METHOD> <route> <status> <F.1>ms`."""
    if not message.endswith("ms"):
        return
    match = _ACCESS.match(message)
    if match is not None:
        draft.status = int(match[1]) if match[1].isdigit() and len(match[1]) == 3 else 0
        draft.fields = (("request_ms", float(match[2])),)
