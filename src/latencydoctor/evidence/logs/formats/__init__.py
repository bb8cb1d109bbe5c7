"""Formats of programs' own lines, a family a module, and the table that says which a line can have by how it begins.

A format is a function from text to its message (`Layer`). `LAYERS` lists, for the first character of a line, wrappers
and formats in the order in which they are tried: what is certain first, what is merely likely last. Lines that begin
with a full date share one parser, `dated`, which goes on by what follows the stamp.
"""

from __future__ import annotations

import string
from collections.abc import Callable

from latencydoctor.evidence.logs import wrappers
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import Draft
from latencydoctor.evidence.logs.formats import (
    backends,
    bracketed,
    collectives,
    dated,
    kernel,
    kubernetes,
    logfmt,
    plain,
    proxies,
    redis,
    smi_table,
    triton,
    uwsgi,
    worded,
)
from latencydoctor.evidence.logs.structured import json_line

Layer = Callable[[str, Draft, Dating], str | None]
"""Takes one layer off a text: the rest of it, or None where the text does not have that layer."""

_WORD: tuple[Layer, ...] = (
    wrappers.compose,
    wrappers.stern,
    logfmt.pairs,
    collectives.nccl,
    plain.named,
    smi_table.header,
    smi_table.row,
)
_MONTH: tuple[Layer, ...] = (wrappers.syslog, wrappers.syslog_weekday, uwsgi.line)
_LEVEL: tuple[Layer, ...] = (worded.level_first, wrappers.cloud)
_DIGIT: tuple[Layer, ...] = (
    dated.full,
    redis.line,
    proxies.nginx_error,
    dated.slashed,
    proxies.nginx_access,
    proxies.haproxy,
    kubernetes.listed_event,
    wrappers.syslog,
    proxies.envoy_code,
    wrappers.compose,
    wrappers.stern,
    collectives.nccl,
    backends.tensorrt_body,
    smi_table.row,
)
_BRACKET: tuple[Layer, ...] = (
    bracketed.dated,
    wrappers.rank,
    wrappers.pod,
    collectives.ucx,
    kernel.uptime,
    kernel.wall_clock,
    collectives.bracket,
    backends.tensorrt,
    redis.old_line,
    proxies.envoy_access,
    bracketed.level,
    uwsgi.request,
)

LAYERS: dict[str, tuple[Layer, ...]] = {
    **dict.fromkeys(string.ascii_letters, _WORD),
    **dict.fromkeys("JMSO", (*_MONTH, *_WORD)),
    **dict.fromkeys("TDCAF", (*_LEVEL, *_MONTH, *_WORD)),
    **dict.fromkeys("EIF", (triton.server, *_LEVEL, *_MONTH, *_WORD)),
    "N": (kubernetes.described_event, *_LEVEL, *_MONTH, *_WORD),
    "W": (triton.server, *_LEVEL, kubernetes.described_event, *_MONTH, *_WORD),
    **dict.fromkeys("VD", (triton.server, *_LEVEL, *_MONTH, *_WORD)),
    **dict.fromkeys(string.digits, _DIGIT),
    "{": (json_line,),
    "[": _BRACKET,
    "(": (wrappers.actor,),
    "<": (wrappers.priority, kubernetes.listed_event),
    ">": (wrappers.quoted,),
    "+": (wrappers.stern_own,),
    "-": (wrappers.stern_own,),
    " ": (wrappers.cloudwatch, kubernetes.described_event),
    "|": (wrappers.cloudwatch,),
}
