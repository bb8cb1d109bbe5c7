"""Decides after a change: keep it, roll it back, or hold it for a human. Pure: the same checks give the same decision.

The order of decisions is the safety page's:

1. errors or memory worse than before: roll back (a failed or partial apply never gets here, it is undone);
2. three failed checks in a row, and the state before was not measured worse: roll back;
3. three failed checks in a row, and the state before was measured worse: hold, because rolling back would hurt;
4. no data: hold. A check without data is never a pass; it neither counts as a failure nor ends a row of them.

Three passes in a row keep the change. The counter lives in the checks, which are journalled, so that it survives a
restart of whoever checks.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from latencydoctor.model.remedy import Check, Decision, Plan, Reading
from latencydoctor.percent import percent

ERROR_MARGIN = 0.005
"""By how much the error ratio must have grown to count as worse: the mission's own limit of half a per cent."""

MIN_FAILED_REQUESTS = 5.0
"""Fewer failed requests than this in a window are too few to call errors worse."""

LATENCY_MARGIN = 1.10
"""How many times higher p99 must be to count as worse; the p99 of one window is noisy."""

P99, ERRORS, MEMORY = "e2e_p99_ms", "error_ratio", "accelerator_memory_used_bytes"

MISSES = "cache_miss_ratio"
"""What a fix of the cache is judged by beside the others: the share of lookups that the cache does not answer."""


VIP_P99, VIP_ERRORS, VIP_REQUESTS, SHED = "vip_p99_ms", "vip_error_ratio", "vip_requests", "shed_ratio"
"""What a fix is judged by that serves some requests before others: those, and what it turns away. Then p99 means
theirs, and a request that was turned away on purpose is counted there and not among the errors."""

MIN_VIP_REQUESTS = 100.0
"""A p99 of fewer rests on less than one request."""


@dataclass(frozen=True, slots=True)
class JudgePolicy:
    """How many checks decide. A p99 rests on one request in a hundred, so a window needs a few hundred requests."""

    failures_in_a_row: int = 3
    passes_in_a_row: int = 3
    min_requests: float = 200.0
    max_checks: int = 12
    max_without_data: int = 3


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision and why; None where more checks are needed."""

    decision: Decision | None
    reason: str


def check_of(reading: Reading, plan: Plan, policy: JudgePolicy, at_s: float) -> Check:
    """One window judged against the plan's requirements. Too few requests or no p99 is inconclusive, never a pass."""
    limits = {item.signal: item.at_most for item in plan.requirements}
    reading = believable(reading)
    missing = _missing(reading, policy, limits)
    if missing:
        return _check(reading, at_s, passed=False, conclusive=False, note=missing)
    broken = [
        f"{name} {_shown(value)} above {_shown(limits[name])}"
        for name, value in (
            (P99, reading.p99_ms),
            (ERRORS, _errors(reading.error_ratio, dict(reading.also), limits)),
            (MEMORY, reading.memory_bytes),
            (MISSES, None if reading.hit_ratio is None else 1 - reading.hit_ratio),
            *((name, dict(reading.also).get(name)) for name in (VIP_P99, VIP_ERRORS, SHED)),
        )
        if name in limits and value is not None and value > limits[name]
    ]
    return _check(reading, at_s, passed=not broken, conclusive=True, note="; ".join(broken))


def _check(reading: Reading, at_s: float, *, passed: bool, conclusive: bool, note: str) -> Check:
    return Check(
        at_s,
        reading.p99_ms,
        reading.error_ratio,
        reading.memory_bytes,
        reading.requests,
        passed,
        conclusive,
        note,
        reading.hit_ratio,
        reading.also,
    )


def believable(reading: Reading) -> Reading:
    """The reading without what no server can have measured: no number, one below zero, requests that took no time."""
    also = tuple((signal, value) for signal, value in reading.also if _possible(value) is not None)
    p99_ms, errors, memory, requests, hits = map(
        _possible,
        (reading.p99_ms or None, reading.error_ratio, reading.memory_bytes, reading.requests, reading.hit_ratio),
    )
    return Reading(p99_ms, errors, memory, requests, reading.note, hits, also)


def _errors(ratio: float | None, also: Mapping[str, float], limits: Collection[str]) -> float | None:
    """The share of requests that count as errors: without those turned away, where these are judged by themselves."""
    if ratio is None or SHED not in limits:
        return ratio
    return max(0.0, ratio - also.get(SHED, 0.0))


def _possible(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def _shown(value: float) -> str:
    return f"{value:.4g}"


def _missing(reading: Reading, policy: JudgePolicy, limits: Collection[str]) -> str:
    """What a believable window lacks, in words; empty when it can be judged."""
    if reading.note:
        return reading.note
    if reading.requests is None:
        return "no data on requests"
    if reading.requests < policy.min_requests:
        more = math.ceil(policy.min_requests - reading.requests)
        return f"{reading.requests:.0f} requests of the {policy.min_requests:.0f} needed: {more} more"
    named = (("p99", reading.p99_ms), ("errors", reading.error_ratio))
    absent = [name for name, value in named if value is None]
    if MEMORY in limits and reading.memory_bytes is None:
        absent.append("memory")
    if MISSES in limits and reading.hit_ratio is None:
        absent.append("the cache's hits")
    also = dict(reading.also)
    absent += [words for name, words in _ALSO.items() if name in limits and name not in also]
    if absent:
        return f"no data on {' and '.join(absent)}"
    vip = also.get(VIP_REQUESTS, 0.0)
    if VIP_P99 in limits and vip < MIN_VIP_REQUESTS:
        more = math.ceil(MIN_VIP_REQUESTS - vip)
        return f"{vip:.0f} VIP requests of the {MIN_VIP_REQUESTS:.0f} needed: {more} more"
    return ""


def grows(reading: Reading, plan: Plan, policy: JudgePolicy) -> bool:
    """Whether all that a window lacks is requests, so that a longer one from the same start would have them.

    What else keeps it from being judged, such as a server that was restarted inside it, would stay inside.
    """
    if reading.note or reading.requests is None:
        return False
    by_vip = any(item.signal == VIP_P99 for item in plan.requirements)
    few_vip = by_vip and dict(reading.also).get(VIP_REQUESTS, 0.0) < MIN_VIP_REQUESTS
    return few_vip or reading.requests < policy.min_requests


_ALSO = {VIP_P99: "the p99 of VIP requests", VIP_ERRORS: "the errors of VIP requests", SHED: "what was turned away"}


def rule(checks: Sequence[Check], plan: Plan, policy: JudgePolicy) -> Ruling:
    """The decision that all checks so far allow, newest last."""
    if not checks:
        return Ruling(None, "no check yet")
    worse = _worse_than_before(checks[-1], plan)
    if worse:
        return Ruling(Decision.ROLL_BACK, worse)
    conclusive = [check for check in checks if check.conclusive]
    failures = _row(conclusive, passed=False)
    if failures >= policy.failures_in_a_row:
        return _after_failures(conclusive[-failures:], plan)
    if _row(conclusive, passed=True) >= policy.passes_in_a_row and checks[-1].conclusive:
        return Ruling(Decision.KEEP, f"{policy.passes_in_a_row} checks in a row passed")
    blind = len(list(takewhile(lambda check: not check.conclusive, reversed(checks))))
    if blind >= policy.max_without_data:
        return Ruling(Decision.HOLD, f"no data in {blind} checks in a row: {checks[-1].note}")
    if len(checks) >= policy.max_checks:
        return Ruling(Decision.HOLD, f"{len(checks)} checks gave neither a clear pass nor a clear failure")
    return Ruling(None, "more checks are needed")


def _row(checks: Sequence[Check], *, passed: bool) -> int:
    return len(list(takewhile(lambda check: check.passed is passed, reversed(checks))))


def _worse_than_before(check: Check, plan: Plan) -> str:
    """Why memory or errors count as worse than before the change; empty when they do not."""
    if not check.conclusive:
        return ""
    limits = {item.signal: item.at_most for item in plan.requirements}
    memory_limit = limits.get(MEMORY)
    if memory_limit is not None and check.memory_bytes is not None and check.memory_bytes > memory_limit:
        used = _shown(check.memory_bytes)
        return f"memory is worse than before: {used} bytes, at most {_shown(memory_limit)} allowed"
    then = dict(plan.before_values)
    before = _errors(then.get(ERRORS), then, limits)
    ratio, requests = _errors(check.error_ratio, dict(check.also), limits), check.requests
    if ratio is None or requests is None or ratio <= limits.get(ERRORS, 0.0):
        return ""
    # Without a measurement from before, errors above the limit are only a failed check: nothing says they grew.
    if before is not None and ratio > before + ERROR_MARGIN and ratio * requests >= MIN_FAILED_REQUESTS:
        return f"errors are worse than before: {percent(ratio, 2)} of requests, {percent(before, 2)} before"
    return ""


def _after_failures(failed: Sequence[Check], plan: Plan) -> Ruling:
    told = f"{len(failed)} checks in a row failed: {failed[-1].note}"
    found = [as_judged(Reading(one.p99_ms, one.error_ratio, None, None, also=one.also), plan) for one in failed]
    p99s = sorted(one.p99_ms for one in found if one.p99_ms is not None)
    errors = sorted(one.error_ratio for one in found if one.error_ratio is not None)
    middle = Reading(p99s[len(p99s) // 2], errors[len(errors) // 2], None, None)
    worse = before_worse(values_before(plan), middle)
    if worse:
        return Ruling(Decision.HOLD, f"{told}; but the state before was worse ({worse})")
    return Ruling(Decision.ROLL_BACK, f"{told}; the state before was not measured worse")


def as_judged(reading: Reading, plan: Plan) -> Reading:
    """The reading with what counts as its p99 and its errors under this plan."""
    limits, also = {one.signal for one in plan.requirements}, dict(reading.also)
    p99_ms = also.get(VIP_P99) if VIP_P99 in limits else reading.p99_ms
    return replace(reading, p99_ms=p99_ms, error_ratio=_errors(reading.error_ratio, also, limits))


def values_before(plan: Plan) -> dict[str, float]:
    """What was measured before the change, with what counts as p99 and errors under this plan."""
    before, limits = dict(plan.before_values), {one.signal for one in plan.requirements}
    found = {
        P99: before.get(VIP_P99 if VIP_P99 in limits else P99),
        ERRORS: _errors(before.get(ERRORS), before, limits),
    }
    return {name: value for name, value in {**before, **found}.items() if value is not None}


def before_worse(before: Mapping[str, float], now: Reading) -> str:
    """How the state before the change was measured worse than now; empty when it was not, or is not known."""
    p99, errors = before.get(P99), before.get(ERRORS)
    if p99 is not None and now.p99_ms is not None and p99 > now.p99_ms * LATENCY_MARGIN:
        return f"p99 {p99:.0f} ms then, {now.p99_ms:.0f} ms now"
    slower_now = p99 is not None and now.p99_ms is not None and now.p99_ms > p99 * LATENCY_MARGIN
    fewer_errors = errors is not None and now.error_ratio is not None and errors > now.error_ratio + ERROR_MARGIN
    if fewer_errors and not slower_now and errors is not None and now.error_ratio is not None:
        return f"errors {percent(errors, 2)} then, {percent(now.error_ratio, 2)} now"
    return ""
