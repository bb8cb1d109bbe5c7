"""What carries a program's lines on their way into a file: container runtimes, journals, prefixes, one in another.

A wrapper takes a moment, a line and the place, and gives the lines that stand in the file instead.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.log_corpus.formats import Place, rfc3339, short_date

SPLIT_BYTES = 16 * 1024
"""Where container runtimes cut a line."""


def _pieces(line: str) -> list[str]:
    if len(line) < SPLIT_BYTES:
        return [line]
    return [line[start : start + SPLIT_BYTES] for start in range(0, len(line), SPLIT_BYTES)]


def _stream(line: str) -> str:
    return "stderr" if len(line) % 3 else "stdout"


def _docker(at_s: float, line: str, _place: Place) -> list[str]:
    stamp, stream, pieces = rfc3339(at_s), _stream(line), _pieces(line)
    ends = [*[""] * (len(pieces) - 1), "\n"]
    objects = ({"log": piece + end, "stream": stream, "time": stamp} for piece, end in zip(pieces, ends, strict=True))
    # As Go's encoder writes it: < > & and the line separators escaped.
    return [
        json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        .replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        for one in objects
    ]  # fmt: skip


def _cri(at_s: float, line: str, _place: Place) -> list[str]:
    head, pieces = f"{rfc3339(at_s)} {_stream(line)}", _pieces(line)
    return [*(f"{head} P {piece}" for piece in pieces[:-1]), f"{head} F {pieces[-1]}"]


def _cri_old(at_s: float, line: str, _place: Place) -> list[str]:
    return [f"{rfc3339(at_s)} {_stream(line)} {line}"]


def _cri_zone(at_s: float, line: str, place: Place) -> list[str]:
    return [f"{rfc3339(at_s, 9, place.zone_s)} {_stream(line)} F {line}"]


def _compose(_at_s: float, line: str, place: Place) -> list[str]:
    return [f"{place.ident + '-1':<14} | {line}"]


def _compose_coloured(_at_s: float, line: str, place: Place) -> list[str]:
    return [f"\x1b[36m{place.ident + '-1':<14} |\x1b[0m {line}"]


def _kubectl_prefix(_at_s: float, line: str, place: Place) -> list[str]:
    return [f"[pod/{place.ident}-{place.pid % 90 + 10}-x7k2p/{place.ident}] {line}"]


def _kubectl_prefix_time(at_s: float, line: str, place: Place) -> list[str]:
    return [f"[pod/{place.ident}-{place.pid % 90 + 10}-x7k2p/{place.ident}] {rfc3339(at_s)} {line}"]


def _kubectl_time(at_s: float, line: str, _place: Place) -> list[str]:
    return [f"{rfc3339(at_s)} {line}"]


def _stern(_at_s: float, line: str, place: Place) -> list[str]:
    return [f"{place.ident}-{place.pid % 90 + 10}-x7k2p {place.ident} {line}"]


def _cloud(at_s: float, line: str, place: Place) -> list[str]:
    return [f"INFO {rfc3339(at_s)} [resource.labels.containerName: {place.ident}] {line}"]


def _cloudwatch(at_s: float, line: str, place: Place) -> list[str]:
    stamp = f"{rfc3339(at_s, 3, place.zone_s or -18000.0)}"
    return ["  | " + stamp + " | " + line.replace("|", "\\|")]


def _ident(place: Place) -> str:
    return "kernel" if place.kernel == "journal" else f"{place.ident}[{place.pid}]"


def _journal_short(at_s: float, line: str, place: Place) -> list[str]:
    micro = f"[{at_s - place.booted_s:12.6f}] " if place.kernel == "journal" and place.variant % 2 else ""
    return [f"{short_date(at_s + place.zone_s)} {place.host} {_ident(place)}: {micro}{line}"]


def _journal_fields(at_s: float, line: str, place: Place) -> dict[str, str]:
    kernel = place.kernel == "journal"
    fields = {
        "__CURSOR": f"s=5f{place.pid:x};i={int(at_s) % 99991:x}",
        "__REALTIME_TIMESTAMP": f"{int(at_s * 1e6)}",
        "__MONOTONIC_TIMESTAMP": f"{int((at_s - place.booted_s) * 1e6)}",
        "PRIORITY": "4" if kernel else "6",
        "SYSLOG_IDENTIFIER": "kernel" if kernel else place.ident,
        "_HOSTNAME": place.host,
    }
    unit = {"_TRANSPORT": "kernel"} if kernel else {"_PID": str(place.pid), "_SYSTEMD_UNIT": f"{place.ident}.service"}
    return {**fields, **unit, "MESSAGE": line}


def _odd(line: str) -> bool:
    return any(
        (char < " " and char != "\t") or "\x7f" <= char < "\xa0" or "\udc80" <= char <= "\udcff" for char in line
    )


def _journal_export(at_s: float, line: str, place: Place) -> list[str]:
    fields = _journal_fields(at_s, line, place)
    message = fields.pop("MESSAGE")
    rows = [f"{key}={value}" for key, value in fields.items()]
    if _odd(message):
        length = len(message.encode("utf-8", "surrogateescape")).to_bytes(8, "little")
        # One text line in the file, as far as newlines go, with the length in raw bytes before it.
        rows += ["MESSAGE", length.decode("utf-8", "surrogateescape") + message]
    else:
        rows.append(f"MESSAGE={message}")
    return [*rows, ""]


def _journal_json(at_s: float, line: str, place: Place) -> list[str]:
    fields: dict[str, object] = {**_journal_fields(at_s, line, place)}
    if _odd(line):
        fields["MESSAGE"] = list(line.encode("utf-8", "surrogateescape"))
    return [json.dumps(fields, ensure_ascii=False, separators=(",", ":"))]


def _syslog5424(at_s: float, line: str, place: Place) -> list[str]:
    pid = "-" if place.kernel == "journal" else place.pid
    app = "kernel" if place.kernel == "journal" else place.ident
    return [f"<{14 if pid != '-' else 4}>1 {rfc3339(at_s, 6)} {place.host} {app} {pid} - - {line}"]


def _ray(_at_s: float, line: str, place: Place) -> list[str]:
    return [f"(ServeReplica:default:{place.ident} pid={place.pid}, ip=10.1.4.{place.pid % 200 + 2}) {line}"]


def _ray_coloured(_at_s: float, line: str, place: Place) -> list[str]:
    return [f"\x1b[36m(ServeReplica:default:{place.ident} pid={place.pid})\x1b[0m {line}"]


def _ray_caret(_at_s: float, line: str, place: Place) -> list[str]:
    return [f"^[[36m(RayWorkerWrapper pid={place.pid})^[[0m {line}"]


Wrap = Callable[[float, str, Place], list[str]]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """`level` is where it may stand: 1 next to the program, 3 outermost. `year`: its stamp is an instant."""

    name: str
    wrap: Wrap
    level: int
    timed: bool = False
    year: bool = False


WRAPPERS = (
    Wrapper("docker", _docker, 3, timed=True, year=True),
    Wrapper("cri", _cri, 3, timed=True, year=True),
    Wrapper("cri_old", _cri_old, 3, timed=True, year=True),
    Wrapper("cri_zone", _cri_zone, 3, timed=True, year=True),
    Wrapper("compose", _compose, 2),
    Wrapper("compose_coloured", _compose_coloured, 2),
    Wrapper("kubectl_prefix", _kubectl_prefix, 2),
    Wrapper("kubectl_prefix_time", _kubectl_prefix_time, 3, timed=True, year=True),
    Wrapper("kubectl_time", _kubectl_time, 2, timed=True, year=True),
    Wrapper("stern", _stern, 3),
    Wrapper("cloud", _cloud, 3, timed=True, year=True),
    Wrapper("cloudwatch", _cloudwatch, 3, timed=True, year=True),
    Wrapper("journal_short", _journal_short, 3, timed=True),
    Wrapper("journal_export", _journal_export, 3, timed=True, year=True),
    Wrapper("journal_json", _journal_json, 3, timed=True, year=True),
    Wrapper("syslog5424", _syslog5424, 3, timed=True, year=True),
    Wrapper("ray", _ray, 1),
    Wrapper("ray_coloured", _ray_coloured, 1),
    Wrapper("ray_caret", _ray_caret, 1),
)
BY_NAME = {one.name: one for one in WRAPPERS}
_RAY_PROGRAMS = ("vllm", "ray_serve", "sglang", "app")
_JOURNALS = ("journal_short", "journal_export", "journal_json", "syslog5424")


def draw_stack(rng: random.Random, program: str, outermost: str = "") -> tuple[Wrapper, ...]:
    """Wrappers from the inside out, at most one of each level; `outermost` asks for one by name."""
    if program == "kernel":
        names = rng.choice((("",), ("",), ("journal_short",), ("journal_export",), ("journal_json",), ("syslog5424",)))
        return (BY_NAME[outermost],) if outermost else tuple(BY_NAME[name] for name in names if name)
    rays = [one for one in WRAPPERS if one.level == 1] if program in _RAY_PROGRAMS else []
    stack = [rng.choice(rays)] if rays and rng.random() < 0.3 else []
    top = BY_NAME.get(outermost)
    if top is not None and top.level == 1:
        return (top,)
    if rng.random() < 0.35:
        stack.append(rng.choice([one for one in WRAPPERS if one.level == 2]))
    if top is not None:
        return (*(one for one in stack if one.level < top.level), top)
    if rng.random() < 0.6:
        stack.append(rng.choice([one for one in WRAPPERS if one.level == 3]))
    return tuple(stack)


def kernel_place(stack: Sequence[Wrapper], rng: random.Random) -> str:
    """How the kernel's lines look: in a journal without their own stamp, elsewhere as dmesg prints them."""
    if any(one.name in _JOURNALS for one in stack):
        return "journal"
    return rng.choice(("raw", "dated"))


def wrap_line(at_s: float, line: str, place: Place, stack: Sequence[Wrapper]) -> list[str]:
    """A line as it stands in the file."""
    lines = [line]
    for wrapper in stack:
        lines = [wrapped for one in lines for wrapped in wrapper.wrap(at_s, one, place)]
    return lines
