"""The only code that changes the bundled stack: one settings file, replaced atomically under the target's lock.

The controller does the rest: it compiles the file and loads the model. So writing is followed by waiting until the
controller says that this generation is in effect, and by reading back what Triton itself says it runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from latencydoctor.errors import ContentError, KnownError, Refused
from latencydoctor.model.effects import Effect
from latencydoctor.model.remedy import TargetObject, TargetState
from latencydoctor.remedy.settings_text import generation_of, settings_digest, with_generation
from latencydoctor.targets.bundled import DEFAULT_MODEL, BundledTarget
from latencydoctor.targets.controller_page import ControllerState, read_controller, read_reason
from latencydoctor.targets.placed_version import asks_int8, versions_object
from latencydoctor.targets.settings_file import flatten
from latencydoctor.targets.state_folder import SETTINGS

EFFECT_TIMEOUT_S = 30.0
"""A reload takes about a second; a restarted controller or server comes back within a few."""

GIVE_UP_S = 8.0
"""How long the controller must go on reporting a failure before it is believed: it reports one while Triton restarts,
and still the last one while it works on new settings."""

POLL_S = 0.1


class _GivenUpError(KnownError):
    """Waiting longer cannot help: the settings were written, but they will not come into effect."""


class BundledChanger:
    """Changes one stack. Implements the port `Changer`."""

    def __init__(
        self,
        target: BundledTarget,
        timeout_s: float = EFFECT_TIMEOUT_S,
        give_up_s: float = GIVE_UP_S,
        controller: Callable[[str], ControllerState] = read_controller,
        reason: Callable[[str], str] = read_reason,
    ) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._give_up_s = give_up_s
        self._controller = controller
        self._reason = reason

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """The lock beside the settings file; Refused, with its holder, when another has it."""
        return self._target.folder.locked(run_id)

    def refuse_held(self) -> None:
        """Refused, with its holder, while another has the lock; changes nothing."""
        self._target.folder.refuse_locked()

    def write(
        self,
        settings_text: str,
        *,
        expected: frozenset[str],
        cancelled: Callable[[], bool],
        proof: tuple[TargetObject, ...] = (),
    ) -> TargetState:
        """Replaces the settings and waits for them to be in effect; see the port for what it raises.

        The version that the settings name is there before them; one that `proof` does not know goes after them.
        """
        found = self._target.settings_text()
        digest, wanted = settings_digest(found), settings_digest(settings_text)
        if digest not in expected:
            raise Refused(
                f"{self._target.folder.path / SETTINGS} was changed by someone else meanwhile",
                hint="Nothing was written. Look at the file, then plan again.",
            )
        self._target.versions.tidy()
        settings = dict(flatten(settings_text, SETTINGS))
        model, needed = settings.get("inference.model", DEFAULT_MODEL), asks_int8(settings)
        if needed:
            self._target.versions.ensure(model)
        generation = generation_of(found)
        if digest != wanted or self._refused_before(generation):
            generation += 1
            self._target.folder.replace(SETTINGS, with_generation(settings_text, generation))
        state = self._settled(generation, wanted, cancelled)
        if needed or not _unknown(versions_object(model), state, proof):
            return state
        self._target.versions.withdraw(model)
        return self._target.read()

    def _refused_before(self, generation: int) -> bool:
        """Whether the controller has given up on the file as it is; it tries again only when it sees a new generation.

        A refusal may be of the moment, such as a device that was too full to load the model beside the old one.
        """
        try:
            seen = self._heard()
        except KnownError:
            return False  # a controller that is started again looks at the file by itself
        return seen.failed and seen.seen == generation != seen.in_effect

    def _settled(self, generation: int, wanted: str, cancelled: Callable[[], bool]) -> TargetState:
        """The state once the generation is in effect and the server runs what it asks for."""
        deadline = time.monotonic() + self._timeout_s
        give_up = deadline
        waiting = "nothing was heard yet"
        while time.monotonic() < deadline:
            if cancelled():
                raise KnownError(f"interrupted while waiting for generation {generation} to be in effect")
            try:
                seen = self._heard()
                waiting = f"the controller has generation {seen.in_effect} in effect"
                if seen.in_effect == generation:
                    state = self._target.read()
                    if state.digest != wanted:
                        raise _GivenUpError("the settings were changed by someone else while they took effect")
                    if not state.not_in_effect:
                        return state
                    waiting = "; ".join(state.not_in_effect)
                give_up = min(give_up, time.monotonic() + self._give_up_s) if seen.failed else deadline
                if time.monotonic() >= give_up:
                    raise self._refused(generation, seen)
            except _GivenUpError:
                raise
            except (KnownError, ContentError) as error:
                # A controller or server that was killed is started again; only the deadline decides.
                waiting = error.message
            time.sleep(POLL_S)
        raise KnownError(
            f"generation {generation} was not in effect after {self._timeout_s:g} s: {waiting}",
            hint="See `latencydoctor stack status` and the controller's log.",
        )

    def _refused(self, generation: int, seen: ControllerState) -> _GivenUpError:
        url = self._target.folder.endpoints().controller_metrics
        with self._target.folder.effects(Effect.ASK_CONTROLLER):
            reason = self._reason(url)
        return _GivenUpError(
            f"the controller could not put generation {generation} into effect{f' ({reason})' if reason else ''}; "
            f"generation {seen.in_effect} is still in effect",
            hint="See the controller's log for more.",
        )

    def _heard(self) -> ControllerState:
        url = self._target.folder.endpoints().controller_metrics
        with self._target.folder.effects(Effect.ASK_CONTROLLER):
            return self._controller(url)


def _unknown(name: str, state: TargetState, proof: tuple[TargetObject, ...]) -> bool:
    """Whether an object is another than the proof says; not where the proof says nothing of it."""
    now = {item.name: item.digest for item in state.objects}
    return any(item.name == name and now.get(name) != item.digest for item in proof)
