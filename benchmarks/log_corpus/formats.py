"""How each program writes a record: head, level, time stamp, and what becomes of further lines.

A writer takes a moment and a `Said` and gives physical lines without newlines. Local stamps use the place's zone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WORD = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "C": "CRITICAL"}
_LOG4J = {**_WORD, "I": "INFO ", "W": "WARN ", "C": "FATAL"}
_RUST = {"D": "DEBUG", "I": " INFO", "W": " WARN", "E": "ERROR", "C": "ERROR"}
_LETTER = {"D": "I", "I": "I", "W": "W", "E": "E", "C": "E"}


@dataclass(slots=True)
class Place:
    """One program on one host: what does not change within a file. `zone_s` is how far its clock is east of UTC.

    `variant` draws once a file between the forms a format has; `ident` names the unit, pod or service.
    """

    rng: random.Random
    variant: int
    zone_s: float = 0.0
    pid: int = 1
    host: str = "host"
    ident: str = "server"
    booted_s: float = 0.0
    kernel: str = "bare"
    colour: bool = False
    serial: int = field(default=0)
    step: tuple[float, float] = (float("inf"), 0.0)

    def told(self, at_s: float) -> float:
        """What this host's clock says at a moment: at `step[0]` it is set back by `step[1]` seconds."""
        return at_s - self.step[1] if at_s >= self.step[0] else at_s


@dataclass(frozen=True, slots=True)
class Said:
    """A record with its values filled in."""

    level: str
    file: str
    tag: str
    lines: tuple[str, ...]
    rank: int = -1


@lru_cache(maxsize=4096)
def _second(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@lru_cache(maxsize=4096)
def _date_time(second: int, between: str = " ") -> str:
    return _second(second).isoformat(between)[:19]


def digits(moment_s: float, count: int) -> str:
    """The part of a second with `count` digits, cut off."""
    return f"{moment_s % 1:.9f}"[2 : 2 + count]


def rfc3339(moment_s: float, count: int = 9, zone_s: float = 0.0) -> str:
    """An RFC 3339 stamp; Z for no offset."""
    text = _date_time(int(moment_s + zone_s), "T")
    fraction = f".{digits(moment_s, count)}" if count else ""
    return f"{text}{fraction}{offset(zone_s, ':') if zone_s else 'Z'}"


def offset(zone_s: float, between: str = "") -> str:
    """A zone as +0530."""
    minutes = int(abs(zone_s)) // 60
    return f"{'-' if zone_s < 0 else '+'}{minutes // 60:02}{between}{minutes % 60:02}"


def short_date(moment_s: float) -> str:
    """A stamp without a year, as syslog has it."""
    when = _second(int(moment_s))
    return f"{_MONTHS[when.month - 1]} {when.day:2} {when:%H:%M:%S}"


def _dotted(file: str, place: Place) -> str:
    return file if ":" in file or not file else f"{file}:{place.rng.randint(40, 1900)}"


def _triton(at_s: float, said: Said, place: Place) -> list[str]:
    level, file = _LETTER[said.level], _dotted(said.file or "server.cc", place)
    if place.variant % 3 == 2:
        head = f"{_date_time(int(at_s), 'T')}Z {level} {place.pid} {file}] "
    else:
        text = _date_time(int(at_s))
        head = f"{level}{text[5:7]}{text[8:10]} {text[11:]}.{digits(at_s, 6)} {place.pid} {file}] "
    if place.variant % 3 == 1:
        return [head + json.dumps("\n".join(said.lines))]
    return [head + said.lines[0], *said.lines[1:]]


def _ort(at_s: float, said: Said, place: Place) -> list[str]:
    text = _date_time(int(at_s + place.zone_s))
    func = said.tag or "Run"
    head = f"{text}.{digits(at_s, 9)} [{'F' if said.level == 'C' else said.level}:onnxruntime:"
    head += f"{'' if place.variant % 2 else 'log'}, {_dotted(said.file, place)} {func}] "
    return [head + said.lines[0], *said.lines[1:]]


def _tf(at_s: float, said: Said, place: Place) -> list[str]:
    text = _date_time(int(at_s + place.zone_s))
    file = _dotted(said.file, place)
    return [f"{text}.{digits(at_s, 6)}: {_LETTER[said.level]} {file}] {said.lines[0]}", *said.lines[1:]]


def _trt(at_s: float, said: Said, place: Place) -> list[str]:
    text = _date_time(int(at_s + place.zone_s))
    stamp = f"[{text[5:7]}/{text[8:10]}/{text[:4]}-{text[11:]}] "
    level = {"D": "V", "C": "F"}.get(said.level, said.level)
    form = place.variant % 4
    if form == 0:
        return [f"{stamp}[TRT] [{level}] {said.lines[0]}", *said.lines[1:]]
    if form == 1:
        return [f"{stamp}[{level}] [TRT] {said.lines[0]}", *said.lines[1:]]
    if form == 2:
        return [f"[TensorRT] {_WORD[said.level]}: {said.lines[0]}", *said.lines[1:]]
    return [f"[TRT] [{level}] {said.lines[0]}", *said.lines[1:]]


def _trtllm(_at_s: float, said: Said, _place: Place) -> list[str]:
    return [f"[TensorRT-LLM][{_WORD[said.level]}] {said.lines[0]}", *said.lines[1:]]


def _log4j_time(at_s: float, place: Place) -> str:
    between = "T" if place.variant % 2 else " "
    return f"{_date_time(int(at_s + place.zone_s), between)},{digits(at_s, 3)}"


def _torchserve(at_s: float, said: Said, place: Place) -> list[str]:
    # The logger is the tag; what a worker printed gets a head a line, a Java stack does not.
    head = f"{_log4j_time(at_s, place)} [{_LOG4J[said.level]}] {said.tag or 'main org.pytorch.serve.ModelServer'} - "
    if "MODEL_LOG" in said.tag:
        return [head + line for line in said.lines]
    return [head + said.lines[0], *said.lines[1:]]


def _ts_access(at_s: float, said: Said, place: Place) -> list[str]:
    return [f"{_log4j_time(at_s, place)} - {said.lines[0]}"]


def _vllm(at_s: float, said: Said, place: Place) -> list[str]:
    text = _date_time(int(at_s + place.zone_s))
    level, stamp, file = _WORD[said.level], f"{text[5:10]} {text[11:]}", _dotted(said.file, place)
    where = f"{file}]" if place.variant % 2 else f"[{file}]"
    if place.colour:
        code = {"E": 31, "C": 31, "W": 33}.get(said.level, 32)
        head = f"\x1b[{code}m{level}\x1b[0m \x1b[90m{stamp}\x1b[0m \x1b[90m{where}\x1b[0m "
    else:
        head = f"{level} {stamp} {where} "
    if said.tag:
        head = f"({said.tag} pid={place.pid + len(said.tag)}) {head}"
    elif said.rank >= 0:
        head = f"(Worker_TP{said.rank} pid={place.pid + 10 + said.rank}) {head}"
    return [*(f"{head}{line}\r" for line in said.lines[:-1]), head + said.lines[-1]]


def _sglang(at_s: float, said: Said, place: Place) -> list[str]:
    tag = f" TP{said.rank}" if said.rank >= 0 else (f" {said.tag}" if said.tag else "")
    return [f"[{_date_time(int(at_s + place.zone_s))}{tag}] {said.lines[0]}", *said.lines[1:]]


def _tgi(at_s: float, said: Said, place: Place) -> list[str]:
    target = said.tag or "text_generation_launcher"
    stamp, level = rfc3339(at_s, 6), _RUST[said.level]
    middle = f"{_dotted(said.file, place)}: " if said.file else ""
    if place.colour:
        head = f"\x1b[2m{stamp}\x1b[0m \x1b[32m{level}\x1b[0m \x1b[2m{target}\x1b[0m\x1b[2m:\x1b[0m {middle}"
    else:
        head = f"{stamp} {level} {target}: {middle}"
    tail = f" rank={said.rank}" if said.rank >= 0 else ""
    if len(said.lines) == 1:
        return [f"{head}{said.lines[0]}{tail}"]
    return [head + said.lines[0], *said.lines[1:-1], said.lines[-1] + tail]


def _tgi_json(at_s: float, said: Said, place: Place) -> list[str]:
    level, message = _RUST[said.level].strip(), "\n".join(said.lines)
    span = {"rank": said.rank, "name": "shard-manager"} if said.rank >= 0 else {}
    if place.variant % 2:
        flat = {"timestamp": rfc3339(at_s, 6), "level": level, "message": message, "target": said.tag or "router"}
        return [json.dumps(flat)]
    nested = {"timestamp": rfc3339(at_s, 6), "level": level, "fields": {"message": message}}
    nested |= {"target": said.tag or "text_generation_launcher"}
    return [json.dumps(nested | ({"span": span, "spans": [span]} if span else {}), separators=(",", ":"))]


def _serve(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"{_date_time(int(at_s + place.zone_s))},{digits(at_s, 3)}"
    component = said.tag or "replica default_Generator"
    between = f"{_dotted(said.file, place)} - " if said.file else "-- "
    return [f"{_WORD[said.level]} {stamp} {component} {place.pid} {between}{said.lines[0]}", *said.lines[1:]]


def _serve_json(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"{_date_time(int(at_s + place.zone_s))},{digits(at_s, 3)}"
    first = {"levelname": _WORD[said.level], "asctime": stamp}
    message = "\n".join(said.lines)
    if place.variant % 2:
        return [json.dumps({**first, "component_name": "controller", "component_id": "31", "message": message})]
    named = {"deployment": "Generator", "replica": "a1b2c3", "application": "default", "route": "/"}
    return [json.dumps({**first, **named, "message": message})]


def _ray_core(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"{_date_time(int(at_s + place.zone_s))},{digits(at_s, 3)}"
    where = f"({said.tag or 'raylet'}) {_dotted(said.file, place)}:"
    return [f"[{stamp} {said.level} {place.pid} {place.pid + 7}] {where} {said.lines[0]}", *said.lines[1:]]


def _uvicorn(_at_s: float, said: Said, _place: Place) -> list[str]:
    level = f"{_WORD[said.level]}:".ljust(10)
    return [f"{level}{said.lines[0]}", *said.lines[1:]]


def _vllm_uvicorn(at_s: float, said: Said, place: Place) -> list[str]:
    head = "" if place.variant % 2 else f"(APIServer pid={place.pid}) "
    return [head + line for line in _uvicorn(at_s, said, place)]


def _sglang_uvicorn(at_s: float, said: Said, place: Place) -> list[str]:
    return [f"[{_date_time(int(at_s + place.zone_s))}] {line}" for line in _uvicorn(at_s, said, place)]


def _kserve(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"{_date_time(int(at_s + place.zone_s))}.{digits(at_s, 3)}"
    pid = f"{place.pid} " if place.variant % 2 else ""
    logger, _, function = (said.tag or "kserve __call__").partition(" ")
    where = f"[{function or 'run'}():{place.rng.randint(20, 400)}]"
    level = _WORD[said.level] + (":" if place.variant % 3 == 0 else "")
    return [f"{stamp} {pid}{logger} {level} {where} {said.lines[0]}", *said.lines[1:]]


def _kserve_access(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"{_date_time(int(at_s + place.zone_s))}.{digits(at_s, 3)}"
    return [f"{stamp} uvicorn.{said.tag or 'access'} {line}" for line in _uvicorn(at_s, said, place)]


def _gunicorn(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"[{_date_time(int(at_s + place.zone_s))} {offset(place.zone_s)}]"
    return [f"{stamp} [{said.tag or place.pid}] [{_WORD[said.level]}] {said.lines[0]}", *said.lines[1:]]


def _python(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = f"{_date_time(int(at_s + place.zone_s))},{digits(at_s, 3)}"
    return [f"{stamp} - {said.tag or 'app.main'} - {_WORD[said.level]} - {said.lines[0]}", *said.lines[1:]]


def _knative(at_s: float, said: Said, place: Place) -> list[str]:
    level, message = _WORD[said.level], "\n".join(said.lines)
    name, _, error = message.partition(" error: ")
    extra = {"error": error} if error else {}
    if place.variant % 2:
        old = {"level": level.lower(), "ts": rfc3339(at_s, 3), "logger": said.tag or "activator"}
        return [json.dumps({**old, "caller": _dotted(said.file, place), "msg": name, **extra})]
    new = {"severity": level, "timestamp": rfc3339(at_s, 9), "logger": said.tag or "queueproxy"}
    return [json.dumps({**new, "caller": _dotted(said.file, place), "message": name, **extra})]


def _nginx_error(at_s: float, said: Said, place: Place) -> list[str]:
    stamp = _date_time(int(at_s + place.zone_s)).replace("-", "/")
    level = {"I": "notice", "W": "warn", "E": "error", "C": "crit", "D": "debug"}[said.level]
    place.serial += 1
    return [f"{stamp} [{level}] {place.pid}#{place.pid}: *{place.serial} {said.lines[0]}"]


def _nginx_access(at_s: float, said: Said, _place: Place) -> list[str]:
    when = _second(int(at_s))
    stamp = f"[{when.day:02}/{_MONTHS[when.month - 1]}/{when:%Y:%H:%M:%S} +0000]"
    return [said.lines[0].replace("[]", stamp, 1)]


def _envoy(at_s: float, said: Said, _place: Place) -> list[str]:
    return [f"[{rfc3339(at_s, 3)}] {said.lines[0]}"]


def _redis(at_s: float, said: Said, place: Place) -> list[str]:
    when = _second(int(at_s + place.zone_s))
    mark = {"D": ".", "I": "*", "W": "#", "E": "#", "C": "#"}[said.level]
    date = f"{when.day:02} {_MONTHS[when.month - 1]}"
    if place.variant % 4 == 3:
        return [f"[{place.pid}] {date} {when:%H:%M:%S} {mark} {said.lines[0]}"]
    year = "" if place.variant % 4 == 2 else f" {when.year}"
    return [f"{place.pid}:{said.tag or 'M'} {date}{year} {when:%H:%M:%S}.{digits(at_s, 3)} {mark} {said.lines[0]}"]


def _kernel(at_s: float, said: Said, place: Place) -> list[str]:
    if place.kernel == "raw":
        head = f"[{at_s - place.booted_s:12.6f}] "
    elif place.kernel == "dated":
        when = _second(int(at_s + place.zone_s))
        head = f"[{when:%a} {_MONTHS[when.month - 1]} {when.day:2} {when:%H:%M:%S %Y}] "
    else:
        head = ""
    return [head + line for line in said.lines]


def _c10d(at_s: float, said: Said, place: Place) -> list[str]:
    rank = max(said.rank, 0)
    text = _date_time(int(at_s + place.zone_s))
    stamp = f"{_LETTER[said.level]}{text[5:7]}{text[8:10]} {text[11:]}.{digits(at_s, 9)}"
    file = _dotted(said.file or "ProcessGroupNCCL.cpp", place)
    group = f"[PG ID 0 PG GUID 0 Rank {rank}]" if place.variant % 2 else f"[Rank {rank}]"
    return [f"[rank{rank}]:[{stamp} {file}] {group} {said.lines[0]}", *said.lines[1:]]


def _torch(at_s: float, said: Said, place: Place) -> list[str]:
    # PyTorch's own loggers; digits below a millisecond are noughts.
    text = _date_time(int(at_s + place.zone_s))
    stamp = f"{_LETTER[said.level]}{text[5:7]}{text[8:10]} {text[11:]}.{digits(at_s, 3)}000"
    return [f"{stamp} {place.pid} {_dotted(said.file, place)}] {line}" for line in said.lines]


def _nccl(_at_s: float, said: Said, place: Place) -> list[str]:
    rank, level = max(said.rank, 0), "WARN" if said.level in "WEC" else "INFO"
    return [f"{place.host}:{place.pid}:{place.pid + 40} [{rank}] NCCL {level} {said.lines[0]}", *said.lines[1:]]


def _ranked(_at_s: float, said: Said, _place: Place) -> list[str]:
    return [f"[rank{max(said.rank, 0)}]: {line}" for line in said.lines]


def _gateway(at_s: float, said: Said, _place: Place) -> list[str]:
    # The tag is the event; a second line holds its numbers as JSON.
    line = {"time": rfc3339(at_s, 3), "level": _WORD[said.level], "event": said.tag, "message": said.lines[0]}
    numbers = json.loads(said.lines[1]) if len(said.lines) > 1 else {"count": 1}
    return [json.dumps({**line, **numbers})]


def _raw(_at_s: float, said: Said, _place: Place) -> list[str]:
    return list(said.lines)


Writer = Callable[[float, Said, Place], list[str]]
WRITERS: dict[str, Writer] = {
    "triton": _triton,
    "ort": _ort,
    "tf": _tf,
    "trt": _trt,
    "trtllm": _trtllm,
    "torchserve": _torchserve,
    "tsaccess": _ts_access,
    "vllm": _vllm,
    "sglang": _sglang,
    "tgi": _tgi,
    "tgijson": _tgi_json,
    "serve": _serve,
    "servejson": _serve_json,
    "raycore": _ray_core,
    "uvicorn": _uvicorn,
    "vllmuvicorn": _vllm_uvicorn,
    "sgluvicorn": _sglang_uvicorn,
    "kserve": _kserve,
    "ksaccess": _kserve_access,
    "gunicorn": _gunicorn,
    "python": _python,
    "knative": _knative,
    "nginxerror": _nginx_error,
    "nginxaccess": _nginx_access,
    "envoy": _envoy,
    "redis": _redis,
    "kernel": _kernel,
    "c10d": _c10d,
    "nccl": _nccl,
    "torch": _torch,
    "rank": _ranked,
    "gateway": _gateway,
    "raw": _raw,
}

PROGRAMS = {
    "triton": "triton", "torchserve": "torchserve", "vllm": "vllm", "sglang": "sglang", "tgi": "tgi",
    "tgi_json": "tgijson", "ray_serve": "serve", "ray_serve_json": "servejson", "kserve": "kserve", "app": "gunicorn",
    "knative": "knative", "nginx": "nginxerror", "envoy": "envoy", "redis": "redis", "kernel": "kernel",
    "kube_events": "raw", "nvidia_smi": "raw", "perf_analyzer": "raw", "gateway": "gateway",
}  # fmt: skip
"""Each program and the format that its records have unless they name another."""

TIMELESS = frozenset({"raw", "uvicorn", "vllmuvicorn", "trtllm", "nccl", "rank"})
"""Formats that never carry a time of their own."""


def has_time(form: str, place: Place) -> bool:
    """Whether a format's lines tell the time, as this place writes them."""
    if form in TIMELESS or (form == "kernel" and place.kernel != "dated"):
        return False
    return not (form == "trt" and place.variant % 4 >= 2)
