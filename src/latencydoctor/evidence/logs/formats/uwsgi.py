"""uWSGI: `Www Mon DD HH:MM:SS YYYY - <message>`, and its own access line. The clock is local."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import MONTHS, clock_s, midnight_s
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import Draft

_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) "
_STAMP = r"([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d) (\d{4})"
_LINE = re.compile(rf"{_WEEKDAY}{_STAMP} - ?", re.ASCII)
_REQUEST = re.compile(
    rf"\[pid: \d{{1,10}}\|app: [-\d]{{1,6}}\|req: [-\d]{{1,12}}/[-\d]{{1,12}}\] .{{0,300}}?\[{_WEEKDAY}{_STAMP}\] "
    r"(.{0,8000}? in (\d{1,12}) msecs \(HTTP/[123](?:\.\d)? (\d{3})\))",
    re.ASCII,
)


def line(text: str, draft: Draft, dating: Dating) -> str | None:
    """What the master and its workers say of themselves; there is no level."""
    match = _LINE.match(text)
    if match is None or not _dated(match, draft, dating):
        return None
    draft.head("uwsgi")
    return text[match.end() :]


def request(text: str, draft: Draft, dating: Dating) -> str | None:
    """`[pid: N|app: N|req: N/N] <client> () {...} [<stamp>] <METHOD> <path> => ... in N msecs (HTTP/1.1 200) ...`."""
    match = _REQUEST.match(text) if text.startswith("[pid: ") else None
    if match is None or not _dated(match, draft, dating):
        return None
    draft.head("uwsgi")
    draft.status = int(match[7])
    draft.fields = (("request_ms", float(match[6])),)
    return match[5]


def _dated(match: re.Match[str], draft: Draft, dating: Dating) -> bool:
    month, day, hms, year = match.groups()[:4]
    midnight = midnight_s(int(year), MONTHS[month], int(day)) if month in MONTHS else None
    clock = clock_s(hms)
    if midnight is None or clock is None:
        return False
    draft.naive_s, draft.zone_s = midnight + clock, None
    dating.own(draft, "uwsgi")
    return True
