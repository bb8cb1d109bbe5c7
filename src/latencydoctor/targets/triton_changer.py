"""The only code that changes a model of a Triton's repository: one file, replaced atomically, and the load after it.

The load is a plain one, which makes Triton read the folder: what it then runs is what the file says, now and after a
restart. A configuration handed over with the call would be in effect without being in the file that the server has.
A server that polls its repository finds the file by itself, and is only waited for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.effects import Effect
from latencydoctor.model.remedy import TargetObject, TargetState
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets.model_versions import newest_ns
from latencydoctor.targets.triton_repository import ABSENT, TritonRepository
from latencydoctor.targets.triton_server import Loaded

POLL_S = 0.2

QUIET_S = 20.0
"""How long a polling server is watched that has not been seen to run anything else: it may have found the file that is
being taken back, and still be loading it."""

TICK_S = 1.1
"""Longer than the coarsest tick in which a file system keeps times."""

Objects = tuple[TargetObject, ...]
Cancelled = Callable[[], bool]


class TritonChanger:
    """Changes one model. Implements the port `Changer`."""

    def __init__(self, target: TritonRepository, quiet_s: float = QUIET_S) -> None:
        self._target = target
        self._quiet_s = quiet_s

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """The lock beside the model's folder; Refused, with its holder, when another has it."""
        return self._target.folder.locked(run_id)

    def refuse_held(self) -> None:
        """Refused, with its holder, while another has the lock; changes nothing."""
        self._target.folder.refuse_locked()

    def write(
        self, settings_text: str, *, expected: frozenset[str], cancelled: Cancelled, proof: Objects = ()
    ) -> TargetState:
        """Replaces the file and waits for it to be in effect; see the port for what it raises."""
        target = self._target
        digest, wanted = settings_digest(target.settings_text()), settings_digest(settings_text)
        if digest not in expected:
            raise Refused(
                f"{target.folder.path / target.file} was changed by someone else meanwhile",
                hint="Nothing was written. Look at the file, then plan again.",
            )
        if digest != wanted:
            if settings_text == ABSENT:
                target.folder.remove(target.file)
            else:
                target.folder.replace(target.file, settings_text)
        return self._settled(wanted, proof, cancelled)

    def _settled(self, wanted: str, proof: Objects, cancelled: Cancelled) -> TargetState:
        """The state once the server runs what the file asks for; a server that does not answer is asked again."""
        end_s = time.monotonic() + self._target.wait_s
        while True:
            came, reason = self._load(end_s, cancelled)
            if came is Loaded.FORBIDDEN:
                return self._polled(wanted, proof, end_s, cancelled)
            if came is not Loaded.SILENT:
                break
            if time.monotonic() > end_s:
                raise KnownError(
                    f"Triton at {self._target.server.address} did not answer: {reason}", hint="Get it running again."
                )
            _pause(cancelled)
        state, wrong = self._compared(wanted, proof, end_s, cancelled)
        if wrong and came is Loaded.YES:
            self._nudge(cancelled)
            came, reason = self._load(end_s, cancelled)
            state, wrong = self._compared(wanted, proof, end_s, cancelled)
        if wrong:
            raise self._failed(came, reason, wrong)
        return state

    def _failed(self, came: Loaded, reason: str, wrong: str) -> KnownError:
        if came is Loaded.YES:
            return KnownError(
                f"Triton loaded {self._target.model} and does not run what the file asks for: {wrong}",
                hint=f"Does the server read {self._target.folder.path}, and not a copy of it? If it does, it has seen "
                "a file with a time in the future there, which hides what comes after: restart it.",
            )
        return KnownError(
            f"Triton refused to load {self._target.model}, the old one still serves: {reason}", hint="See Triton's log."
        )

    def _load(self, end_s: float, cancelled: Cancelled) -> tuple[Loaded, str]:
        target = self._target
        return target.server.load(target.model, max(1.0, end_s - time.monotonic()), cancelled)

    def _polled(self, wanted: str, proof: Objects, end_s: float, cancelled: Cancelled) -> TargetState:
        """A server that looks at its repository from time to time, or never does."""
        if newest_ns(self._target.model_folder) > time.time_ns():
            self._nudge(cancelled)
        quiet_s, moved = time.monotonic() + self._quiet_s, False
        while True:
            state, wrong = self._compared(wanted, proof, end_s, cancelled)
            moved = moved or bool(wrong)
            if not wrong and (moved or not proof or time.monotonic() > quiet_s):
                return state
            if wrong and time.monotonic() > end_s:
                raise KnownError(
                    f"after {self._target.wait_s:g} s Triton does not run what the file asks for: {wrong}",
                    hint="It loads nothing on demand. Start it with --model-control-mode=explicit, or with poll and "
                    "--repository-poll-secs well below that time (targets.triton.wait_s).",
                )
            _pause(cancelled)

    def _compared(self, wanted: str, proof: Objects, end_s: float, cancelled: Cancelled) -> tuple[TargetState, str]:
        """The state now, and in words what is not as it must be; a server that is silent meanwhile is asked again."""
        while True:
            try:
                state = self._target.read()
                break
            except KnownError:
                if time.monotonic() > end_s:
                    raise
            _pause(cancelled)
        if state.digest != wanted:
            raise KnownError("the file was changed by someone else while it took effect")
        found = {item.name: item.digest for item in state.objects}
        other = [f"the digest of {item.name} is another" for item in proof if found.get(item.name) != item.digest]
        return state, "; ".join([*state.not_in_effect, *other])

    def _nudge(self, cancelled: Cancelled) -> None:
        """Gives the folder a later time than Triton can have seen: it takes a folder for changed by its times alone.

        Files from the future hide every change for as long as it lies ahead, so a folder with such files is given a
        time beyond theirs, which grows with the clock (a nanosecond a millisecond), so that the next one is later.
        """
        folder = self._target.model_folder
        newest, now = newest_ns(folder), time.time_ns()
        if newest <= now:
            end_s = time.monotonic() + TICK_S
            while time.monotonic() < end_s:
                _pause(cancelled)
            now = time.time_ns()
        when = newest + now // 1_000_000 if newest > now else now
        with self._target.folder.effects(Effect.FOLDER_TOUCH):
            os.utime(folder, ns=(when, when))


def _pause(cancelled: Cancelled) -> None:
    if cancelled():
        raise KnownError("interrupted while waiting for the change to be in effect")
    time.sleep(POLL_S)
