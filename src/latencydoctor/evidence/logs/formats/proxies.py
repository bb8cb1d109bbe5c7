"""nginx's error and access logs, the access logs of Envoy and HAProxy."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import MONTHS, clock_s, date_s, midnight_s, offset_s
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft

_ERROR = re.compile(
    r"(\d{4}/\d\d/\d\d) (\d\d:\d\d:\d\d) \[(emerg|alert|crit|error|warn|notice|info|debug)\] \d{1,10}#\d{1,10}: ?",
    re.ASCII,
)
_CONNECTION = re.compile(r"\*\d{1,15} ", re.ASCII)
_ACCESS = re.compile(
    r"\S{1,100} (?:\S{1,100} )?\S{1,100} \S{1,100} "
    r"\[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})\] ?",
    re.ASCII,
)
_HAPROXY = re.compile(
    r"\S{1,100}:\d{1,5} \[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d)\.(\d{1,6})\] "
    r"(?=\S{1,100} \S{1,200} (?:[+-]?\d{1,10}/){4}[+-]?(\d{1,10}) (-?\d{1,3}) )",
    re.ASCII,
)
_REQUEST = re.compile(r'"[^"]{0,8000}" (\d{3}) (\d{1,15}|-)', re.ASCII)
_TIMED = re.compile(
    r"(?: \"[^\"]{0,4000}\"){2} (\d{1,12}) (\d{1,9}\.\d{1,6}) (?:\[[^\]]{0,200}\] ){1,2}(\S.{0,2000})$", re.ASCII
)
_UPSTREAM = re.compile(
    r"(?:\d{1,15}|-)(?:, (?:\d{1,15}|-)){0,20} ((?:\d{1,9}\.\d{1,6}|-)(?:, (?:\d{1,9}\.\d{1,6}|-)){0,20}) "
)
_ENVOY_FLAGS = r"(?:UF|UH|UT|URX|UC|UO|UR|UPE|UMSDR|LH|LR|LOR|DC|DI|DF|DPE|DO|DT|FI|RL|RLSE|UAEX|NR|NC|IH|SI|NFCF|OM|-)"
_ENVOY = re.compile(rf"\"[^\"]{{0,8000}}\" (\d{{3}}) ({_ENVOY_FLAGS}(?:,{_ENVOY_FLAGS}){{0,6}}) ")
_ENVOY_CODE = re.compile(rf"([1-5]\d\d) (?!- )({_ENVOY_FLAGS}(?:,{_ENVOY_FLAGS}){{0,6}}) (?=[a-z_]{{3,100}})")
_ENVOY_SIZES = re.compile(r"(\d{1,15}) (\d{1,15}) (\d{1,12}) ", re.ASCII)


def nginx_error(text: str, draft: Draft, dating: Dating) -> str | None:
    """`YYYY/MM/DD HH:MM:SS [level] <pid>#<tid>: *<conn> <message>, client: .., server: .., ...`; local time."""
    match = _ERROR.match(text)
    if match is None:
        return None
    date, hms, level = match.groups()
    midnight, clock = date_s(date), clock_s(hms)
    if midnight is not None and clock is not None:
        draft.naive_s, draft.zone_s = midnight + clock, None
        dating.own(draft, "nginx")
    draft.head("nginx", LEVELS[level.upper()])
    connection = _CONNECTION.match(text, match.end())
    return text[connection.end() if connection else match.end() :]


def nginx_access(text: str, draft: Draft, dating: Dating) -> str | None:
    """Combined form, which ingress prolongs by sizes, times and the upstream's answer; gunicorn writes it too."""
    match = _ACCESS.match(text)
    if match is None or match[2] not in MONTHS:
        return None
    day, month, year, hms, zone = match.groups()
    midnight, clock = midnight_s(int(year), MONTHS[month], int(day)), clock_s(hms)
    if midnight is not None and clock is not None:
        draft.naive_s, draft.zone_s = midnight + clock, offset_s(zone)
        dating.own(draft, "nginx")
    draft.head("nginx")
    message = text[match.end() :]
    request = _REQUEST.match(message)
    if request is not None:
        draft.status = int(request[1])
        draft.fields = _nginx_times(message[request.end() :])
    return message


def _nginx_times(rest: str) -> tuple[tuple[str, float], ...]:
    timed = _TIMED.match(rest)
    if timed is None:
        return ()
    fields = [("request_ms", float(timed[2]) * 1e3)]
    upstream = _UPSTREAM.search(timed[3])
    # Each upstream that was tried has its own time; the request waited for all of them.
    times = [float(one) for one in upstream[1].split(", ") if one != "-"] if upstream else []
    return (*fields, ("upstream_ms", sum(times) * 1e3)) if times else tuple(fields)


def haproxy(text: str, draft: Draft, dating: Dating) -> str | None:
    """`<client> [<stamp>] <frontend> <backend>/<server> <times> <status> ...`; the local time at which it began."""
    match = _HAPROXY.match(text)
    if match is None or match[2] not in MONTHS:
        return None
    day, month, year, hms, fraction, took_ms, status = match.groups()
    midnight, clock = midnight_s(int(year), MONTHS[month], int(day)), clock_s(hms, fraction)
    if midnight is None or clock is None:
        return None
    draft.naive_s, draft.zone_s = midnight + clock, None
    dating.own(draft, "proxy")
    draft.head("proxy")
    draft.status = int(status) if status.isdecimal() else 0
    draft.fields = (("request_ms", float(took_ms)),)
    return text[match.end() :]


def envoy_access(text: str, draft: Draft, dating: Dating) -> str | None:
    """`"<METHOD> <path> <proto>" <code> <flags> <detail> ...` without its stamp."""
    return envoy_request(text[1:], draft, dating) if text.startswith('["') else None


def envoy_request(message: str, draft: Draft, dating: Dating) -> str:
    """The part of Envoy's access line behind the stamp; other programs' quoted requests keep their status only."""
    match = _ENVOY.match(message)
    program = "envoy" if match else ""
    dating.own(draft, program)
    draft.head(program)
    if match is not None:
        draft.status = int(match[1])
        sizes = _ENVOY_SIZES.search(message, match.end(), match.end() + 1000)
        if sizes is not None:
            draft.fields = (("request_ms", float(sizes[3])),)
    return message


def envoy_code(text: str, draft: Draft, _dating: Dating) -> str | None:
    """`<code> <FLAGS> <detail>{...}`, as short formats have it."""
    match = _ENVOY_CODE.match(text)
    if match is None:
        return None
    draft.head("envoy")
    draft.status = int(match[1])
    return text
