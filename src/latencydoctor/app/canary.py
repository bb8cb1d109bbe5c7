"""Watches a canary beside its peers, window by window, until the judge decides.

A window needs a number of requests on both sides as well as its length: with less traffic it grows, and says by how
much and until when. Where the requests would not come within `LONGEST_WINDOW_S`, or nothing can be read, the window
counts as one without data, which is never a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from latencydoctor.app.ports import ArmsVerifier, Cancelled, Clock, Observer, Progress
from latencydoctor.app.verify import Schedule, wait_until
from latencydoctor.model.canary import CanaryCheck, CanaryTrial
from latencydoctor.model.evidence import Window
from latencydoctor.model.remedy import Plan, Reading
from latencydoctor.percent import percent
from latencydoctor.remedy.canary import (
    CanaryPolicy,
    CanaryWindow,
    failures_in_a_row,
    judge_canary,
    missing,
    windows_left,
)
from latencydoctor.remedy.judge import ERRORS, MEMORY, P99, believable
from latencydoctor.remedy.staging import Stage

LONGEST_WINDOW_S = 300.0
"""A window that would take longer to fill than this is not waited for: whoever applies a change sits and waits."""

GROWTH = 1.1
"""How much longer than the present rate asks for a window grows; arrivals are not even."""


@dataclass(frozen=True, slots=True)
class CanaryWatch:
    """What watching a canary needs. `in_effect` says in words why the canary does not run, "" while it does."""

    arms: ArmsVerifier
    clock: Clock
    observer: Observer
    cancelled: Cancelled
    schedule: Schedule
    policy: CanaryPolicy
    in_effect: Callable[[], str]


def policy_of(plan: Plan, min_requests: float) -> CanaryPolicy:
    """The outer bound is what the plan's verification demands as well."""
    limits = {item.signal: item.at_most for item in plan.requirements}
    default = CanaryPolicy()
    return CanaryPolicy(
        p99_limit_ms=limits.get(P99, default.p99_limit_ms),
        error_limit_ratio=limits.get(ERRORS, default.error_limit_ratio),
        memory_limit_bytes=limits.get(MEMORY),
        min_requests=min_requests,
    )


def watch_canary(
    stage: Stage, watch: CanaryWatch, on_check: Callable[[CanaryCheck], None], earlier: Sequence[CanaryCheck] = ()
) -> CanaryTrial | None:
    """Windows until there is a decision; None when interrupted. `on_check` hears of each window before it counts.

    `earlier` are those of a run of the same canary that was cut off: its failures in a row count on.
    """
    checks = list(earlier)
    start_s = watch.clock.now_s() + watch.schedule.settle_s
    while True:
        check = _window(start_s, checks, watch)
        if check is None:
            return None
        on_check(check)
        checks.append(check)
        windows = _windows(checks)
        ruling = judge_canary(windows, watch.policy)
        watch.observer(Progress("canary", describe(check, len(checks))))
        if ruling.decision is not None:
            return CanaryTrial(
                stage.kind, stage.share_ratio, tuple(checks), ruling.decision, ruling.reason, ruling.ratio
            )
        left = windows_left(windows, watch.policy)
        at_least_s = left * watch.schedule.window_s
        watch.observer(Progress("canary", f"{ruling.reason}; at least {left} more, about {at_least_s:.0f} s"))
        start_s = check.end_s


def _windows(checks: Sequence[CanaryCheck]) -> list[CanaryWindow]:
    return [CanaryWindow(one.canary, one.baseline) for one in checks]


def _window(start_s: float, before: Sequence[CanaryCheck], watch: CanaryWatch) -> CanaryCheck | None:
    """The next window, grown until it holds enough requests or growing is of no use; None when interrupted."""
    end_s = start_s + watch.schedule.window_s
    while True:
        if not wait_until(end_s + watch.schedule.lag_s, watch.clock, watch.cancelled):
            return None
        canary, baseline = map(believable, watch.arms.read(Window(start_s, end_s)))
        more_s = _more_s((canary, baseline), end_s - start_s, watch.policy.min_requests)
        if end_s + more_s - start_s > LONGEST_WINDOW_S:
            watch.observer(Progress("canary", _too_slow(more_s)))
            more_s = 0.0
        if not more_s:
            return _check(Window(start_s, end_s), canary, baseline, before, watch)
        watch.observer(Progress("canary", _growing(canary, baseline, watch.policy.min_requests, more_s)))
        end_s += more_s


def _more_s(sides: Sequence[Reading], length_s: float, min_requests: float) -> float:
    """How much longer the window must be at the present rates, whole seconds; infinite without any requests.

    0 where it is long enough, and where no number of requests is known.
    """
    longest = 0.0
    for side in sides:
        if side.note or side.requests is None:
            return 0.0
        if side.requests < min_requests:
            lacking = min_requests - side.requests
            longest = max(longest, lacking / side.requests * length_s if side.requests > 0 else math.inf)
    return math.ceil(longest * GROWTH) if math.isfinite(longest) else math.inf


def _growing(canary: Reading, baseline: Reading, min_requests: float, more_s: float) -> str:
    counts = f"{canary.requests or 0:.0f} on the canary and {baseline.requests or 0:.0f} beside it"
    return f"{counts} of the {min_requests:.0f} requests needed on each; about {more_s:.0f} s more"


def _too_slow(more_s: float) -> str:
    if math.isinf(more_s):
        return "no requests come on one of the sides: not waited for"
    return f"at this rate enough requests would take {math.ceil(more_s / 60)} min more: not waited for"


def _check(
    window: Window, canary: Reading, baseline: Reading, before: Sequence[CanaryCheck], watch: CanaryWatch
) -> CanaryCheck:
    """The window, with what keeps it from being judged: a canary that does not run has shown nothing."""
    absent = watch.in_effect()
    if absent:
        canary = Reading(None, None, None, None, absent)
    seen = CanaryWindow(canary, baseline)
    failures = failures_in_a_row([*_windows(before), seen], watch.policy)
    return CanaryCheck(window.start_s, window.end_s, canary, baseline, missing(seen, watch.policy), failures)


def describe(check: CanaryCheck, number: int) -> str:
    """One line for people."""
    if check.note:
        return f"window {number} not conclusive: {check.note}"
    canary, baseline = check.canary, check.baseline
    return (
        f"window {number}: p99 {canary.p99_ms or 0:.0f} ms, its peers {baseline.p99_ms or 0:.0f} ms; "
        f"errors {percent(canary.error_ratio or 0, 2)}, {percent(baseline.error_ratio or 0, 2)}; "
        f"{canary.requests or 0:.0f} and {baseline.requests or 0:.0f} requests"
    )
