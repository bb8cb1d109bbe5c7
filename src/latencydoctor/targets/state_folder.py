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

_NAMES = Names(
    SETTINGS, LOCK, "stack", "Start one with `latencydoctor stack up`, or name its folder in the configuration."
)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the parts that a fix talks to listen: host:port of each Triton, URL, path of a Unix socket."""

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
            # A stack of one replica names no second one.
            tritons = (str(found["triton_grpc"]), str(found.get("replica_grpc", "")))
            served = tuple(one for one in tritons if one)
            return Endpoints(served, str(found["controller_metrics"]), str(found["admin_socket"]))
        except (ValueError, KeyError, TypeError) as error:
            raise KnownError(
                f"{self.path / ENDPOINTS} is damaged: {error!r}", hint="Run `latencydoctor stack up` again."
            ) from error
