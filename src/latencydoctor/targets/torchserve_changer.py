"""The only code that changes a TorchServe: requests to its management API, each derived from what the server says then.

The server has no lock and no transaction. A lock beside our own files keeps two runs of this machine apart, and a file
there says between which two states a run is under way: with it, and with the server as it is found, a run that died
anywhere is brought to either end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.effects import Effect
from latencydoctor.model.remedy import TargetObject, TargetState
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets.folder import GuardedFolder, Names
from latencydoctor.targets.torchserve import TorchServeTarget
from latencydoctor.targets.torchserve_client import UnansweredError
from latencydoctor.targets.torchserve_state import Registration, Served, parsed, same_version
from latencydoctor.targets.torchserve_steps import Act, Step, Way, next_step

UNDER_WAY = "under-way.json"
NAMES = Names(UNDER_WAY, "lock", "folder of this target", "It is made when a plan is applied.")

EFFECT_TIMEOUT_S = 60.0
"""For the requests and the draining, beside what the workers may take to start."""

QUIET_S = 5.0
"""How long nobody may have waited for a version before it is unregistered: TorchServe does not tell what it executes,
and what takes longer than this fails with it."""

POLL_S = 0.1

TRIAL = "-latencydoctor-trial"
"""What is put behind a model's name for the model without workers that a registration is tried with."""

MOST_CLEARED = 3
"""How often a trial's model is taken away before it is left to a person; one version is all there can be."""


class TorchServeChanger:
    """Changes one model. Implements the port `Changer`."""

    def __init__(
        self,
        target: TorchServeTarget,
        folder: GuardedFolder,
        timeout_s: float | None = None,
        quiet_s: float | None = None,
        poll_s: float | None = None,
    ) -> None:
        self.management = target.management
        self.timeout_s = EFFECT_TIMEOUT_S if timeout_s is None else timeout_s
        self.quiet_s = QUIET_S if quiet_s is None else quiet_s
        self.poll_s = POLL_S if poll_s is None else poll_s
        self._target = target
        self._folder = folder

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """The lock beside our own files; Refused, with its holder, when another run on this machine has it."""
        folder = self._folder.path
        try:
            with self._folder.effects(Effect.TARGET_FOLDER):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise KnownError(
                f"{folder} cannot be made: {error.strerror}", hint="Make room, or set XDG_STATE_HOME to another place."
            ) from error
        return self._folder.locked(run_id)

    def refuse_held(self) -> None:
        """Refused, with its holder, while another run on this machine has the lock; changes nothing."""
        if self._folder.path.is_dir():
            self._folder.refuse_locked()

    def write(
        self,
        settings_text: str,
        *,
        expected: frozenset[str],
        cancelled: Callable[[], bool],
        proof: tuple[TargetObject, ...] = (),  # noqa: ARG002  # the server itself says what is in effect
    ) -> TargetState:
        """Brings the model to the settings, step by step; see the port for what it raises."""
        now = self.management.read()
        way = self._way(settings_text, now, expected)
        journey = _Journey(self, way, cancelled)
        if next_step(now, way).act is not Act.DONE:
            self._note({"from": way.other.text() if way.other else "", "to": settings_text})
            journey.go()
        state = self._target.read()
        if state.digest != settings_digest(settings_text):
            raise KnownError("the model was changed by someone else while it took effect")
        if self._noted():
            journey.clear()
            self._note({})
        return state

    def _way(self, settings_text: str, now: Served, expected: frozenset[str]) -> Way:
        """From where the run comes: what it wrote down if it died on the way, else what is there."""
        wanted = settings_digest(settings_text)
        noted = self._noted()
        if {settings_digest(text) for text in noted} == expected | {wanted}:
            other = next((text for text in noted if settings_digest(text) != wanted), None)
            return Way(parsed(settings_text), parsed(other) if other else None)
        default = now.version(now.default)
        found = default.registration if default else None
        if found is None or settings_digest(found.text()) not in expected:
            raise Refused(
                f"{self._target.name} was changed by someone else meanwhile",
                hint="Nothing was changed. Look at the model, then plan again.",
            )
        return Way(parsed(settings_text), found if settings_digest(found.text()) != wanted else None)

    def _noted(self) -> tuple[str, ...]:
        """The two ends of a run that is under way; empty when none is."""
        if not (self._folder.path / UNDER_WAY).exists():
            return ()
        try:
            told = json.loads(self._folder.read(UNDER_WAY))
            return tuple(str(told[end]) for end in ("from", "to") if told.get(end))
        except (ValueError, AttributeError) as error:
            path = self._folder.path / UNDER_WAY
            raise KnownError(
                f"{path} is damaged: {error}", hint="Remove it once the model is as it should be."
            ) from error

    def _note(self, ends: dict[str, str]) -> None:
        self._folder.replace(UNDER_WAY, json.dumps(ends))


class _Journey:
    """One way, gone to its end."""

    def __init__(self, changer: TorchServeChanger, way: Way, cancelled: Callable[[], bool]) -> None:
        self._management = changer.management
        self._trial = changer.management.of(f"{way.wanted.model}{TRIAL}")
        self._quiet_s = changer.quiet_s
        self._poll_s = changer.poll_s
        self._timeout_s = changer.timeout_s + way.wanted.startup_timeout_s
        self._way = way
        self._cancelled = cancelled
        self._tried = False
        self._quiet_since_s: float | None = None

    def go(self) -> None:
        """Until the server is as wanted; KnownError when it does not get there, or someone asked to stop."""
        end_s = time.monotonic() + self._timeout_s
        waiting = "nothing was heard yet"
        while time.monotonic() < end_s:
            if self._cancelled():
                raise KnownError(f"interrupted while bringing version {self._way.wanted.version} into effect")
            try:
                now = self._management.read()
                step = next_step(now, self._way)
                if step.act is Act.DONE:
                    return
                self._refuse_unlike(now)
                waiting = step.why or f"to {step.act.value} version {step.version}"
                if self._may_fail(step, now):
                    self._try()
                self._do(step)
            except UnansweredError as error:
                # Whether it was done the server says when it answers again; only the time decides.
                waiting = error.message
            time.sleep(self._poll_s)
        raise KnownError(
            f"version {self._way.wanted.version} was not in effect after {self._timeout_s:g} s: {waiting}",
            hint="See TorchServe's log (ts_log.log), and the model's workers in its management API.",
        )

    def _do(self, step: Step) -> None:
        wanted, management = self._way.wanted, self._management
        if step.act is Act.REGISTER:
            management.register(wanted)
        elif step.act is Act.SCALE:
            management.scale(wanted)
        elif step.act is Act.SET_DEFAULT:
            management.set_default(step.version)
        elif step.act is Act.DRAIN:
            self._quiet_since_s = None
        elif step.act is Act.UNREGISTER and self._may_go(step.version):
            management.unregister(step.version)

    def _may_fail(self, step: Step, now: Served) -> bool:
        """Whether a registration is ahead that was not tried yet; where nobody is served there is nothing to lose."""
        ahead = step.act is Act.REGISTER or (step.act is Act.UNREGISTER and step.version == self._way.wanted.version)
        return ahead and not self._tried and bool(now.versions)

    def _try(self) -> None:
        """Registers what is wanted under another name, without workers, and takes it away again.

        An archive that is gone, a server that allows no registration or registers something else is found out before
        anything that serves is touched.
        """
        wanted = self._way.wanted
        self.clear()
        trial = replace(wanted, model=self._trial.model, min_workers=0, max_workers=0)
        lost: UnansweredError | None = None
        try:
            self._trial.register(trial)
        except UnansweredError as error:
            lost = error
        (found,) = self._trial.read().versions or (None,)
        if found is None and lost is not None:
            raise lost
        self.clear()
        got = found.registration if found is not None else None
        if got is None or not replace(got, version=wanted.version).registered_like(trial):
            raise KnownError(
                f"TorchServe would not register {wanted.archive} as it was asked to{_but(got)}",
                hint="The archive's own model-config.yaml may say otherwise: change it there.",
            )
        if not same_version(got.version, wanted.version):
            raise KnownError(
                f"{wanted.archive} holds version {got.version}, not {wanted.version}",
                hint="Correct targets.torchserve.archives.",
            )
        self._tried = True

    def clear(self) -> None:
        """Takes away what a trial left, also that of a run that died in it."""
        for _ in range(MOST_CLEARED):
            left = self._trial.read().versions
            if not left:
                return
            with suppress(UnansweredError):
                self._trial.unregister(left[0].name)
        raise KnownError(
            f"the model {self._trial.model}, registered for a trial, could not be taken away",
            hint=f"Unregister it by hand: DELETE /models/{self._trial.model}.",
        )

    def _may_go(self, version: str) -> bool:
        """Whether nobody has waited long enough for a version that another has taken over from."""
        if version != self._way.leftover:
            return True
        if self._quiet_since_s is None:
            self._quiet_since_s = time.monotonic()
        return time.monotonic() - self._quiet_since_s >= self._quiet_s

    def _refuse_unlike(self, now: Served) -> None:
        """KnownError for two archives that are not the same model."""
        found = now.version(self._way.wanted.version)
        old = now.version(self._way.leftover) if self._way.leftover else None
        if old is not None and found is not None and old.traits != found.traits:
            raise KnownError(
                f"the archives of versions {old.name} and {found.name} are not alike: "
                f"{_differing(old.traits, found.traits)}",
                hint="Archives under targets.torchserve.archives must differ in nothing but their version.",
            )


def _but(got: Registration | None) -> str:
    if got is None:
        return ""
    return f": batch size {got.batch_size}, wait {got.delay_ms} ms, response time-out {got.response_timeout_s} s"


def _differing(one: str, other: str) -> str:
    left, right = json.loads(one), json.loads(other)
    return ", ".join(sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name)))
