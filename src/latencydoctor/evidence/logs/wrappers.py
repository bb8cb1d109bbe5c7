"""Text wrappers: what runtimes, collectors and process managers write before a program's own line.

Each function takes one wrapper off and keeps its time, stream and source in the draft; `peel` order and nesting are
the caller's. Weak signs (a word before a pipe) count only with a program's head behind them, or once the same wrapper
was seen beyond doubt in the file.
"""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import ISO, MONTHS, clock_s, epoch_s, iso_parts
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import Draft

_COMPOSE = re.compile(r"([A-Za-z0-9][\w.-]{0,100}) {1,80}\| ?", re.ASCII)
_NUMBERED = re.compile(r"[-_]\d{1,4}$", re.ASCII)
_POD = re.compile(r"\[(?:pod/)?([a-z0-9][a-z0-9.-]{0,253})/([a-z0-9][a-z0-9-]{0,62})\] ?", re.ASCII)
_STERN = re.compile(r"([a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?) ([a-z0-9][a-z0-9-]{0,62}) ", re.ASCII)
_STERN_OWN = re.compile(r"[+-] ([a-z0-9][a-z0-9.-]{0,253}) \u203a ([a-z0-9][a-z0-9-]{0,62})$", re.ASCII)
_REPLICA = re.compile(
    r"-(?:(?=[a-z]{0,9}\d)[a-z0-9]{8,10}-[a-z0-9]{5}|\d{1,10}-(?=[a-z]{0,4}\d)[a-z0-9]{5})$", re.ASCII
)
_CLOUD = re.compile(
    r"(?:DEFAULT|DEBUG|INFO|NOTICE|WARNING|ERROR|CRITICAL|ALERT|EMERGENCY) (?=\d{4}-\d\d-\d\dT)", re.ASCII
)
_CLOUD_LABEL = re.compile(r" ?\[(?:resource\.labels\.\w{1,40}: ?([^\]]{1,200}))\] ?", re.ASCII)
_CLOUDWATCH = re.compile(r" {0,8}\| {1,4}(?=\d{4}-\d\d-\d\d)", re.ASCII)
_SYSLOG = re.compile(
    r"(?:([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?|(\d{9,10}\.\d{6})) "
    r"([^\s:\[]{1,255}) ([^\s:\[]{1,128})(?:\[(\d{1,10})\])?: ?",
    re.ASCII,
)
_SYSLOG_ISO = re.compile(r" ([^\s:\[\]=\"]{1,255}) ([^\s:\[\]=\"]{1,128})(?:\[(\d{1,10})\])?: ?", re.ASCII)
_WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?=\d{4}-\d\d-\d\d )", re.ASCII)
_ZONE_NAME = re.compile(r" ([A-Z]{2,5})(?= \S{1,255} [^\s:]{1,128}: )", re.ASCII)
_PRI = re.compile(r"<(\d{1,3})>", re.ASCII)
_RFC5424 = re.compile(r"1 (\S{1,64}) (\S{1,255}) (\S{1,48}) (\S{1,128}) (\S{1,32}) (?:- ?|(\[))", re.ASCII)
_ACTOR = re.compile(r"\(([^()=]{1,200}) pid=(\d{1,10})(?:, ip=([^\s()]{1,64}))?\) ?", re.ASCII)
_RANK_OF_NAME = re.compile(r"_(?:TP|PP|DP)(\d{1,4})", re.ASCII)
_RANK = re.compile(r"\[rank ?(\d{1,6})\]: ?|\[Stage-(\d{1,3})\] ", re.ASCII)
_RANK_TAG = re.compile(r"\[rank ?(\d{1,6})\]:?(?=\[[EWIF])", re.ASCII)
_QUOTED = re.compile(r"(?:> ?){1,6}(?=.)")
_HEAD = re.compile(
    r"[EWI]\d{4} \d\d:|\{\"|\[?\d{4}[-/]\d\d[-/]\d\d|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b|"
    r"\d{1,10}:[XCSM] |\(\w{1,100} pid=|\[(?:pod/|rank\d)",
    re.ASCII,
)
SYSLOG_LEVELS = {"0": "CRITICAL", "1": "CRITICAL", "2": "CRITICAL", "3": "ERROR", "4": "WARNING", "7": "DEBUG"}
"""Notice and informational say nothing: they are also what a line gets of which nobody knows the level."""


def compose(text: str, draft: Draft, dating: Dating) -> str | None:
    """`<service>-N  | <text>`."""
    if text.find("| ", 2, 184) < 0:
        return None
    match = _COMPOSE.match(text)
    if match is None:
        return None
    name, rest = match[1], text[match.end() :]
    if _NUMBERED.search(name) or _HEAD.match(rest):
        dating.saw(f"service {name}")
    else:
        padded = name.islower() and text[len(name) : len(name) + 3] == "  |"
        # A row of a table ends with a pipe.
        if not (padded or f"service {name}" in dating.seen) or text.rstrip().endswith("|"):
            return None
    draft.within(name)
    return rest


def pod(text: str, draft: Draft, _dating: Dating) -> str | None:
    """`[pod/<pod>/<container>] <text>`."""
    match = _POD.match(text)
    if match is None:
        return None
    draft.within(f"{match[1]}/{match[2]}")
    return text[match.end() :]


def stern(text: str, draft: Draft, dating: Dating) -> str | None:
    """`<pod> <container> <text>`: only with a pod's generated name, or with a program's head behind it."""
    if "-" not in text[:260]:
        return None
    match = _STERN.match(text)
    if match is None or "-" not in match[1]:
        return None
    rest = text[match.end() :]
    # A deployment and its container often share their name; then no hash is needed to tell.
    if _REPLICA.search(match[1]) or match[1].startswith(f"{match[2]}-"):
        dating.saw("stern")
    elif not (_HEAD.match(rest) or (_NUMBERED.search(match[1]) and "stern" in dating.seen)):
        return None
    draft.within(f"{match[1]}/{match[2]}")
    return rest


def stern_own(text: str, draft: Draft, dating: Dating) -> str | None:
    """`+ <pod> <arrow> <container>`: the collector says whom it follows."""
    match = _STERN_OWN.match(text)
    if match is None:
        return None
    dating.saw("stern")
    draft.within(f"{match[1]}/{match[2]}")
    draft.head("", "INFO")
    return text


def cloud(text: str, draft: Draft, dating: Dating) -> str | None:
    """`<LEVEL> <time> [resource.labels.containerName: <c>] <text>`; the level is a default, whatever the line says."""
    match = _CLOUD.match(text)
    stamp = ISO.match(text, match.end()) if match else None
    label = _CLOUD_LABEL.match(text, stamp.end()) if stamp else None
    if stamp is None or label is None or not _take_stamp(stamp, draft, dating):
        return None
    draft.within(label[1])
    return text[label.end() :]


def cloudwatch(text: str, draft: Draft, dating: Dating) -> str | None:
    r"""`  | <local time with offset> | <text>`, in which pipes are escaped."""
    match = _CLOUDWATCH.match(text)
    stamp = ISO.match(text, match.end()) if match else None
    if stamp is None:
        return None
    rest = text[stamp.end() :].lstrip(" ")
    if not rest.startswith("|") or not _take_stamp(stamp, draft, dating):
        return None
    return rest[1:].removeprefix(" ").removesuffix(" |").replace("\\|", "|")


def syslog(text: str, draft: Draft, dating: Dating) -> str | None:
    """`Mon DD HH:MM:SS <host> <ident>[<pid>]: <text>`, as journald's short form and syslog files have it."""
    match = _SYSLOG.match(text)
    if match is None:
        return None
    month, day, hms, fraction, unix, host, ident, _pid = match.groups()
    if unix is not None:
        draft.naive_s, draft.zone_s = float(unix), 0.0
    else:
        clock = clock_s(hms, fraction) if month in MONTHS else None
        naive = None if clock is None else dating.yearless(MONTHS[month], int(day), clock, draft)
        if naive is None:
            return None
        draft.naive_s, draft.zone_s = naive, None
    dating.wrapped(draft)
    _identify(draft, host, ident)
    return text[match.end() :]


def syslog_weekday(text: str, draft: Draft, dating: Dating) -> str | None:
    """`Www YYYY-MM-DD HH:MM:SS ZONE <host> <ident>[<pid>]: <text>`, journald's short-full form."""
    match = _WEEKDAY.match(text)
    stamp = ISO.match(text, match.end()) if match else None
    if stamp is None:
        return None
    named = _ZONE_NAME.match(text, stamp.end())
    return syslog_iso(text[named.end() if named else stamp.end() :], stamp, draft, dating)


def syslog_iso(rest: str, stamp: re.Match[str], draft: Draft, dating: Dating) -> str | None:
    """The same with a full stamp in front, already matched; ` <host> <ident>[<pid>]: <text>` is left."""
    match = _SYSLOG_ISO.match(rest)
    if match is None or not (match[3] or match[2] in ("kernel", "systemd")) or not _take_stamp(stamp, draft, dating):
        return None
    _identify(draft, match[1], match[2])
    return rest[match.end() :]


def priority(text: str, draft: Draft, dating: Dating) -> str | None:
    """`<PRI>1 <time> <host> <app> <pid> <mid> - <text>` (RFC 5424), or `<PRI>` before an older form or the kernel's."""
    match = _PRI.match(text)
    if match is None or int(match[1]) > 191:
        return None
    draft.priority = SYSLOG_LEVELS.get(str(int(match[1]) & 7), "")
    rest = text[match.end() :]
    full = _RFC5424.match(rest)
    if full is None:
        return rest
    stamp = ISO.match(full[1])
    if stamp is not None:
        _take_stamp(stamp, draft, dating)
    _identify(draft, full[2], full[3])
    rest = rest[full.end() :]
    # Structured data: a message may hold brackets too, so only what stands before `] ` goes.
    return (rest.partition("] ")[2] if full[6] else rest).removeprefix("\ufeff")


def actor(text: str, draft: Draft, _dating: Dating) -> str | None:
    """`(<name> pid=<n>[, ip=<ip>]) <text>`, before lines of Ray's actors and of vLLM's processes."""
    match = _ACTOR.match(text) if text.find(" pid=", 1, 210) > 0 else None
    if match is None:
        return None
    name, pid, address = match.groups()
    draft.process = match[0].strip(" ()")
    numbered = _RANK_OF_NAME.findall(name) if "_" in name else None
    if numbered:
        draft.rank = ".".join(numbered)
    elif "Worker" in name:
        # Workers of one engine differ in their process only, and report the same death.
        draft.rank = f"{address or ''}:{pid}"
    return text[match.end() :]


def rank(text: str, draft: Draft, _dating: Dating) -> str | None:
    """`[rank0]: <text>`, `[Stage-0] <text>`, and `[rank0]:` before PyTorch's own bracket."""
    match = _RANK_TAG.match(text) or _RANK.match(text)
    if match is None:
        return None
    draft.rank = match[1] or match[match.re.groups]
    return text[match.end() :]


def quoted(text: str, draft: Draft, _dating: Dating) -> str | None:
    """`> <text>`: copied from a ticket."""
    match = _QUOTED.match(text)
    # A prompt of Python's is no quotation.
    if match is None or text.startswith(">>>"):
        return None
    draft.quoted = True
    return text[match.end() :]


def unix_micros(text: str) -> float | None:
    """A journal's count of microseconds since the epoch."""
    return epoch_s(float(text)) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _take_stamp(stamp: re.Match[str], draft: Draft, dating: Dating) -> bool:
    parts = iso_parts(stamp)
    if parts is None:
        return False
    draft.naive_s, draft.zone_s = parts
    dating.wrapped(draft)
    return True


def _identify(draft: Draft, host: str, ident: str) -> None:
    """Who wrote a journal's line: the kernel is its host's, everything else is its unit's."""
    if ident == "kernel":
        draft.within(host)
        draft.program, draft.whole = "kernel", True
    elif ident.startswith("systemd"):
        # The unit that a line is about stands in its text.
        draft.program, draft.whole = "systemd", True
    else:
        draft.within(ident)
        draft.program = "kubernetes" if ident == "kubelet" else ""
