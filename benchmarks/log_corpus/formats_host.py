"""How programs around and beside the main servers write a record: node agents, proxies, other engines."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from benchmarks.log_corpus.formats import WRITERS, Place, Said, Writer, digits, rfc3339, short_date

_WORD = {"D": "debug", "I": "info", "W": "warning", "E": "error", "C": "critical"}


def _clock(at_s: float, place: Place) -> str:
    return datetime.fromtimestamp(int(at_s + place.zone_s), UTC).isoformat(" ")[:19]


def _uwsgi(at_s: float, said: Said, place: Place) -> list[str]:
    when = datetime.fromtimestamp(int(at_s + place.zone_s), UTC)
    day, clock = short_date(at_s + place.zone_s).rsplit(" ", 1)
    return [f"{when:%a} {day} {clock} {when:%Y} - {said.lines[0]}", *said.lines[1:]]


def _klog(at_s: float, said: Said, place: Place) -> list[str]:
    text, level = _clock(at_s, place), "F" if said.level == "C" else said.level
    head = f"{level}{text[5:7]}{text[8:10]} {text[11:]}.{digits(at_s, 6)} {place.pid:7}"
    return [f"{head} {said.file}:{place.pid % 900 + 40}] {said.lines[0]}", *said.lines[1:]]


def _logfmt(at_s: float, said: Said, _place: Place) -> list[str]:
    # containerd and dockerd: further fields stand behind the message.
    message, _, error = said.lines[0].partition(" error=")
    level = "fatal" if said.level == "C" else _WORD[said.level]
    tail = f" error={error}" if error else ""
    return [f'time="{rfc3339(at_s, 9)}" level={level} msg={json.dumps(message)}{tail}']


def _envoy_own(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"{_clock(at_s, place)}.{digits(at_s, 3)}"
    where = f"source/common/{said.tag}/{said.tag}.cc:{place.pid % 900 + 40}"
    return [
        f"[{stamp}][{place.pid % 60 + 1}][{_WORD[said.level]}][{said.tag}] [{where}] {said.lines[0]}",
        *said.lines[1:],
    ]


def _ucx(at_s: float, said: Said, place: Place) -> list[str]:
    level = {"E": "ERROR", "W": "WARN", "C": "FATAL"}.get(said.level, "DIAG")
    where = f"{said.file}:{place.pid % 900 + 40}".rjust(20)
    return [f"[{int(at_s)}.{digits(at_s, 6)}] [{place.host}:{place.pid} :0] {where} UCX  {level} {said.lines[0]}"]


def _lmcache(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"{_clock(at_s, place)},{digits(at_s, 3)}"
    where = f"local_cpu_backend.py:{place.pid % 900 + 40}:lmcache.v1.storage_backend.local_cpu_backend"
    return [f"[{stamp}] LMCache {_WORD[said.level].upper()}: {said.lines[0]} ({where})"]


def _slog(at_s: float, said: Said, place: Place) -> list[str]:
    message, _, error = said.lines[0].partition(" error=")
    tail = f" error={error}" if error else ""
    level = {"W": "WARN", "C": "ERROR"}.get(said.level, _WORD[said.level].upper())
    head = f"time={rfc3339(at_s, 3, place.zone_s)} level={level} source={said.file}:{place.pid % 900 + 40}"
    return [f"{head} msg={json.dumps(message)}{tail}"]


def _ovms(at_s: float, said: Said, place: Place) -> list[str]:
    head = f"[{_clock(at_s, place)}.{digits(at_s, 3)}][{place.pid}][serving][{_WORD[said.level]}]"
    return [f"{head}[{said.file}:{place.pid % 900 + 40}] {said.lines[0]}"]


def _haproxy(at_s: float, said: Said, place: Place) -> list[str]:
    when = datetime.fromtimestamp(int(at_s + place.zone_s), UTC)
    stamp = f"[{when:%d/%b/%Y:%H:%M:%S}.{digits(at_s, 3)}]"
    return [said.lines[0].replace("[]", stamp, 1)]


ALL_WRITERS: dict[str, Writer] = {
    **WRITERS,
    "uwsgi": _uwsgi,
    "klog": _klog,
    "logfmt": _logfmt,
    "envoyown": _envoy_own,
    "ucx": _ucx,
    "lmcache": _lmcache,
    "slog": _slog,
    "ovms": _ovms,
    "haproxy": _haproxy,
}
"""Every writer by its name, those of `formats` too."""
