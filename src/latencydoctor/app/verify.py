"""Verification on fresh metrics: one window after another until the judge decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from latencydoctor.app.ports import BatchCounter, Cancelled, Clock, Observer, Progress, Verifier
from latencydoctor.model.evidence import Window
from latencydoctor.model.remedy import Check, Decision, Plan, Verification
from latencydoctor.percent import percent
from latencydoctor.remedy.judge import SHED, VIP_P99, JudgePolicy, believable, check_of, grows, rule
from latencydoctor.remedy.reached import batches_run, reached

SLICE_S = 0.2
"""How long one sleep lasts at most, so that an interrupt is noticed at once."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When windows lie, seconds: `settle_s` after the change for the backlog to drain, each `window_s` long, read
    `lag_s` after its end so that the last scrape is in."""

    settle_s: float = 6.0
    window_s: float = 10.0
    lag_s: float = 2.0

    def after_backlog(self, deadline_ms: float | None) -> Schedule:
        """The same, begun no earlier than one deadline after the change: until then requests from before it may still
        time out, and a fix must not be judged by those.
        """
        return self if deadline_ms is None else replace(self, settle_s=max(self.settle_s, deadline_ms / 1000 + 1))


def uncounted() -> None:
    """Counts no batches: where no server tells them."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What verification needs of its surroundings. `absent` says in words why the change is not in effect, "" while
    it is."""

    verifier: Verifier
    clock: Clock
    observer: Observer
    cancelled: Cancelled
    schedule: Schedule
    policy: JudgePolicy
    batches: BatchCounter = uncounted
    absent: Callable[[], str] = str


def verify(plan: Plan, watch: Watch, on_check: Callable[[Check], None]) -> Verification | None:
    """Checks until there is a decision; None when interrupted. `on_check` hears of each check before it counts.

    Windows do not overlap. Too few requests do not end a window: it grows until there are enough, or until the judge
    has waited long enough. Batches are counted from the beginning, which is when the change has come into effect.
    """
    checks: list[Check] = []
    counted = watch.batches()
    start_s = watch.clock.now_s() + watch.schedule.settle_s
    end_s = start_s + watch.schedule.window_s
    while True:
        if not wait_until(end_s + watch.schedule.lag_s, watch.clock, watch.cancelled):
            return None
        reading = believable(watch.verifier.read(Window(start_s, end_s)))
        check = check_of(reading, plan, watch.policy, end_s)
        on_check(check)
        checks.append(check)
        watch.observer(Progress("verify", describe(check, len(checks))))
        ruling = rule(checks, plan, watch.policy)
        if ruling.decision is not None:
            ran = batches_run(counted, watch.batches())
            found = reached(plan.predictions, checks)
            decision, reason = _if_there(ruling.decision, ruling.reason, watch)
            return Verification(decision, reason, tuple(checks), found, ran)
        if not grows(reading, plan, watch.policy):
            start_s = end_s
        end_s += watch.schedule.window_s


def _if_there(decision: Decision, reason: str, watch: Watch) -> tuple[Decision, str]:
    """Only what is in effect is kept: what the checks saw may have been undone by a person or a restart meanwhile."""
    absent = watch.absent() if decision is Decision.KEEP else ""
    return (Decision.HOLD, f"{reason}, but the change is not in effect now: {absent}") if absent else (decision, reason)


def measure(plan: Plan, watch: Watch) -> Check | None:
    """One check after a rollback, to show what the old state does now; None when interrupted."""
    start_s = watch.clock.now_s() + watch.schedule.settle_s
    end_s = start_s + watch.schedule.window_s
    if not wait_until(end_s + watch.schedule.lag_s, watch.clock, watch.cancelled):
        return None
    return check_of(watch.verifier.read(Window(start_s, end_s)), plan, watch.policy, end_s)


def unverified(reason: str) -> Verification:
    """The verification of a change that nothing could check: held, never kept."""
    return Verification(Decision.HOLD, reason, ())


def wait_until(end_s: float, clock: Clock, cancelled: Cancelled) -> bool:
    """Waits in short slices; false as soon as someone asks to stop."""
    while (left_s := end_s - clock.now_s()) > 0:
        if cancelled():
            return False
        clock.sleep(min(SLICE_S, left_s))
    return not cancelled()


def describe(check: Check, number: int) -> str:
    """One line for people."""
    word = "passed" if check.passed else "failed" if check.conclusive else "inconclusive"
    p99 = "no p99" if check.p99_ms is None else f"p99 {check.p99_ms:.0f} ms"
    errors = "no error ratio" if check.error_ratio is None else f"errors {percent(check.error_ratio, 2)}"
    also = dict(check.also)
    vip = f", VIP p99 {also[VIP_P99]:.0f} ms" if VIP_P99 in also else ""
    shed = f", turned away {percent(also[SHED], 1)}" if also.get(SHED) else ""
    note = f" ({check.note})" if check.note else ""
    return f"check {number} {word}: {p99}{vip}, {errors}{shed}{note}"
