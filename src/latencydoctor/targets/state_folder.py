"""The bundled stack's state folder as the doctor meets it: its settings file, and where its parts listen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.model.effects import Effects, unwatched
from latencydoctor.targets.folder import GuardedFolder, Names

SETTINGS = "settings.yaml"
ENDPOINTS = "endpoints.json"
LOCK = "settings.yaml.lock"
SERVING = "run/serving.json"

_NAMES = Names(
    SETTINGS, LOCK, "stack", "Start one with `latencydoctor stack up`, or name its folder in the configuration."
)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the parts that a fix talks to listen: host:port of each serving Triton, URL, path of a Unix socket."""

    tritons_grpc: tuple[str, ...]
    controller_metrics: str
    admin_socket: str


class StateFolder(GuardedFolder):
    """One stack's folder."""

    def __init__(self, path: Path, effects: Effects = unwatched) -> None:
        super().__init__(path, _NAMES, effects)

    def endpoints(self) -> Endpoints:
        """The addresses that `stack up` wrote; KnownError when they are absent or damaged."""
        text = self.read(ENDPOINTS)
        try:
            found = json.loads(text)
            tritons = (str(found["triton_grpc"]), *(str(one["grpc"]) for one in found.get("replicas", ())))
            served = tuple(tritons[number - 1] for number in self._serving() if 1 <= number <= len(tritons))
            return Endpoints(served or tritons[:1], str(found["controller_metrics"]), str(found["admin_socket"]))
        except (ValueError, KeyError, TypeError) as error:
            raise KnownError(
                f"{self.path / ENDPOINTS} is damaged: {error!r}", hint="Run `latencydoctor stack up` again."
            ) from error

    def _serving(self) -> tuple[int, ...]:
        """Which Tritons take traffic, counted from 1: the controller's word; the first alone where it says nothing."""
        try:
            return tuple(int(number) for number in json.loads(self.read(SERVING))["serving"])
        except (KnownError, ValueError, KeyError, TypeError):
            return (1,)
