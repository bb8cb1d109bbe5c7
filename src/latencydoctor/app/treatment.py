"""What treating touches, and how a run of it ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from latencydoctor.app.in_effect import absent
from latencydoctor.app.ports import (
    AnswerCache,
    ArmsVerifier,
    BatchCounter,
    Cancelled,
    Changer,
    Clock,
    ModelBuilds,
    Observer,
    RunHistory,
    Target,
    Verifier,
)
from latencydoctor.app.verify import Schedule, Watch, uncounted
from latencydoctor.errors import LatencyDoctorError
from latencydoctor.model.canary import CanaryTrial
from latencydoctor.model.remedy import Check, RunState, Verification
from latencydoctor.remedy.judge import JudgePolicy


def never() -> bool:
    """Nobody asks to stop; what undoing uses, so that it runs to its end."""
    return False


@dataclass(frozen=True, slots=True)
class Tools:
    """Everything outside that treating touches. `verifier` is None where no metrics source is configured, `cache` where
    the target has none that answers can be written to, `arms` where it cannot serve a canary or nothing measures it."""

    target: Target
    changer: Changer
    history: RunHistory
    verifier: Verifier | None
    clock: Clock
    observer: Observer
    cancelled: Cancelled = never
    schedule: Schedule = field(default_factory=Schedule)
    policy: JudgePolicy = field(default_factory=JudgePolicy)
    cache: AnswerCache | None = None
    arms: ArmsVerifier | None = None
    batches: BatchCounter = uncounted
    builds: ModelBuilds | None = None

    def watch(self, verifier: Verifier, deadline_ms: float | None, digest: str) -> Watch:
        """What verification of the settings of this digest needs, where requests wait at most `deadline_ms`."""
        return Watch(
            verifier,
            self.clock,
            self.observer,
            self.cancelled,
            self.schedule.after_backlog(deadline_ms),
            self.policy,
            self.batches,
            lambda: absent(self.target, digest),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `error` names the exit code, None where that is 0; `digest` is the settings' digest now.

    `in_effect_s` is when the change was seen in effect, None when it never was. `interrupted`: someone asked to stop;
    during the steps they were undone, during verification the new state stays. `remeasured` is the one check after a
    rollback. `trial` is the canary that went before the change, None where there was none.
    """

    run_id: str
    journal: str
    kind: str
    state: RunState
    reason: str
    digest: str = ""
    in_effect_s: float | None = None
    verification: Verification | None = None
    remeasured: Check | None = None
    interrupted: bool = False
    trial: CanaryTrial | None = None
    error: LatencyDoctorError | None = None

    def raise_error(self) -> None:
        """Raises the error, if there is one; for callers that have shown the outcome."""
        if self.error is not None:
            raise self.error
