"""A model of a TorchServe as a target: what it is registered with, and what a change would ask of the server.

Reads only. Implements the port `Target`. There is no settings file: what can be set is what a registration takes (batch
size and wait) and what scaling sets (workers), and what a change would do is shown as the requests it would make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from latencydoctor.errors import ContentError, KnownError
from latencydoctor.model.remedy import TargetObject, TargetState
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets import settings_file
from latencydoctor.targets import torchserve_state as told
from latencydoctor.targets.torchserve_client import Management
from latencydoctor.targets.torchserve_state import Registration, parsed, same_version
from latencydoctor.targets.torchserve_steps import Way, requests

ENABLED = "inference.batching.enabled"

SETTABLE = frozenset({told.SIZE, told.WAIT, told.WORKERS})

LIMITS = (
    "TorchServe has no preferred batch size: a batch waits until it is full, or until the wait is over.",
    "TorchServe has no priorities.",
)
_NO_LOCK = (
    "TorchServe has no lock: the model is compared with what is expected before each request, but somebody else may "
    "still change it in between."
)
_NOT_KEPT = "A restarted TorchServe loads what its configuration or snapshot says: write a lasting change there, too."
_UNTOLD = (
    "A handler that was given at registration is not told by the management API and would not be given again; "
    "one that the archive names is."
)
_OUTAGE = (
    "No further archive of the model is named, so TorchServe can take other batching only by unregistering the "
    "version: requests being executed fail, those in its queue are never answered, and until the workers are ready "
    "again new ones fail. Name one in targets.torchserve.archives, and the old version serves meanwhile."
)
_BOTH = (
    "For a moment both versions are loaded: memory holds the workers of both. Requests that name the old version fail "
    "once it is gone. TorchServe tells what waits for a version, not what it executes: the old one is unregistered "
    "after some seconds in which nobody waited."
)
_WORKERS = "Each worker is a process with a copy of the model; when there are to be fewer, what they execute may fail."


class TorchServeTarget:
    """One model of one TorchServe. `archives` are the model's archives by version, all alike but for that."""

    def __init__(self, management: Management, archives: Mapping[str, str] | None = None) -> None:
        self.management = management
        self._archives = dict(archives or {})

    @property
    def name(self) -> str:
        """The target's identity, as --target takes it."""
        return identity(self.management.url, self.management.model)

    def read(self) -> TargetState:
        """Settings, digests and how many workers are ready; KnownError when the server does not say."""
        now = self.management.read()
        default = now.version(now.default)
        if default is None:
            raise KnownError(
                f"TorchServe at {self.management.url} has no model {self.management.model!r}",
                hint="Ask it for its models: GET /models. A killed run is finished with `latencydoctor runs recover`.",
            )
        registration = default.registration
        text = registration.text()
        versions = tuple(TargetObject(f"version {one.name}", 0, one.digest) for one in now.versions)
        missing = registration.min_workers - default.ready
        return TargetState(
            target=self.name,
            objects=(TargetObject(told.SETTINGS, 0, settings_digest(text)), *versions),
            settings=settings_file.flatten(text, told.SETTINGS),
            settings_text=text,
            # Batching is always there; a size of 1 makes nothing of it.
            effective=((ENABLED, "true"),),
            compiled="",
            not_in_effect=(f"{missing} of {registration.min_workers} workers are not ready",) if missing > 0 else (),
            settable=SETTABLE,
            limits=LIMITS,
            costs=self._costs(registration),
            compiled_name="requests to TorchServe",
        )

    def edited(self, settings_text: str, values: Sequence[tuple[str, str]]) -> str:
        """The settings with these keys set; other batching is registered under a further archive where one is named."""
        before = after = parsed(settings_text)
        for key, value in values:
            after = _with(after, key, value)
        if not after.registered_like(before):
            version, archive = self._further(before)
            after = replace(after, version=version, archive=archive)
        return after.text()

    def preview(self, settings_text: str) -> str:
        """The requests that would be made, one a line; Refused for what TorchServe does not allow."""
        now = self.management.read()
        default = now.version(now.default)
        return requests(now, Way(parsed(settings_text), default.registration if default else None))

    def _further(self, now: Registration) -> tuple[str, str]:
        """Version and archive to register: another of the named ones, else the one that is there."""
        others = [pair for pair in self._archives.items() if not same_version(pair[0], now.version)]
        return others[0] if others else (now.version, now.archive)

    def _costs(self, registration: Registration) -> tuple[tuple[str, str], ...]:
        """What setting a key brings with it here, beside what the fix says."""
        again = _OUTAGE if self._further(registration)[0] == registration.version else _BOTH
        batching = tuple((key, text) for key in (told.SIZE, told.WAIT) for text in (again, *LIMITS[:1], _UNTOLD))
        always = tuple((key, text) for key in sorted(SETTABLE) for text in (_NO_LOCK, _NOT_KEPT))
        return (*batching, (told.WORKERS, _WORKERS), *always)


def identity(url: str, model: str) -> str:
    """What a model is called as a target, as --target takes it."""
    return f"torchserve:{url}/models/{model}"


def _with(registration: Registration, key: str, value: str) -> Registration:
    if key not in SETTABLE or not (value.isascii() and value.isdecimal()):
        raise ContentError(f"{key} cannot be set to {value!r}", hint=f"Here can be set: {', '.join(sorted(SETTABLE))}.")
    number = int(value)
    if key == told.WORKERS:
        return replace(registration, min_workers=number, max_workers=max(number, registration.max_workers))
    if key == told.SIZE:
        return replace(registration, batch_size=number)
    if number % 1000:
        raise ContentError(f"{key} cannot be {value}", hint="TorchServe waits whole milliseconds: a multiple of 1000.")
    return replace(registration, delay_ms=number // 1000)
