"""The controller's work: notice a change, check it, bring it into effect, say what happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tritonclient.grpc import model_config_pb2

from latencydoctor.errors import KnownError, LatencyDoctorError
from latencydoctor.stack import compile as compiler
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.controller.kept import KeptGenerations, owner_of
from latencydoctor.stack.controller.state import SharedProgress
from latencydoctor.stack.controller.stubs import StubWatch
from latencydoctor.stack.controller.triton import TritonUnavailableError, in_effect
from latencydoctor.stack.files import write_atomically
from latencydoctor.stack.settings import Settings
from latencydoctor.stack.yaml_nodes import read_text

POLL_S = 0.1
"""How often the settings file is looked at; a look is one stat call."""

RETRY_S = 0.5
"""How long to wait for a Triton that does not answer before asking again."""

CANARY_LOOK_S = 1.0
"""How often a canary's replica is asked what it runs, once for two scrapes of a verification window at the least."""

Log = Callable[..., None]

Server = TypeVar("Server", bound="TritonServer", covariant=True)


class TritonServer(Protocol):
    """What the loop needs of Triton."""

    def effective(self, model: str) -> model_config_pb2.ModelConfig: ...

    def load(self, model: str, config_json: str) -> None: ...

    def reload(self, model: str, config_json: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Served(Generic[Server]):
    """One Triton, and the watch over its model's process."""

    triton: Server
    stubs: StubWatch


class Controller:
    """Keeps every Triton of the stack in line with one settings file."""

    def __init__(
        self,
        settings: Path,
        models: Path,
        servers: Sequence[Served[TritonServer]],
        progress: SharedProgress,
        log: Log,
        kept: KeptGenerations | None = None,
    ) -> None:
        self._settings = settings
        self._models = models
        self._servers = tuple(servers)
        self._in_effect: Settings | None = None
        self._progress = progress
        self._log = log
        self._kept = kept
        self._stamp: tuple[int, ...] = ()
        self._waiting = False
        self._canary_seen_s = 0.0

    def run(self, stopped: threading.Event) -> None:
        """Works until `stopped` is set."""
        wait = 0.0
        while not stopped.wait(wait):
            wait = POLL_S if self.step() else RETRY_S

    def step(self) -> bool:
        """One look at the file; False when Triton did not answer and the step has to be repeated soon."""
        stamp = self._look()
        if stamp == self._stamp:
            self._revive()
            return True
        try:
            text, owner = read_text(self._settings), owner_of(self._settings)
            settings = stack_settings.parse(text, str(self._settings))
        except LatencyDoctorError as error:
            self._stamp = stamp
            self._refuse(str(error))
            return True
        self._progress.current = replace(self._progress.current, seen_generation=settings.generation)
        try:
            self._apply(settings)
            self._keep(settings.generation, text, owner)
        except TritonUnavailableError as error:
            self._progress.current = replace(self._progress.current, error=str(error))
            if not self._waiting:
                self._log("WARNING", "triton_unavailable", str(error))
            self._waiting = True
            return False
        except (LatencyDoctorError, OSError) as error:
            self._refuse(str(error))
        self._waiting = False
        self._stamp = stamp
        return True

    def _look(self) -> tuple[int, ...]:
        """What changes when the file does; empty while there is none."""
        try:
            found = self._settings.stat()
        except OSError:
            return (0,)
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def _refuse(self, reason: str) -> None:
        reason = "; ".join(reason.splitlines())
        self._progress.current = replace(self._progress.current, error=reason)
        self._log("ERROR", "settings_refused", reason, generation=self._progress.current.generation)

    def _apply(self, settings: Settings) -> None:
        """Brings `settings` into effect; the model folder always holds what a restarted Triton should run."""
        if settings.inference.replicas != len(self._servers):
            raise KnownError(
                f"inference.replicas is {settings.inference.replicas}, {len(self._servers)} run",
                hint="Run `stack down`, then `stack up`: replicas start and end with the stack.",
            )
        model = settings.inference.model
        path = self._models / model / "config.pbtxt"
        before = path.read_text(encoding="utf-8")
        write_atomically(path, compiler.to_pbtxt(settings))
        try:
            reloaded = self._load(settings)
        except TritonUnavailableError:
            raise
        except LatencyDoctorError:
            write_atomically(path, before)
            raise
        self._in_effect = settings
        self._progress.current = replace(self._progress.current, generation=settings.generation, error="")
        self._log("INFO", "settings_in_effect", "settings in effect", generation=settings.generation, reloaded=reloaded)

    def _keep(self, generation: int, text: str, owner: str) -> None:
        """Writes down what is in effect now; a full disk must not take the settings back."""
        if self._kept is None:
            return
        try:
            self._kept.keep(generation, text, owner)
        except OSError as error:
            self._log("WARNING", "settings_not_kept", f"this generation cannot be brought back later: {error}")

    def _revive(self) -> None:
        """Loads the model again when its process died: Triton does not start another by itself."""
        settings = self._in_effect
        if settings is None:
            return
        for number, server in enumerate(self._servers, start=1):
            if server.stubs.lost():
                self._reload(server.triton, settings.of_replica(number))
        self._keep_canary(settings)

    def _keep_canary(self, settings: Settings) -> None:
        """Loads the canary again into a Triton that was started again: the model folder holds what all others run."""
        own = settings.of_replica(len(self._servers))
        if own is settings or time.monotonic() < self._canary_seen_s + CANARY_LOOK_S:
            return
        self._canary_seen_s = time.monotonic()
        try:
            if self._load(settings):
                self._log("WARNING", "canary_loaded_again", "the canary's replica had lost its settings")
        except LatencyDoctorError as error:
            self._log("WARNING", "canary_unknown", str(error))

    def _reload(self, triton: TritonServer, settings: Settings) -> None:
        try:
            triton.reload(settings.inference.model, compiler.to_json(settings))
        except KnownError as error:
            # Triton itself is down and being restarted, or the next look tries again.
            self._log("WARNING", "model_restart_failed", str(error))
            return
        current = self._progress.current
        self._progress.current = replace(current, model_restarts=current.model_restarts + 1)
        self._log("ERROR", "model_process_died", "the model's process died and was started again")

    def _load(self, settings: Settings) -> bool:
        """Loads the model where another configuration is in effect; whether there was such a Triton."""
        model = settings.inference.model
        own = [(one.triton, settings.of_replica(number)) for number, one in enumerate(self._servers, start=1)]
        behind = [
            (triton, compiler.to_json(wanted))
            for triton, wanted in own
            if not in_effect(triton.effective(model), compiler.model_config(wanted))
        ]
        if not behind:
            return False
        start = time.monotonic()
        for triton, config in behind:
            triton.load(model, config)
        took = time.monotonic() - start
        current = self._progress.current
        self._progress.current = replace(current, reload_s=round(took, 4), reloads=current.reloads + 1)
        return True
