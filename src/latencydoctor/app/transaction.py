"""One change as a transaction: journalled steps forward, and the way back from each of them."""

from __future__ import annotations

from latencydoctor.app.in_effect import differing
from latencydoctor.app.ports import Progress, RunLog
from latencydoctor.app.runs import (
    ONCE_IT_RUNS,
    RECOVER,
    Change,
    check_fields,
    decision_fields,
    refuse_unless_kept,
    start_fields,
    state_fields,
    what_next,
)
from latencydoctor.app.treatment import Outcome, Tools, never
from latencydoctor.app.verify import measure, unverified, verify
from latencydoctor.app.warming import cool, warm
from latencydoctor.errors import Held, KnownError, LatencyDoctorError, Refused, RollbackFailed, RolledBack
from latencydoctor.model.remedy import Check, Decision, RunEvent, RunState, TargetObject, Verification
from latencydoctor.remedy.plan import warming_of


class Transaction:
    """One run, begun or resumed. The lock is held by the caller for as long as it lives."""

    def __init__(self, change: Change, tools: Tools, log: RunLog) -> None:
        self._change = change
        self._tools = tools
        self._log = log
        self._digest = change.before_digest
        self._found_digest = change.before_digest
        self._warming = warming_of(change.plan)
        self._in_effect_s: float | None = None
        self._deadline_ms: float | None = None

    def begin(self) -> None:
        """The whole intent on disk, the exact text before included; no captured before, no change.

        Refused when the journal does not hold it as it is: nothing could be brought back from it.
        """
        self._log.record(RunEvent.STARTED, **start_fields(self._change))
        try:
            refuse_unless_kept(self._tools.history, self._log.run_id, self._change)
        except Refused as error:
            self._refused(error)

    def write(self, proof: tuple[TargetObject, ...] = ()) -> Outcome | None:
        """The one step forward: settings in place, in effect, read back, committed. None when all went well.

        `proof` are the objects whose digests must be found afterwards (a rollback's). Any failure or interrupt is
        undone first; Refused is raised on when nothing was written.
        """
        change, tools = self._change, self._tools
        tools.observer(Progress("write", f"writing {change.settings_object} and waiting until the server runs it"))
        self._log.record(
            RunEvent.WRITE_INTENT, object=change.settings_object, before=self._found_digest, after=change.after_digest
        )
        try:
            state = tools.changer.write(
                change.after_text,
                expected=frozenset({self._found_digest}),
                cancelled=tools.cancelled,
                proof=proof,
            )
        except Refused as error:
            return self._refused(error)
        except LatencyDoctorError as error:
            return self._abandon(error.message)
        try:
            self._log.record(RunEvent.WRITE_DONE, **state_fields(state))
            wrong = differing(state, proof, change.after_digest)
            if wrong:
                return self._abandon(f"not what was asked for: {wrong}")
            if tools.cancelled():
                return self._abandon("interrupted")
            if self._warming is not None and change.kind == "apply":
                warm(self._warming, tools, self._log)
            self._log.record(RunEvent.COMMITTED, digest=state.digest)
        except KnownError as error:  # the journal: what cannot be recorded must not stay; or the cache
            return self._abandon(error.message)
        self._in_effect_s = tools.clock.now_s()
        self._digest = state.digest
        self._deadline_ms = state.deadline_ms
        what = f"generation {state.generation}" if state.generation else "the change"
        tools.observer(Progress("effect", f"{what} is in effect"))
        return None

    def _refused(self, error: Refused) -> Outcome:
        """Somebody else changed the settings before this run did: there is nothing of it to undo."""
        self._end(RunState.UNDONE, reason=error.message)
        raise error

    def _abandon(self, reason: str) -> Outcome:
        """Undo an uncommitted step; the run ends as undone, or stays unfinished when that fails."""
        interrupted = self._tools.cancelled()
        failed = self.undo(reason)
        if failed is not None:
            return self._outcome(RunState.ROLLBACK_FAILED, reason, interrupted=interrupted, error=failed)
        self._note(RunEvent.ENDED, state=RunState.UNDONE, reason=reason, digest=self._digest)
        text = f"the change was undone: {reason}"
        error: LatencyDoctorError | None = None
        if self._change.kind == "rollback" and not interrupted:
            error = RollbackFailed(f"the old state could not be brought back: {reason}", hint=self._see_journal())
        elif not interrupted:
            error = RolledBack(text, hint="The old state is in effect and proven by digest. " + self._see_journal())
        return self._outcome(RunState.UNDONE, text, interrupted=interrupted, error=error)

    def _note(self, event: RunEvent, **fields: object) -> None:
        """Records while undoing: bringing the old state back matters more than writing it down.

        A run whose end is missing is settled again by recovery, which finds the old state in place.
        """
        try:
            self._log.record(event, **fields)
        except KnownError as error:
            self._tools.observer(Progress("undo", error.message))

    def undo(self, reason: str) -> RollbackFailed | None:
        """Bring back the text from before and prove it by digest; the error when that fails. Cannot be interrupted."""
        change, tools = self._change, self._tools
        tools.observer(Progress("undo", f"bringing the old settings back: {reason}"))
        self._note(RunEvent.UNDO_INTENT, object=change.settings_object, to=change.before_digest, reason=reason)
        try:
            state = tools.changer.write(
                change.before_text, expected=change.own_digests, cancelled=never, proof=change.before_objects
            )
        except LatencyDoctorError as error:
            return self._undo_failed(error.message, what_next(error))
        wrong = differing(state, change.before_objects, change.before_digest)
        if wrong:
            return self._undo_failed(wrong)
        self._digest = state.digest
        self._deadline_ms = state.deadline_ms
        if change.kind == "apply":
            try:
                self._cool(self._log.run_id)
            except KnownError as error:
                return self._undo_failed(error.message)
        self._note(RunEvent.UNDO_DONE, **state_fields(state))
        return None

    def _cool(self, run_id: str) -> None:
        """Removes the answers that this run's plan wrote in the name of `run_id`; KnownError when that fails."""
        if self._warming is not None:
            self._note(RunEvent.COOL_INTENT, run=run_id)
            self._note(RunEvent.COOL_DONE, run=run_id, dropped=cool(run_id, self._tools))

    def _undo_failed(self, reason: str, to_do: str = ONCE_IT_RUNS) -> RollbackFailed:
        self._note(RunEvent.UNDO_FAILED, reason=reason)
        return RollbackFailed(f"the old state could not be restored: {reason}", hint=f"{to_do} {self._see_journal()}")

    def verify_and_end(self) -> Outcome:
        """Verify the committed change and do what the judge says; held when the journal cannot be written any more."""
        try:
            return self._judged()
        except KnownError as error:
            reason = f"the change is in place, but its run could not be recorded to the end: {error.message}"
            held = Held(reason, hint=f"Make room, then `{RECOVER}`. {self._see_journal()}")
            return self._outcome(RunState.OPEN, reason, error=held)

    def _judged(self) -> Outcome:
        verification = self._verified()
        if verification is None:
            reason = "interrupted during verification: the new state stays, it was not verified to the end"
            self._end(RunState.APPLIED, reason=reason)
            return self._outcome(RunState.APPLIED, reason, interrupted=True)
        self._log.record(RunEvent.DECISION, **decision_fields(verification))
        self._tools.observer(Progress("decision", f"{verification.decision.value}: {verification.reason}"))
        if verification.decision is Decision.ROLL_BACK:
            return self._roll_back(verification)
        if verification.decision is Decision.HOLD:
            self._end(RunState.HELD, reason=verification.reason)
            hint = f"The settings stay. `latencydoctor rollback {self._log.run_id} --force` brings the old ones back."
            error = Held(f"held for a human: {verification.reason}", hint=hint)
            return self._outcome(RunState.HELD, verification.reason, verification=verification, error=error)
        self._end(RunState.KEPT, reason=verification.reason)
        return self._outcome(RunState.KEPT, verification.reason, verification=verification)

    def _verified(self) -> Verification | None:
        if self._tools.verifier is None:
            return unverified("no data: no metrics source is configured")
        watch = self._tools.watch(self._tools.verifier, self._deadline_ms, self._digest)
        return verify(self._change.plan, watch, lambda check: self._log.record(RunEvent.CHECK, **check_fields(check)))

    def _roll_back(self, verification: Verification) -> Outcome:
        failed = self.undo(verification.reason)
        if failed is not None:
            reason = f"rolling back failed: {verification.reason}"
            return self._outcome(RunState.ROLLBACK_FAILED, reason, verification=verification, error=failed)
        remeasured = self._remeasured()
        self._note(RunEvent.ENDED, state=RunState.ROLLED_BACK, reason=verification.reason, digest=self._digest)
        error = RolledBack(
            f"the fix did not hold and was rolled back: {verification.reason}",
            hint="The old state is in effect and proven by digest. " + self._see_journal(),
        )
        return self._outcome(
            RunState.ROLLED_BACK, verification.reason, verification=verification, remeasured=remeasured, error=error
        )

    def measure_and_end(self) -> Outcome:
        """End a committed rollback: measure once more, so that the old state is known and not only restored.

        Answers that the undone run wrote go only now: a rollback that fails before its commit is undone itself, and
        what was removed could not be brought back as it was.
        """
        try:
            self._cool(self._change.of)
        except LatencyDoctorError as error:
            return self._unfinished(error)
        remeasured = self._remeasured()
        reason = f"the state before run {self._change.of} is back, proven by digest"
        self._note(RunEvent.ENDED, state=RunState.ROLLED_BACK, reason=reason, digest=self._digest)
        interrupted = self._tools.cancelled()
        return self._outcome(RunState.ROLLED_BACK, reason, remeasured=remeasured, interrupted=interrupted)

    def _remeasured(self) -> Check | None:
        if self._tools.verifier is None:
            return None
        self._tools.observer(Progress("measure", "measuring the restored state"))
        check = measure(self._change.plan, self._tools.watch(self._tools.verifier, self._deadline_ms, self._digest))
        if check is not None:
            self._note(RunEvent.CHECK, **check_fields(check), after="rollback")
        return check

    def confirm(self, *, ended: RunState) -> Outcome:
        """Complete a committed run whose process died: what it wrote is in effect, else the run stays unfinished."""
        change = self._change
        try:
            state = self._tools.changer.write(
                change.after_text, expected=frozenset({change.after_digest}), cancelled=never
            )
            if change.kind == "rollback":
                self._cool(change.of)
        except LatencyDoctorError as error:
            return self._unfinished(error)
        self._digest = state.digest
        reason = "completed by recovery: the committed state is in effect, it was not verified to the end"
        self._end(ended, reason=reason)
        return self._outcome(ended, reason)

    def _unfinished(self, error: LatencyDoctorError) -> Outcome:
        failed = RollbackFailed(
            f"run {self._log.run_id} was committed, but its state is not there: {error.message}",
            hint=f"{what_next(error)} {self._see_journal()}",
        )
        return self._outcome(RunState.OPEN, error.message, error=failed)

    def accept(self) -> Outcome:
        """Close the run with the settings as they are; their digest is told where they can be read."""
        try:
            self._digest = self._tools.target.read().digest
        except LatencyDoctorError:
            self._digest = ""
        return self.end_as(RunState.HELD, "closed by a person; the settings stay as they were found")

    def end_as(self, state: RunState, reason: str) -> Outcome:
        """Close the run in the state it was brought to."""
        self._end(state, reason=reason)
        return self._outcome(state, reason)

    def fail(self, error: RollbackFailed) -> Outcome:
        """The outcome of a run that could not be undone; it stays unfinished."""
        return self._outcome(RunState.ROLLBACK_FAILED, error.message, error=error)

    def _end(self, state: RunState, *, reason: str) -> None:
        self._log.record(RunEvent.ENDED, state=state, reason=reason, digest=self._digest)

    def _see_journal(self) -> str:
        return f"Journal: {self._log.path}"

    def _outcome(
        self,
        state: RunState,
        reason: str,
        *,
        verification: Verification | None = None,
        remeasured: Check | None = None,
        interrupted: bool = False,
        error: LatencyDoctorError | None = None,
    ) -> Outcome:
        return Outcome(
            run_id=self._log.run_id,
            journal=self._log.path,
            kind=self._change.kind,
            state=state,
            reason=reason,
            digest=self._digest,
            in_effect_s=self._in_effect_s,
            verification=verification,
            remeasured=remeasured,
            interrupted=interrupted,
            error=error,
        )
