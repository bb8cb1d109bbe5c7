"""Whether a plan is tried by a canary first, and the settings that make one.

A canary of a replica runs the whole change; its peers run what was there before. How well requests batch depends on
their rate, so it is one of several equally loaded replicas, and with one replica there is no honest canary.
"""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.model.canary import CanaryKind
from latencydoctor.model.remedy import OperationKind, Plan, TargetState
from latencydoctor.percent import percent
from latencydoctor.remedy.catalog import Fix
from latencydoctor.remedy.plan import values_of

REPLICAS = "inference.replicas"
SERVED = "inference."
SECTION = "canary."

SHARE_RATIO = 0.2
"""Of the sessions, for a canary that is a version of the model (the safety page)."""

BUSY = "accelerator_busy_ratio"
BUSY_RATIO = 0.85
"""Above this an accelerator is saturated: the mission's bound of a healthy GPU."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A canary to be: the settings (dotted key, value) that make it, and the share of the sessions it gets, 0..1."""

    kind: CanaryKind
    share_ratio: float
    values: tuple[tuple[str, str], ...]
    told: str


@dataclass(frozen=True, slots=True)
class NoCanary:
    """Why a plan is not tried by a canary."""

    reason: str


def stage(fix: Fix, plan: Plan, state: TargetState, share_ratio: float = SHARE_RATIO) -> Stage | NoCanary:
    """The canary of a plan on a target as it is."""
    values = values_of(plan)
    # A build comes into effect with the setting that names it, and so with a canary of that setting.
    staged = (OperationKind.SET_SETTING, OperationKind.SERVE_BUILD)
    others = any(one.kind not in staged for one in plan.operations)
    if fix.canary is CanaryKind.NONE or others or not all(key.startswith(SERVED) for key, _ in values):
        return NoCanary(f"{fix.id} changes what all requests share")
    canary = tuple((SECTION + key.removeprefix(SERVED), value) for key, value in values)
    if fix.canary is CanaryKind.VERSION:
        busy = dict(plan.before_values).get(BUSY)
        if busy is not None and busy > BUSY_RATIO:
            return NoCanary(
                f"the accelerator is busy {percent(busy, 0)} of the time: both versions would wait in its queue, "
                "and the new one could not be told from the old"
            )
        told = f"a version of the model answers {percent(share_ratio, 0)} of the sessions"
        return Stage(fix.canary, share_ratio, (*canary, (f"{SECTION}share_ratio", f"{share_ratio:g}")), told)
    replicas = _whole(state.in_use(REPLICAS))
    if replicas is None:
        return NoCanary(f"{state.target} does not say how many replicas it has")
    if replicas < 2:
        return NoCanary("batching depends on the rate, and there is no second replica to compare with at the same rate")
    share = 1 / replicas
    return Stage(
        fix.canary, share, canary, f"one of {replicas} replicas, which answers {percent(share, 0)} of the sessions"
    )


def is_staged(state: TargetState) -> bool:
    """Whether the settings hold a canary already."""
    return any(key.startswith(SECTION) for key, _ in state.settings)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
