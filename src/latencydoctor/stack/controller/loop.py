"""The controller's work: notice a change, check it, bring it into effect, say what happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tritonclient.grpc import model_config_pb2

from latencydoctor.errors import KnownError, LatencyDoctorError
from latencydoctor.stack import compile as compiler
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.controller.kept import KeptGenerations, owner_of
from latencydoctor.stack.controller.stubs import StubWatch
from latencydoctor.stack.controller.triton import TritonUnavailableError, in_effect
from latencydoctor.stack.controller_state import SharedProgress
from latencydoctor.stack.files import write_atomically
from latencydoctor.stack.settings import Settings
from latencydoctor.stack.yaml_nodes import read_text

POLL_S = 0.1
"""How often the settings file is looked at; a look is one stat call."""

RETRY_S = 0.5
"""How long to wait for a Triton that does not answer before asking again."""

CANARY_LOOK_S = 1.0
"""How often a canary's replica is asked what it runs, once for two scrapes of a verification window at the least."""

WARNED_AGAIN_S = 60.0
"""How often one that stays away is told of; it is looked at every second."""

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


class NotYetError(LatencyDoctorError):
    """A Triton is on its way in or out, and nothing is wrong: look again soon."""


class Tritons(Protocol):
    """What the loop needs of those that run: `controller/fleet.py` starts and ends them."""

    def running(self, replicas: int) -> Sequence[Served[TritonServer]]:
        """The first so many."""
        ...

    def grow(self, replicas: int) -> None:
        """Returns once the first so many run and answer; NotYetError until then, KnownError when one does not."""
        ...

    def serve(self, replicas: int) -> None:
        """The first so many take traffic, and no others."""
        ...

    def release(self, replicas: int, deadline_s: float) -> None:
        """Returns once all others have answered what they were asked, and have ended; NotYetError until then."""
        ...

    def retreat(self) -> None:
        """Ends those that were started and do not serve."""
        ...


class Controller:
    """Keeps every Triton of the stack in line with one settings file."""

    def __init__(
        self,
        settings: Path,
        models: Path,
        fleet: Tritons,
        progress: SharedProgress,
        log: Log,
        kept: KeptGenerations | None = None,
    ) -> None:
        self._settings = settings
        self._models = models
        self._fleet = fleet
        self._in_effect: Settings | None = None
        self._deadline_s = 0.0
        self._progress = progress
        self._log = log
        self._kept = kept
        self._stamp: tuple[int, ...] = ()
        self._waiting = False
        self._canary_seen_s = 0.0
        self._warned_at_s: dict[str, float] = {}
        self._told = ""

    def run(self, stopped: threading.Event) -> None:
        """Works until `stopped` is set."""
        wait = 0.0
        while not stopped.wait(wait):
            wait = POLL_S if self.step() else RETRY_S

    def step(self) -> bool:
        """One look at the file; False when the step has to be repeated soon, as when Triton did not answer."""
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
        except (TritonUnavailableError, OSError) as error:
            # What may be over the next moment, such as a Triton that starts again or a disk that is full.
            self._progress.current = replace(self._progress.current, error=str(error))
            if not self._waiting:
                what = "disk_unavailable" if isinstance(error, OSError) else "triton_unavailable"
                self._log("WARNING", what, str(error))
            self._waiting = True
            self._revive()
            return False
        except NotYetError as error:
            self._tell(error.message)
            self._revive()
            return False
        except LatencyDoctorError as error:
            self._refuse(str(error))
        self._waiting, self._told = False, ""
        self._stamp = stamp
        return True

    def _look(self) -> tuple[int, ...]:
        """What changes when the file does; empty while there is none."""
        try:
            found = self._settings.stat()
        except OSError:
            return (0,)
        # Rights that are given or taken show in the last of these alone.
        return (found.st_ino, found.st_mtime_ns, found.st_size, found.st_ctime_ns)

    def _refuse(self, reason: str) -> None:
        reason = "; ".join(reason.splitlines())
        # Also those that were served already while others of their replicas ended.
        generation = self._in_effect.generation if self._in_effect is not None else self._progress.current.generation
        self._progress.current = replace(self._progress.current, generation=generation, error=reason)
        self._log("ERROR", "settings_refused", reason, generation=generation)

    def _tell(self, what: str) -> None:
        """Logs once what is waited for; a refusal of other settings is over by then."""
        self._progress.current = replace(self._progress.current, error="")
        if what != self._told:
            self._log("INFO", "replicas_changing", what)
        self._told = what

    def _apply(self, settings: Settings) -> None:
        """Brings `settings` into effect; the model folder always holds what a restarted Triton should run."""
        replicas = settings.inference.replicas
        path = self._models / settings.inference.model / "config.pbtxt"
        write_atomically(path, compiler.to_pbtxt(settings))
        try:
            self._fleet.grow(replicas)
            reloaded = self._load(settings)
        except (TritonUnavailableError, NotYetError):
            raise
        except LatencyDoctorError:
            self._put_back(path)
            self._retreat()
            raise
        self._fleet.serve(replicas)
        # How long a question may be on its way that was asked under these settings, or under those before.
        known = (settings, self._in_effect or settings)
        self._deadline_s = max(self._deadline_s, *(one.inference.deadline_ms / 1000 for one in known))
        # This is what runs from here on, whatever comes of those that are to end, or of other settings meanwhile.
        self._in_effect = settings
        self._fleet.release(replicas, self._deadline_s)
        self._deadline_s = 0.0
        self._progress.current = replace(self._progress.current, generation=settings.generation, error="")
        self._log("INFO", "settings_in_effect", "settings in effect", generation=settings.generation, reloaded=reloaded)

    def _put_back(self, path: Path) -> None:
        """The model folder holds what was in effect last, as this controller knows, or wrote down before it was killed.

        Where neither is known nothing was in effect yet.
        """
        before = self._in_effect
        if before is None and self._kept is not None:
            with suppress(LatencyDoctorError):
                before = stack_settings.parse(self._kept.newest())
        if before is not None:
            write_atomically(path, compiler.to_pbtxt(before))

    def _keep(self, generation: int, text: str, owner: str) -> None:
        """Writes down what is in effect now; a full disk must not take the settings back."""
        if self._kept is None:
            return
        try:
            self._kept.keep(generation, text, owner)
        except OSError as error:
            self._log("WARNING", "settings_not_kept", f"this generation cannot be brought back later: {error}")

    def _retreat(self) -> None:
        try:
            self._fleet.retreat()
        except KnownError as error:
            self._log("WARNING", "replica_not_ended", error.message)

    def _revive(self) -> None:
        """Loads the model again when its process died: Triton does not start another by itself."""
        settings = self._in_effect
        if settings is None:
            return
        for number, server in enumerate(self._fleet.running(settings.inference.replicas), start=1):
            if server.stubs.lost(len(settings.versions)):
                self._reload(server.triton, settings.of_replica(number))
        self._keep_canary(settings)

    def _keep_canary(self, settings: Settings) -> None:
        """Loads the canary again into a Triton that was started again: the model folder holds what all others run."""
        own = settings.of_replica(settings.inference.replicas)
        if own is settings or time.monotonic() < self._canary_seen_s + CANARY_LOOK_S:
            return
        self._canary_seen_s = time.monotonic()
        try:
            if self._load(settings):
                self._log("WARNING", "canary_loaded_again", "the canary's replica had lost its settings")
        except LatencyDoctorError as error:
            self._warn("canary_unknown", str(error))

    def _reload(self, triton: TritonServer, settings: Settings) -> None:
        try:
            triton.reload(settings.inference.model, compiler.to_json(settings))
        except KnownError as error:
            # Triton itself is down and being restarted, or the next look tries again.
            self._warn("model_restart_failed", str(error))
            return
        current = self._progress.current
        self._progress.current = replace(current, model_restarts=current.model_restarts + 1)
        self._log("ERROR", "model_process_died", "the model's process died and was started again")

    def _warn(self, event: str, message: str) -> None:
        """Logs what every look meets anew only now and then."""
        now_s = time.monotonic()
        if now_s - self._warned_at_s.get(event, -WARNED_AGAIN_S) >= WARNED_AGAIN_S:
            self._warned_at_s[event] = now_s
            self._log("WARNING", event, message)

    def _load(self, settings: Settings) -> bool:
        """Loads the model where another configuration is in effect; whether there was such a Triton."""
        model, running = settings.inference.model, self._fleet.running(settings.inference.replicas)
        own = [(one.triton, settings.of_replica(number)) for number, one in enumerate(running, start=1)]
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
