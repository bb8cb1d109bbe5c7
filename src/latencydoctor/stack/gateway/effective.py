"""The settings and routing in effect in the gateway, and how a change of the settings file reaches them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import ContentError
from latencydoctor.stack.gateway.canary import Canary
from latencydoctor.stack.gateway.series import ARMS
from latencydoctor.stack.settings import Settings, load


@dataclass(frozen=True, slots=True)
class Route:
    """What one arm needs to answer: which model to ask, and what its answers say of where they came from."""

    arm: str
    endpoint: str
    version: str
    key_version: str
    provenance: bytes
    """The part of an answer's JSON that is the same for all answers of this arm under these settings."""


@dataclass(frozen=True, slots=True)
class Effective:
    """One consistent view: a request takes it at its start and keeps it to its end."""

    settings: Settings
    canary: Canary
    routes: dict[str, Route]
    deadline_s: float

    def level(self, priority: str) -> int:
        """Triton's level for a priority; 0 (send none) unless the settings give the model levels."""
        inference = self.settings.inference
        if not inference.priority_levels:
            return 0
        return inference.priorities.vip if priority == "vip" else inference.priorities.standard


def combine(settings: Settings, canary: Canary, endpoint: str) -> Effective:
    """The view that follows from settings, canary and the stable Triton's endpoint (host:port)."""
    routes = {}
    for arm in ARMS:
        version = canary.model_version if arm == "canary" else ""
        facts = {"generation": settings.generation, "arm": arm, "accelerator": settings.accelerator}
        routes[arm] = Route(
            arm=arm,
            endpoint=(canary.endpoint if arm == "canary" else "") or endpoint,
            version=version,
            key_version=f"{settings.inference.precision}-{version or '1'}",
            provenance=json.dumps(facts, separators=(",", ":")).strip("{}").encode(),
        )
    return Effective(settings, canary, routes, settings.inference.deadline_ms / 1000)


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
        self._seen = identity
        try:
            settings = load(self._path)
        except ContentError as error:
            self.error = str(error)
            return None
        self.error = ""
        return settings
