"""The settings and routing in effect in the gateway, and how a change of the settings file reaches them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from latencydoctor.errors import ContentError
from latencydoctor.stack.gateway.canary import Canary
from latencydoctor.stack.gateway.series import ARMS
from latencydoctor.stack.settings import Settings, load
from latencydoctor.stack.versions import VERSIONS


@dataclass(frozen=True, slots=True)
class Route:
    """What one arm needs to answer: which model to ask, and what its answers say of where they came from.

    `version` "" leaves it to the model's own policy, which decides while there is one version only.
    """

    arm: str
    endpoints: tuple[str, ...]
    version: str
    key_version: str
    serves: str
    """The version that answers on this arm once the settings are in effect."""
    provenance: bytes
    """The part of an answer's JSON that is the same for all answers of this arm under these settings."""
    turns: Iterator[str] = field(compare=False, repr=False)
    """The Triton (host:port) whose turn it is."""


@dataclass(frozen=True, slots=True)
class Effective:
    """One consistent view: a request takes it at its start and keeps it to its end."""

    settings: Settings
    canary: Canary
    routes: dict[str, Route]
    deadline_s: float

    def level(self, priority: str) -> int:
        """Triton's level for a priority; 0 (send none) unless the settings give the model levels.

        They are the batcher's: without one there are none.
        """
        inference = self.settings.inference
        if not (inference.priority_levels and inference.batching.enabled):
            return 0
        return inference.priorities.vip if priority == "vip" else inference.priorities.standard


def combine(settings: Settings, tritons: tuple[str, ...]) -> Effective:
    """The view that follows from the settings; `tritons` are the replicas' endpoints (host:port), in their order."""
    tried, inference = settings.canary, settings.inference
    on_replica = tried is not None and tried.batching is not None and len(tritons) > 1
    routes = {}
    for arm in ARMS:
        is_canary = arm == "canary"
        endpoints = tritons if not on_replica else tritons[-1:] if is_canary else tritons[:-1]
        by_version = tried is not None and tried.precision is not None
        precision = tried.precision if tried and tried.precision and is_canary else inference.precision
        facts = {"generation": settings.generation, "arm": arm, "accelerator": settings.accelerator}
        routes[arm] = Route(
            arm=arm,
            endpoints=endpoints,
            version=VERSIONS[precision] if by_version else "",
            key_version=f"{precision}-{VERSIONS[precision]}",
            serves=VERSIONS[precision],
            provenance=json.dumps(facts, separators=(",", ":")).strip("{}").encode(),
            turns=itertools.cycle(endpoints),
        )
    canary = Canary(tried.share(inference.replicas) if tried is not None else 0.0)
    return Effective(settings, canary, routes, inference.deadline_ms / 1000)


class SettingsFile:
    """Notices that the settings file was replaced; a broken one changes nothing but `error`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self.error = ""

    def changed(self) -> Settings | None:
        """The settings when the file is another one than at the last call and can be read, else None."""
        try:
            found = self._path.stat()
        except OSError as error:
            self.error = f"{self._path}: {error.strerror}"
            return None
        identity = (found.st_ino, found.st_mtime_ns, found.st_size)
        if identity == self._seen:
            return None
        try:
            settings = load(self._path)
        except ContentError as error:
            self.error = str(error)
            # One that cannot be opened, as when a crowd has taken all files that may be, is tried again.
            self._seen = None if isinstance(error.__cause__, OSError) else identity
            return None
        self._seen, self.error = identity, ""
        return settings
