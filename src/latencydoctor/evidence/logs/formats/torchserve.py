"""TorchServe: its own lines, the lines it relays from Python workers, its access log and its metrics.

What a worker prints on stdout is relayed as INFO and what it prints on stderr as WARN, whatever it says; so of a
relayed line the head gives the time only, and the line inside is read like any other.
"""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft

_HEAD = re.compile(r" \[(TRACE|DEBUG|INFO|WARN|ERROR|FATAL) {0,2}\] (\S{1,255}) (\S{1,200}) - ?", re.ASCII)
_RELAYED = re.compile(r"-std(out|err)$", re.ASCII)
_ACCESS = re.compile(r"/?\S{1,100} \"([A-Za-z]{2,10}) \S{1,4000} \S{1,20}\" (\d{3}) (\d{1,12})$", re.ASCII)
_METRIC = re.compile(r"([A-Za-z]\w{0,100})\.(\w{1,40}):(-?\d{1,15}(?:\.\d{1,12})?)\|#", re.ASCII)
_STAMP = re.compile(r"timestamp:(\d{10})(?:,|$)", re.ASCII)
_JOB = re.compile(r"Waiting time ns: (\d{1,18}), (?:Backend|Inference) time ns: (\d{1,18})", re.ASCII)
_UNIT_MS = {"ms": 1.0, "Milliseconds": 1.0, "s": 1e3, "Seconds": 1e3}
_NAMES = {"QueueTime": "queue_ms", "PredictionTime": "prediction_ms", "HandlerTime": "handler_ms"}
_QUICK_DELAY_S = 300.0


def after_stamp(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`[<LEVEL>] <thread> <logger> - <message>`, behind the stamp."""
    match = _HEAD.match(rest)
    if match is None:
        return None
    level, thread, logger = match.groups()
    dating.own(draft, "torchserve")
    draft.process = thread
    message = rest[match.end() :]
    relayed = _RELAYED.search(thread)
    if relayed is not None and not logger.startswith("org."):
        draft.program = "torchserve"
        draft.stream = f"std{relayed[1]}"
        draft.process = thread[: relayed.start()]
        return message
    draft.head("torchserve", LEVELS[level])
    _details(message, draft, dating)
    return message


def short(rest: str, draft: Draft, dating: Dating) -> str | None:
    """` - <ip:port> "<METHOD> <uri> <proto>" <code> <ms>` or ` - <metric>`, of the access and metrics files."""
    message = rest[3:] if rest.startswith(" - ") else ""
    if not (_ACCESS.match(message) or _METRIC.match(message)):
        return None
    dating.own(draft, "torchserve")
    draft.head("torchserve", "INFO")
    _details(message, draft, dating)
    return message


def _details(message: str, draft: Draft, dating: Dating) -> None:
    metric = _METRIC.match(message)
    if metric is not None:
        name, unit, value = metric.groups()
        factor = _UNIT_MS.get(unit)
        known = _NAMES.get(name) if factor else None
        draft.fields = ((known or name, float(value) * (factor or 1.0 if known else 1.0)),)
        _learn_zone(message, draft, dating)
        return
    access = _ACCESS.match(message)
    if access is not None:
        draft.status = int(access[2])
        draft.fields = (("request_ms", float(access[3])),)
        return
    job = _JOB.search(message, 0, 500) if "Waiting time ns" in message else None
    if job is not None:
        draft.fields = (("backend_ms", int(job[2]) / 1e6), ("queue_ms", int(job[1]) / 1e6))


def _learn_zone(message: str, draft: Draft, dating: Dating) -> None:
    """A metric carries the epoch beside the local stamp. It may be minutes old, so only near quarters teach a zone."""
    stamp = _STAMP.search(message[-200:])
    if stamp is None or draft.zone_s is not None:
        return
    written_s = float(stamp[1])
    behind_s = (draft.naive_s - written_s) % 900.0
    if behind_s < _QUICK_DELAY_S:
        dating.learn("torchserve", draft.naive_s - behind_s, written_s)
        dating.own(draft, "torchserve")
