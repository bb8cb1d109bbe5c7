"""Decides on a canary beside a concurrent baseline: promote it, roll it back, or hold. Pure, like `judge.py`.

A fixed limit alone is blind below itself and jumpy near it, so the canary is compared with its peers window by window:
what slows both alike (load, a noisy hour) cancels. Two comparisons are made of all windows so far. Latency: the mean of
the logarithms of canary p99 / baseline p99 with its standard error. Errors: of all failed requests the share that is
the canary's, which without a difference is its share of the requests (exact binomial tail).

1. memory above its limit, or clearly more errors than the baseline has: roll back; where one request in twenty more
   fails than beside it, after the first window;
2. p99 clearly worse than the baseline, by `MINIMUM_EFFECT` or more: roll back, wherever the limit is;
3. three failed checks in a row while the canary seems worse: roll back; while it is not, a p99 near the limit is the
   baseline's as well: inconclusive, and held if it stays so;
4. no data on either side: never a pass, and three in a row are held;
5. as bad as the limit, and not worse than its baseline: hold ("better than the incident, not yet healthy");
6. the last three checks passed, and the canary is not plausibly worse: promote.

The figures (false rollbacks, detection) are measured by `make bench-judge`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from latencydoctor.model.remedy import Decision, Reading
from latencydoctor.percent import percent
from latencydoctor.remedy.judge import believable

MINIMUM_EFFECT = 1.10
"""How many times the baseline's p99 the canary's must be to count as worse: less is what hosts differ by."""

NOISE_FLOOR = 0.06
"""The least spread of one window's log ratio that is believed: a p99 of 600 requests rests on six of them."""

SURE = 2.3
"""So many standard errors beyond the minimum effect roll back; hosts that differ by 3 % for good stay far from it."""

SURE_WHILE_FAILING = 1.5
"""The same while three checks in a row failed: the limit is a second witness."""

ERRORS_BY_CHANCE = 0.006
"""Below this probability more errors on the canary are no chance, at the first look; at the n-th the n-th part of it,
so that many looks together are wrong hardly more often than one."""

WORST_ERROR_GROWTH = 0.0025
"""By how much the canary's error ratio must exceed the baseline's: half of the mission's limit of 0.5 %."""


GRAVE_ERROR_GROWTH = 0.05
"""So much higher an error ratio is not watched for three windows: customers get those errors."""

FAR = 10.0
"""So many standard deviations from the mean there is nothing left to sum."""

GRAVE_BY_CHANCE = 1e-6
"""Below this probability one window is enough to say that it is no chance."""


@dataclass(frozen=True, slots=True)
class CanaryPolicy:
    """The outer bound and how many windows decide. Latencies in ms, ratios 0..1."""

    p99_limit_ms: float = 1000.0
    error_limit_ratio: float = 0.005
    memory_limit_bytes: float | None = None
    min_requests: float = 200.0
    failures_in_a_row: int = 3
    passes_in_a_row: int = 3
    first_look: int = 3
    windows_to_promote: int = 5
    max_windows: int = 15
    max_without_data: int = 3


@dataclass(frozen=True, slots=True)
class CanaryWindow:
    """The same span of time on the canary and on its peers, at equal rate for each replica."""

    canary: Reading
    baseline: Reading


@dataclass(frozen=True, slots=True)
class CanaryRuling:
    """A decision and why; `decision` None where more windows are needed. `ratio` is canary p99 / baseline p99 with the
    range it plausibly lies in, None before the first look."""

    decision: Decision | None
    reason: str
    ratio: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class _Compared:
    """The mean log ratio of p99 and its standard error."""

    mean: float
    error: float

    def worse_by(self, errors: float) -> bool:
        """Whether it lies above the minimum effect even `errors` standard errors lower."""
        return self.mean - errors * self.error >= math.log(MINIMUM_EFFECT)

    def not_worse_by(self, errors: float) -> bool:
        """Whether it lies below the minimum effect even `errors` standard errors higher."""
        return self.mean + errors * self.error < math.log(MINIMUM_EFFECT)

    @property
    def shown(self) -> tuple[float, float, float]:
        """The ratio and its range, two standard errors to each side."""
        middle, low, high = self.mean, self.mean - 2 * self.error, self.mean + 2 * self.error
        return math.exp(middle), math.exp(low), math.exp(high)


def missing(window: CanaryWindow, policy: CanaryPolicy) -> str:
    """What keeps a window from being judged, in words; empty when it can be."""
    canary = believable(window.canary)
    for side, reading in (("canary", canary), ("baseline", believable(window.baseline))):
        if reading.note:
            return f"{side}: {reading.note}"
        if reading.requests is None:
            return f"{side}: no data on requests"
        if reading.requests < policy.min_requests:
            more = math.ceil(policy.min_requests - reading.requests)
            return f"{side}: {reading.requests:.0f} requests of the {policy.min_requests:.0f} needed: {more} more"
        for name, value in (("p99", reading.p99_ms), ("errors", reading.error_ratio)):
            if value is None:
                return f"{side}: no data on {name}"
    if policy.memory_limit_bytes is not None and canary.memory_bytes is None:
        return "canary: no data on memory"
    return ""


def judge_canary(windows: Sequence[CanaryWindow], policy: CanaryPolicy) -> CanaryRuling:
    """The decision that all windows so far allow, newest last."""
    if not windows:
        return CanaryRuling(None, "no window yet")
    kept = [window for window in windows if not missing(window, policy)]
    newest = missing(windows[-1], policy)
    if newest:
        blind = len(list(takewhile(lambda one: bool(missing(one, policy)), reversed(windows))))
        if blind >= policy.max_without_data:
            return CanaryRuling(Decision.HOLD, f"no data in {blind} windows in a row: {newest}")
        return CanaryRuling(None, f"inconclusive: {newest}")
    memory = _memory(windows[-1], policy)
    if memory:
        return CanaryRuling(Decision.ROLL_BACK, memory)
    grave = _errors(windows[-1:], GRAVE_ERROR_GROWTH, GRAVE_BY_CHANCE)
    if grave:
        return CanaryRuling(Decision.ROLL_BACK, grave)
    if len(kept) < policy.first_look:
        return CanaryRuling(None, f"{policy.first_look - len(kept)} more windows before the first look")
    return _look(kept, policy)


def failures_in_a_row(windows: Sequence[CanaryWindow], policy: CanaryPolicy) -> int:
    """How many of the windows that could be judged failed up to the newest of them; one without data ends no row."""
    kept = [window for window in windows if not missing(window, policy)]
    return len(list(takewhile(lambda one: not _passes(one, policy), reversed(kept))))


def windows_left(windows: Sequence[CanaryWindow], policy: CanaryPolicy) -> int:
    """How many more windows a promotion takes at least."""
    kept = [window for window in windows if not missing(window, policy)]
    passing = len(list(takewhile(lambda one: _passes(one, policy), reversed(kept))))
    return max(1, policy.windows_to_promote - len(kept), policy.passes_in_a_row - passing)


def _look(windows: Sequence[CanaryWindow], policy: CanaryPolicy) -> CanaryRuling:
    compared = _latency(windows)
    failed = [not _passes(window, policy) for window in windows]
    failing = len(list(takewhile(bool, reversed(failed))))
    look = len(windows) - policy.first_look + 1
    worse = _errors(windows, WORST_ERROR_GROWTH, ERRORS_BY_CHANCE / look) or _slower(
        compared, failing >= policy.failures_in_a_row
    )
    if worse:
        return CanaryRuling(Decision.ROLL_BACK, worse, compared.shown)
    passing = len(list(takewhile(lambda one: not one, reversed(failed))))
    settled = len(windows) >= policy.windows_to_promote and compared.not_worse_by(1.0)
    if settled and passing >= policy.passes_in_a_row:
        reason = f"{passing} checks in a row passed, p99 is {compared.shown[0]:.2f} times the baseline's"
        return CanaryRuling(Decision.KEEP, reason, compared.shown)
    if len(windows) >= policy.max_windows:
        return CanaryRuling(Decision.HOLD, _undecided(failing, len(windows), compared), compared.shown)
    return CanaryRuling(None, "more windows are needed", compared.shown)


def _undecided(failing: int, windows: int, compared: _Compared) -> str:
    ratio, low, high = compared.shown
    if failing:
        return f"close to or above the limit, and not worse than the baseline ({ratio:.2f} times): not yet healthy"
    return f"{windows} windows, and p99 may be {low:.2f} to {high:.2f} times the baseline's: not enough evidence"


def _passes(window: CanaryWindow, policy: CanaryPolicy) -> bool:
    p99_ms, errors = window.canary.p99_ms, window.canary.error_ratio
    assert p99_ms is not None
    assert errors is not None
    return p99_ms <= policy.p99_limit_ms and errors <= policy.error_limit_ratio


def _memory(window: CanaryWindow, policy: CanaryPolicy) -> str:
    used, limit = window.canary.memory_bytes, policy.memory_limit_bytes
    if limit is None or used is None or used <= limit:
        return ""
    return f"memory is not stable: {used:.4g} bytes, at most {limit:.4g} allowed"


def _slower(compared: _Compared, failing: bool) -> str:
    if not compared.worse_by(SURE_WHILE_FAILING if failing else SURE):
        return ""
    ratio, low, high = compared.shown
    beside = ", and its checks fail" if failing else ""
    return f"p99 is {ratio:.2f} times the baseline's ({low:.2f} to {high:.2f}){beside}"


def _latency(windows: Sequence[CanaryWindow]) -> _Compared:
    logs = [math.log((one.canary.p99_ms or 1.0) / (one.baseline.p99_ms or 1.0)) for one in windows]
    mean = math.fsum(logs) / len(logs)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in logs) / (len(logs) - 1)) if len(logs) > 1 else 0.0
    return _Compared(mean, max(spread, NOISE_FLOOR) / math.sqrt(len(logs)))


def _errors(windows: Sequence[CanaryWindow], growth: float, chance: float) -> str:
    """Why the canary's errors are no chance; empty when they may be, or have grown by less."""
    canary, canary_requests = _failed([one.canary for one in windows])
    baseline, baseline_requests = _failed([one.baseline for one in windows])
    grown = canary / canary_requests - baseline / baseline_requests
    if grown < growth:
        return ""
    share = canary_requests / (canary_requests + baseline_requests)
    if binomial_tail(round(canary), round(canary + baseline), share) >= chance:
        return ""
    return f"errors {percent(canary / canary_requests, 2)}, the baseline has {percent(baseline / baseline_requests, 2)}"


def _failed(readings: Sequence[Reading]) -> tuple[float, float]:
    """Failed requests and requests."""
    requests = math.fsum(one.requests or 0.0 for one in readings)
    return math.fsum((one.error_ratio or 0.0) * (one.requests or 0.0) for one in readings), requests


def binomial_tail(at_least: int, of: int, share: float) -> float:
    """The probability of `at_least` or more of `of` events where each is one with probability `share`.

    Summed in logarithms, so that thousands of events do not overflow, and no further than `FAR` standard deviations
    from the mean, so that millions take no longer.
    """
    if at_least <= 0 or share >= 1:
        return 1.0
    far = FAR * math.sqrt(of * share * (1 - share)) + FAR
    first, last = max(at_least, math.floor(of * share - far)), min(of, math.ceil(max(at_least, of * share) + far))
    log_yes, log_no = math.log(share), math.log1p(-share)
    terms = (
        math.lgamma(of + 1) - math.lgamma(k + 1) - math.lgamma(of - k + 1) + k * log_yes + (of - k) * log_no
        for k in range(first, last + 1)
    )
    return math.fsum(map(math.exp, terms))
