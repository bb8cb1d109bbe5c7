"""Lines that begin with a full date and clock: whose they are shows behind the stamp, and a wrapper's have one too."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs import wrappers
from latencydoctor.evidence.logs.clock import ISO, clock_s, date_s, iso_parts
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import FRAME, LEVELS, Draft
from latencydoctor.evidence.logs.formats import backends, kserve, ray, tgi, torchserve, triton

_CRI = re.compile(r" (stdout|stderr) (?:([FP])(?: |$))?", re.ASCII)
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERR|ERROR|CRITICAL|FATAL)\b", re.ASCII)
_LEVEL_NEAR = re.compile(
    r"[\s:|,-]{0,4}(?:[\w.]{1,100} - )?\[?\s{0,4}(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)"
    r"\s{0,4}\]?(?=[\s:|-]|$)[\s:|-]{0,4}",
    re.ASCII,
)
_SLASHED = re.compile(r"(\d{4}/\d\d/\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?= )", re.ASCII)
_MICROSECOND_DIGITS = 6
_INNER = re.compile(
    r" (?:[EWI]\d{4} \d\d:|\d{4}[-/]\d\d[-/]\d\d[T ]|[A-Z]{4,8} {1,4}(?:\d{4}-)?\d\d-\d\d |[A-Z]{4,8}:|[({]|"
    r"\[(?!\d{1,7}\] (?!\d\d [A-Z])))",
    re.ASCII,
)
"""What behind a stamp shows that it is a wrapper's: heads of programs; not a process's number in brackets."""


def full(text: str, draft: Draft, dating: Dating) -> str | None:
    """A date, a clock, perhaps a zone; then the rest of whichever format it is."""
    stamp = ISO.match(text)
    parts = iso_parts(stamp) if stamp else None
    if stamp is None or parts is None:
        return None
    draft.naive_s, draft.zone_s = parts
    rest = text[stamp.end() :]
    follows = rest[1:2]
    if follows == "s" and draft.zone_s is not None:
        found = _cri(rest, draft, dating)
        if found is not None:
            return found
    if draft.zone_s is not None:
        return _zoned(rest, stamp, draft, dating)
    return _zoneless(rest, stamp, draft, dating)


def _zoned(rest: str, stamp: re.Match[str], draft: Draft, dating: Dating) -> str:
    """Stamps with a zone are TGI's, Triton's, a syslog's, or a wrapper's around anything."""
    own = len(stamp[3] or "") <= _MICROSECOND_DIGITS
    if _INNER.match(rest) is None:
        found = triton.after_stamp(rest, draft, dating) if rest[2:3] == " " else tgi.after_stamp(rest, draft, dating)
        if found is None:
            found = wrappers.syslog_iso(rest, stamp, draft, dating)
        if found is not None:
            return found
        # Runtimes count nanoseconds; a coarser stamp before what is no line's continuation is the line's own head.
        if _LEVEL_NEAR.match(rest) or (own and not FRAME.match(rest, 1)):
            return generic(rest, draft, dating)
    dating.wrapped(draft)
    draft.whole = own
    return rest.removeprefix(" ")


def _zoneless(rest: str, stamp: re.Match[str], draft: Draft, dating: Dating) -> str:
    follows = rest[1:2]
    found: str | None
    if follows == "[":
        found = torchserve.after_stamp(rest, draft, dating)
        if found is None:
            found = backends.onnxruntime(rest, draft, dating)
    elif follows == "-":
        found = torchserve.short(rest, draft, dating)
    elif rest[:2] == ": ":
        found = backends.tensorflow(rest, draft, dating)
    else:
        found = ray.python(rest, draft, dating)
        if found is None:
            found = kserve.after_stamp(rest, draft, dating)
        if found is None:
            found = wrappers.syslog_iso(rest, stamp, draft, dating)
    return generic(rest, draft, dating) if found is None else found


def _cri(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`<time> stdout|stderr F|P <text>`; old writers lack the flag."""
    match = _CRI.match(rest)
    if match is None:
        return None
    dating.wrapped(draft)
    draft.stream = match[1]
    draft.partial = match[2] == "P"
    return rest[match.end() :]


def slashed(text: str, draft: Draft, dating: Dating) -> str | None:
    """`YYYY/MM/DD HH:MM:SS[.uuuuuu] <message>`, which Go's standard logger writes; local time."""
    stamp = _SLASHED.match(text)
    if stamp is None:
        return None
    midnight, clock = date_s(stamp[1]), clock_s(stamp[2], stamp[3])
    if midnight is None or clock is None:
        return None
    draft.naive_s, draft.zone_s = midnight + clock, None
    return generic(text[stamp.end() :], draft, dating)


def generic(rest: str, draft: Draft, dating: Dating) -> str:
    """A stamped line of any program: its level is the word right behind the stamp, or near it."""
    dating.own(draft)
    near = _LEVEL_NEAR.match(rest)
    if near is not None:
        draft.head("", LEVELS[near[1]])
        return rest[near.end() :]
    level = _LEVEL.search(rest, 0, 80)
    draft.head("", LEVELS[level[1]] if level else "")
    return rest.lstrip(" \t")
