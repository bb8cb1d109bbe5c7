"""A model of a TorchServe as its management API describes it, and the same as settings: foreign JSON in, records out.

The settings are a text of ours: TorchServe has no file of them. It holds what a registration takes and what scaling
sets, for the version that is the default one; the same server always makes the same text, so that its digest proves a
state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from latencydoctor.errors import ContentError, KnownError
from latencydoctor.targets import settings_file

SETTINGS = "management API"
"""What the settings are called among a plan's objects."""

MODEL = "inference.model"
VERSION = "inference.version"
ARCHIVE = "inference.archive"
SIZE = "inference.batching.max_batch_size"
WAIT = "inference.batching.timeout_micros"
WORKERS = "inference.instances"
MOST_WORKERS = "inference.max_instances"
RESPONSE = "inference.response_timeout_seconds"
STARTUP = "inference.startup_timeout_seconds"

_READY = "READY"
_OWN_FIELDS = {
    "modelName", "modelVersion", "modelUrl", "minWorkers", "maxWorkers", "batchSize", "maxBatchDelay",
    "responseTimeout", "startupTimeout", "workers", "jobQueueStatus", "metrics", "customizedMetadata",
    # Says how the model came to be there, not what it is: one that was registered again never says so.
    "loadedAtStartup",
}  # fmt: skip
"""Fields of a description that have a place of their own, or change from moment to moment; the rest are traits."""

_LARGEST = 1 << 31


@dataclass(frozen=True, slots=True)
class Registration:
    """What a version is registered with, and between how many workers it may have."""

    model: str
    version: str
    archive: str
    batch_size: int
    delay_ms: int
    min_workers: int
    max_workers: int
    response_timeout_s: int
    startup_timeout_s: int

    def registered_like(self, other: Registration) -> bool:
        """Whether both differ in nothing but their workers, whose number can be set at any time."""
        return replace(self, min_workers=other.min_workers, max_workers=other.max_workers) == other

    def text(self) -> str:
        """As settings; one value a line, the same text for the same registration."""
        return (
            "inference:\n"
            f"  model: {_quoted(self.model)}\n"
            f"  version: {_quoted(self.version)}\n"
            f"  archive: {_quoted(self.archive)}\n"
            "  batching:\n"
            f"    max_batch_size: {self.batch_size}\n"
            f"    timeout_micros: {1000 * self.delay_ms}\n"
            f"  instances: {self.min_workers}\n"
            f"  max_instances: {self.max_workers}\n"
            f"  response_timeout_seconds: {self.response_timeout_s}\n"
            f"  startup_timeout_seconds: {self.startup_timeout_s}\n"
        )


@dataclass(frozen=True, slots=True)
class Version:
    """A registered version: its registration, how many workers are ready, how many requests wait for it (None: not
    told), and `traits`, whatever else the description says, which re-registration takes out of the archive."""

    registration: Registration
    ready: int
    waiting: int | None
    traits: str

    @property
    def name(self) -> str:
        """The version's own name."""
        return self.registration.version

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of everything that stays the same from one description to the next."""
        return hashlib.sha256(f"{self.registration.text()}{self.traits}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Served:
    """All versions of a model and which of them is the default; no version at all where the model is not there."""

    default: str = ""
    versions: tuple[Version, ...] = ()

    def version(self, name: str) -> Version | None:
        """The version of that name; TorchServe compares them as numbers."""
        return next((one for one in self.versions if same_version(one.name, name)), None)


def same_version(one: str, other: str) -> bool:
    """Whether two names are one version to TorchServe, which reads them as numbers: 1.0 and 1.00 are the same."""
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


def served(default: object, every: object, model: str) -> Served:
    """From the descriptions of the default version and of all; KnownError when they are not TorchServe's."""
    versions = tuple(_version(item, model) for item in _entries(every))
    (first,) = _entries(default)[:1] or ({},)
    found = Served(_text(first, "modelVersion"), tuple(sorted(versions, key=lambda one: one.name)))
    if found.version(found.default) is None:
        raise KnownError(
            f"the versions of {model} changed while they were read",
            hint="Somebody else is changing this TorchServe: wait until that has ended.",
        )
    return found


def parsed(text: str) -> Registration:
    """The registration that a text of settings asks for; ContentError when it is none of ours."""
    told = dict(settings_file.flatten(text, SETTINGS))
    try:
        wait = int(told[WAIT])
        found = Registration(
            told[MODEL],
            told[VERSION],
            told[ARCHIVE],
            int(told[SIZE]),
            wait // 1000,
            int(told[WORKERS]),
            int(told[MOST_WORKERS]),
            int(told[RESPONSE]),
            int(told[STARTUP]),
        )
    except (KeyError, ValueError) as error:
        raise ContentError(f"these are no settings of a TorchServe model: {error}") from error
    if wait % 1000:
        raise ContentError(f"{WAIT} is {wait}", hint="TorchServe waits whole milliseconds: a multiple of 1000.")
    return found


def _quoted(text: str) -> str:
    # A JSON string is one of YAML, too, but for what JSON escapes as two halves.
    return json.dumps(text, ensure_ascii=False)


def _entries(told: object) -> list[Mapping[str, object]]:
    entries = told if isinstance(told, list) else []
    found: list[Mapping[str, object]] = [item for item in entries if isinstance(item, dict)]
    if not found or len(found) != len(entries):
        raise _strange()
    return found


def _version(told: Mapping[str, object], model: str) -> Version:
    if told.get("modelName") != model:
        raise _strange()
    registration = Registration(
        model,
        _text(told, "modelVersion"),
        _text(told, "modelUrl"),
        _number(told, "batchSize"),
        _number(told, "maxBatchDelay"),
        _number(told, "minWorkers"),
        _number(told, "maxWorkers"),
        _number(told, "responseTimeout"),
        _number(told, "startupTimeout"),
    )
    workers, queue = told.get("workers"), told.get("jobQueueStatus")
    if not isinstance(workers, list):
        raise _strange()
    ready = sum(isinstance(worker, dict) and worker.get("status") == _READY for worker in workers)
    waiting = queue.get("pendingRequests") if isinstance(queue, dict) else None
    traits = {name: value for name, value in told.items() if name not in _OWN_FIELDS}
    return Version(
        registration, ready, waiting if isinstance(waiting, int) else None, json.dumps(traits, sort_keys=True)
    )


def _text(told: Mapping[str, object], key: str) -> str:
    value = told.get(key)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise KnownError(
            f"this TorchServe does not tell {key}",
            hint="Without it a version could not be brought back as it was. TorchServe 0.12 tells it.",
        )
    return value


def _number(told: Mapping[str, object], key: str) -> int:
    value = told.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST:
        raise KnownError(
            f"this TorchServe does not tell {key}",
            hint="Without it a version could not be brought back as it was. TorchServe 0.12 tells it.",
        )
    return value


def _strange() -> KnownError:
    return KnownError("the server sent JSON that is not TorchServe's", hint="Is it the management address (port 8081)?")
