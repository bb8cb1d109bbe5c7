"""Triton's server lines in both forms, and other programs' lines in glog's form, which Triton's default resembles.

Triton's stamp is UTC and its number the process; glog and klog print the thread and may print local time.
"""

from __future__ import annotations

import json
import re

from latencydoctor.evidence.logs.clock import clock_s
from latencydoctor.evidence.logs.damage import tidy
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft

_DEFAULT = re.compile(
    r"([EWIFDV])(\d\d)(\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? {1,9}\d{1,10} ([^\s:\]]{1,200}:\d{1,7})\] ?", re.ASCII
)
_ISO_REST = re.compile(r" ([EWIFDV]) \d{1,10} ([^\s:\]]{1,200}:\d{1,7})\] ?", re.ASCII)


def server(text: str, draft: Draft, dating: Dating) -> str | None:
    """`LMMDD HH:MM:SS.uuuuuu <pid> <file>:<line>] <message>`."""
    match = _DEFAULT.match(text)
    if match is None:
        return None
    letter, month, day, hms, fraction, place = match.groups()
    clock = clock_s(hms, fraction)
    # klog's files end in .go: kubelet, device plug-ins, controllers.
    program = "kubernetes" if ".go:" in place else "triton"
    moment = None if clock is None else dating.triton_day(int(month), int(day), clock, draft)
    if moment is not None:
        dating.dated(draft, moment)
    draft.head(program, LEVELS[letter], place)
    return message(text[match.end() :])


def after_stamp(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`YYYY-MM-DDTHH:MM:SSZ L <pid> <file>:<line>] <message>`, behind the stamp."""
    match = _ISO_REST.match(rest)
    if match is None:
        return None
    dating.own(draft, "triton")
    draft.head("triton", LEVELS[match[1]], match[2])
    return message(rest[match.end() :])


def message(text: str) -> str:
    """Messages are JSON strings since 2024; older ones are plain."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    if "\\" not in text and text.count('"') == 2:
        return text[1:-1]
    try:
        inner: object = json.loads(text)
    except ValueError:
        return text[1:-1]
    return tidy(inner) if isinstance(inner, str) else text
