"""Lines without a stamp or level that still show whose they are: the driver's, systemd's, a measuring client's."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import Draft

_CLIENT = re.compile(
    r"Request concurrency: \d|Avg (?:request|HTTP|gRPC) (?:latency|time):|p\d\d latency: \d|"
    r"\*\*\* Measurement Settings|"
    r"Request Rate: \d|Inferences/Second vs\. Client",
    re.ASCII,
)
_SMI = re.compile(r"[A-Z][\w /()-]{1,60}[\w)] {1,60}: \S", re.ASCII)
_FIRST = " \tNRApI*"
_UNITS = (".service", ".scope", ".slice", ".socket", ".mount", ".timer", ".target")


def named(text: str, draft: Draft, _dating: Dating) -> str | None:
    """A bare line of systemd, `<unit>: <text>`."""
    colon = text.find(": ", 1, 200)
    if colon < 0 or " " in text[:colon] or not text[:colon].endswith(_UNITS):
        return None
    draft.head("systemd")
    draft.within(text[:colon])
    return text


def owner(text: str) -> str:
    """The program that a line without any head shows by its words; empty where none does."""
    if text[:1] not in _FIRST:
        return ""
    bare = text.lstrip(" \t")
    if bare.startswith("NVRM: "):
        return "kernel"
    if bare != text and _SMI.match(bare):
        return "nvidia_smi"
    return "perf_analyzer" if _CLIENT.match(bare) else ""
