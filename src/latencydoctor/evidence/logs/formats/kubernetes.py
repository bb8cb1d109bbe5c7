"""Events as kubectl prints them, with ages instead of times.

Their moments count back from when they were printed: a wrapper's stamp says when, else the file's time.
"""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import real
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import Draft

_AGE = r"((?:\d{1,6}[smhdy]){1,4}|<unknown>|<invalid>)(?: \(x(\d{1,6}) over ((?:\d{1,6}[smhdy]){1,4})\))?"
_DESCRIBED = re.compile(
    r" {0,8}(Normal|Warning) {1,30}([A-Z]\w{1,60}) {1,40}" + _AGE + r" {1,40}(\S{1,200}(?:, \S{1,200})?) {1,40}",
    re.ASCII,
)
_LISTED = re.compile(_AGE + r" {1,40}(Normal|Warning) {1,30}([A-Z]\w{1,60}) {1,60}(\S{1,300}) {1,80}", re.ASCII)
_PART = re.compile(r"(\d{1,6})([smhdy])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 31_536_000}
_LEVELS = {"Normal": "INFO", "Warning": "WARNING"}


def described_event(text: str, draft: Draft, dating: Dating) -> str | None:
    """`  Warning  <Reason>  <age>  <source>  <text>`, of `kubectl describe`."""
    match = _DESCRIBED.match(text)
    if match is None:
        return None
    kind, reason, age, times, over, source = match.groups()
    return _event(draft, dating, (kind, reason, source, text[match.end() :]), (age, times, over))


def listed_event(text: str, draft: Draft, dating: Dating) -> str | None:
    """`<age>  Warning  <Reason>  <object>  <text>`, of `kubectl get events`."""
    match = _LISTED.match(text)
    if match is None:
        return None
    age, times, over, kind, reason, what = match.groups()
    draft.within(what.removeprefix("pod/"))
    return _event(draft, dating, (kind, reason, what, text[match.end() :]), (age, times, over))


def _event(
    draft: Draft, dating: Dating, told: tuple[str, str, str, str], ages: tuple[str, str | None, str | None]
) -> str:
    kind, reason, _source, message = told
    age, times, over = ages
    draft.head("kubernetes", _LEVELS[kind])
    draft.count = max(1, int(times)) if times else 1
    printed_s = dating.reference_s if draft.outer_s is None else draft.outer_s
    age_s = _age_s(age)
    if age_s is not None:
        draft.time_s = real(printed_s - age_s)
    over_s = _age_s(over) if over else None
    if over_s is not None:
        draft.began_s = real(printed_s - over_s)
    return f"{reason}: {message}"


def _age_s(age: str) -> float | None:
    parts = _PART.findall(age)
    return float(sum(int(number) * _SECONDS[unit] for number, unit in parts)) if parts else None
