"""A TorchServe's management API as far as a target needs it, with the behaviour that 0.12.0 was seen to have.

It is held to the real server by `tests/contract/test_torchserve_target.py`, which asks the same of both.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.contract.strangers import Asked, stranger

_DEFAULTS = {"batch_size": 1, "max_batch_delay": 100, "response_timeout": 120, "startup_timeout": 120}


@dataclass(frozen=True, slots=True)
class Archive:
    """What lies in the model store under a name."""

    model: str
    version: str
    min_workers: int = 0
    """As its own configuration says; 0 for an archive without one."""
    max_workers: int = 0
    traits: tuple[tuple[str, Any], ...] = (("runtime", "python"), ("deviceType", "cpu"), ("parallelType", ""))
    forced_batch_size: int = 0
    """What a server that prefers the archive's own configuration registers, whatever it is asked."""
    broken: bool = False
    """Workers of it never get ready."""


@dataclass(slots=True)
class _Version:
    archive: str
    traits: dict[str, Any]
    version: str
    told: dict[str, int]
    broken: bool
    changed_s: float = 0.0
    waiting: int = 0


@dataclass(slots=True)
class FakeTorchServe:
    """The server's state; `model_api`: whether models may be registered; `start_s`: how long workers take to start."""

    archives: dict[str, Archive]
    start_s: float = 0.05
    token: str = ""
    model_api: bool = True
    asked: list[str] = field(default_factory=list)
    models: dict[str, dict[float, _Version]] = field(default_factory=dict)
    defaults: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def changes(self) -> list[str]:
        """The requests that change something, in their order."""
        return [line for line in self.asked if not line.startswith("GET")]

    def wait_for(self, model: str, version: str, requests: int) -> None:
        """So many requests wait for a version."""
        with self._lock:
            self.models[model][float(version)].waiting = requests

    def answer(self, asked: Asked) -> None:
        """One request of the management API."""
        method, path = asked.head.split(" ", 2)[:2]
        with self._lock:
            self.asked.append(f"{method} {path}")
            if self.token and asked.header("authorization") != f"Bearer {self.token}":
                status, told = _error(400, "InvalidKeyException", "Token Authorization failed. Token either ...")
            else:
                status, told = self._routed(method, path)
        asked.reply(json.dumps(told).encode(), f"{status} Said")

    def _routed(self, method: str, path: str) -> tuple[int, object]:
        parts = urlsplit(path)
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if method in ("POST", "DELETE") and not self.model_api:
            message = "Requested method is not allowed, please refer to API document."
            return _error(405, "MethodNotAllowedException", message)
        if method == "POST":
            return self._register(query)
        name, rest = words[1], words[2:]
        if name not in self.models:
            return _error(404, "ModelNotFoundException", f"Model not found: {name}")
        if rest == ["all"]:
            return 200, [_described(name, one, self.start_s) for _, one in sorted(self.models[name].items())]
        number = float(rest[0]) if rest else self.defaults[name]
        if number not in self.models[name]:
            message = f"Model version: {rest[0]} does not exist for model: {name}"
            return _error(404, "ModelVersionNotFoundException", message)
        if method == "GET":
            return 200, [_described(name, self.models[name][number], self.start_s)]
        if method == "DELETE":
            return self._unregister(name, number)
        if rest[1:] == ["set-default"]:
            self.defaults[name] = number
            return 200, {"status": "Default version successfully updated"}
        return _scale(self.models[name][number], query)

    def _register(self, query: dict[str, str]) -> tuple[int, object]:
        archive = self.archives.get(query.get("url", ""))
        if archive is None:
            return _error(404, "ModelNotFoundException", f"Model not found at: {query.get('url')}")
        name, number = query.get("model_name", archive.model), float(archive.version)
        if number in self.models.get(name, {}):
            message = f"Model version {archive.version} is already registered for model {name}"
            return _error(409, "ConflictStatusException", message)
        told = {key: int(query.get(key, default)) for key, default in _DEFAULTS.items()}
        if archive.forced_batch_size:
            told["batch_size"] = archive.forced_batch_size
        workers = int(query.get("initial_workers", 0))
        # An archive's own configuration decides on workers and time-outs, whatever is asked for.
        told["min"], told["max"] = archive.min_workers or workers, archive.max_workers or workers
        if archive.min_workers:
            told |= {"response_timeout": 120, "startup_timeout": 120}
        version = _Version(query["url"], dict(archive.traits), archive.version, told, archive.broken, time.monotonic())
        self.models.setdefault(name, {})[number] = version
        self.defaults.setdefault(name, number)
        return 202, {"status": "Processing worker updates..."}

    def _unregister(self, name: str, number: float) -> tuple[int, object]:
        if self.defaults[name] == number and len(self.models[name]) > 1:
            return _error(403, "InvalidModelVersionException", f"Cannot remove default version for model {name}")
        del self.models[name][number]
        if not self.models[name]:
            del self.models[name], self.defaults[name]
        return 200, {"status": f'Model "{name}" unregistered'}


def _scale(version: _Version, query: dict[str, str]) -> tuple[int, object]:
    least = int(query.get("min_worker", 1))
    most = int(query.get("max_worker", least))
    if most < least:
        return _error(400, "BadRequestException", "max_worker cannot be less than min_worker.")
    version.changed_s = time.monotonic()
    version.told |= {"min": least, "max": most}
    return 202, {"status": "Processing worker updates..."}


def _described(name: str, one: _Version, start_s: float) -> dict[str, Any]:
    started = not one.broken and time.monotonic() - one.changed_s >= start_s
    status = "READY" if started else "UNLOADING"
    return {
        "modelName": name,
        "modelVersion": one.version,
        "modelUrl": one.archive,
        "minWorkers": one.told["min"],
        "maxWorkers": one.told["max"],
        "batchSize": one.told["batch_size"],
        "maxBatchDelay": one.told["max_batch_delay"],
        "responseTimeout": one.told["response_timeout"],
        "startupTimeout": one.told["startup_timeout"],
        "loadedAtStartup": False,
        **one.traits,
        "workers": [{"id": str(9000 + index), "status": status} for index in range(one.told["min"])],
        "jobQueueStatus": {"remainingCapacity": 100 - one.waiting, "pendingRequests": one.waiting},
    }


def _error(code: int, kind: str, message: str) -> tuple[int, object]:
    return code, {"code": code, "type": kind, "message": message}


@contextmanager
def serving(fake: FakeTorchServe) -> Iterator[str]:
    """The fake on a loopback port; its address."""
    with stranger(fake.answer) as server:
        yield server.url
