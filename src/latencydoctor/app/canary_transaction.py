"""A change that a canary tries first, as one transaction: nothing is committed before the canary was promoted.

Whatever ends the canary otherwise (the judge, a failure, an interrupt, a kill) brings the text from before back, by
digest. A canary that is held is taken back as well: it served to find out, it could not, and left in place it would
hold the lock against every other change or be a state that nobody decided on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from latencydoctor.app.canary import CanaryWatch, policy_of, watch_canary
from latencydoctor.app.canary_journal import check_record, trial_record
from latencydoctor.app.in_effect import absent
from latencydoctor.app.ports import ArmsVerifier, Progress, RunLog
from latencydoctor.app.runs import Change, state_fields
from latencydoctor.app.transaction import Transaction
from latencydoctor.app.treatment import Outcome, Tools
from latencydoctor.errors import Held, KnownError, LatencyDoctorError, Refused, RolledBack
from latencydoctor.model.canary import CanaryCheck, CanaryTrial
from latencydoctor.model.remedy import Decision, RunEvent, RunState, TargetObject, TargetState
from latencydoctor.remedy.staging import Stage


class CanaryTransaction(Transaction):
    """One run of apply whose change a canary tries first. `earlier` are windows of a run of it that was cut off."""

    def __init__(self, change: Change, tools: Tools, log: RunLog, stage: Stage, earlier: Sequence[CanaryCheck]) -> None:
        super().__init__(change, tools, log)
        self._stage = stage
        self._earlier = tuple(earlier)
        self._trial: CanaryTrial | None = None

    def try_canary(self, arms: ArmsVerifier) -> Outcome | None:
        """Put the canary in place and judge it. None when it is promoted: `write` comes next, from the canary's text.

        Raises Refused when the settings were changed by somebody else before.
        """
        change, tools = self._change, self._tools
        tools.observer(Progress("canary", self._stage.told))
        self._log.record(
            RunEvent.CANARY_INTENT,
            object=change.settings_object,
            before=change.before_digest,
            after=change.canary_digest,
            kind=self._stage.kind,
            share_ratio=self._stage.share_ratio,
        )
        try:
            state = tools.changer.write(
                change.canary_text, expected=frozenset({change.before_digest}), cancelled=tools.cancelled
            )
        except Refused as error:
            return self._refused(error)
        except LatencyDoctorError as error:
            return self._abandon(error.message)
        self._found_digest = state.digest
        try:
            self._trial = self._judged_canary(state, arms)
        except KnownError as error:  # the journal: what cannot be recorded must not stay
            return self._abandon(error.message)
        if self._trial is None:
            return self._abandon("interrupted while the canary was tried")
        return None if self._trial.decision is Decision.KEEP else self._take_back(self._trial)

    def _judged_canary(self, state: TargetState, arms: ArmsVerifier) -> CanaryTrial | None:
        change, tools = self._change, self._tools
        self._log.record(RunEvent.CANARY_DONE, **state_fields(state))
        if state.digest != change.canary_digest:
            raise KnownError("the settings with the canary are not those that were asked for")
        tools.observer(Progress("canary", f"generation {state.generation} is in effect"))
        watch = CanaryWatch(
            arms,
            tools.clock,
            tools.observer,
            tools.cancelled,
            tools.schedule.after_backlog(state.deadline_ms),
            policy_of(change.plan, tools.policy.min_requests),
            lambda: absent(tools.target, change.canary_digest),
        )
        trial = watch_canary(
            self._stage,
            watch,
            lambda check: self._log.record(RunEvent.CANARY_WINDOW, **check_record(check)),
            self._earlier,
        )
        if trial is not None:
            self._log.record(RunEvent.CANARY_DECISION, **trial_record(trial))
            word = "promote" if trial.decision is Decision.KEEP else trial.decision.value
            tools.observer(Progress("canary", f"{word}: {trial.reason}"))
        return trial

    def write(self, proof: tuple[TargetObject, ...] = ()) -> Outcome | None:
        """As of any change; but a canary is in place now, and does not stay there where no more can be journalled."""
        try:
            return super().write(proof)
        except KnownError as error:
            return self._abandon(error.message)

    def _take_back(self, trial: CanaryTrial) -> Outcome:
        """The old state again, and the judge's word: exit 6 when the canary was worse, 4 when nobody can tell."""
        failed = self.undo(trial.reason)
        if failed is not None:
            reason = f"taking the canary back failed: {trial.reason}"
            return self._outcome(RunState.ROLLBACK_FAILED, reason, error=failed)
        interrupted = self._tools.cancelled()
        old = "The old state is in effect and proven by digest. "
        if trial.decision is Decision.HOLD:
            self._note(RunEvent.ENDED, state=RunState.UNDONE, reason=trial.reason, digest=self._digest)
            hint = f"{old}`latencydoctor apply PLAN --no-canary` applies the change to all traffic at once."
            held = Held(f"the canary was not promoted: {trial.reason}", hint=hint)
            return self._outcome(RunState.UNDONE, trial.reason, interrupted=interrupted, error=held)
        remeasured = self._remeasured()
        self._note(RunEvent.ENDED, state=RunState.ROLLED_BACK, reason=trial.reason, digest=self._digest)
        error = RolledBack(f"the canary was rolled back: {trial.reason}", hint=old + self._see_journal())
        return self._outcome(
            RunState.ROLLED_BACK, trial.reason, remeasured=remeasured, interrupted=interrupted, error=error
        )

    def _refused(self, error: Refused) -> Outcome:
        """Somebody else changed the settings while the canary was in place: undoing says what cannot be undone."""
        return self._abandon(error.message) if self._trial is not None else super()._refused(error)

    def _outcome(self, state: RunState, reason: str, **more: object) -> Outcome:
        return replace(super()._outcome(state, reason, **more), trial=self._trial)  # type: ignore[arg-type]  # handed on
