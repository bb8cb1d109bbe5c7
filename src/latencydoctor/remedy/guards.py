"""What a plan must survive before anything runs; every failure is `Refused`, exit 5.

A plan's digest guards against accidents only. What keeps a crafted plan harmless is that nothing in it is trusted:
the allowed settings and their bounds come from the catalogue again, the text to write is made anew from the target's
own, and what would happen must be what the plan shows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from latencydoctor.errors import Refused
from latencydoctor.model.builds import ModelBuild
from latencydoctor.model.remedy import Operation, OperationKind, Plan, TargetState
from latencydoctor.remedy.cache_warmup import read_operation
from latencydoctor.remedy.catalog import FIXES, Fix
from latencydoctor.remedy.int8 import refuse_lossy
from latencydoctor.remedy.judge import ERRORS, P99, VIP_P99
from latencydoctor.remedy.plan import Texts, compiled_diff, refuse_secret, restored_text, settings_diff
from latencydoctor.remedy.plan_file import refuse_edited
from latencydoctor.remedy.revert_change import is_whole
from latencydoctor.remedy.settings_text import with_generation, without_generation

MAX_OPERATIONS = 8
"""The widest blast radius a plan may have: more than any fix of the catalogue needs. Its objects are not counted: they
are exactly what the target consists of, however many versions that is."""

_NEW_PLAN = "Make a new plan with `latencydoctor plan`."


def check(plan: Plan, state: TargetState) -> Fix:
    """Everything that can be checked before the change is prepared; returns the catalogue's row for the plan's fix."""
    refuse_edited(plan)
    fix = FIXES.get(plan.fix)
    if fix is None:
        raise Refused(f"the plan names a fix that does not exist: {plan.fix!r}", hint=_NEW_PLAN)
    _check_width(plan)
    _check_demands(plan)
    _check_fresh(plan, state)
    for operation in plan.operations:
        if operation.kind is OperationKind.WARM_CACHE:
            _check_warming(operation, fix)
        elif operation.kind is OperationKind.RESTORE_SETTINGS:
            _check_restoring(operation, fix, plan, state)
        elif operation.kind is OperationKind.SERVE_BUILD:
            if not fix.rebuilds:
                raise Refused(f"{fix.id} may not serve a rebuilt model", hint=_NEW_PLAN)
        else:
            _check_setting(operation, fix, state)
    refuse_secret(state.settings_text, state.settings_object)
    return fix


def check_build(plan: Plan, build: ModelBuild | None) -> None:
    """Refused unless the rebuilt model that would be served is the one that the plan was measured on."""
    planned = [one.after for one in plan.operations if one.kind is OperationKind.SERVE_BUILD]
    if build is None or planned != [build.digest]:
        raise Refused("the plan is stale: the rebuilt model is not the one that it was made with", hint=_NEW_PLAN)
    refuse_lossy(build)


def check_shown(plan: Plan, state: TargetState, texts: Texts) -> None:
    """Refused unless the change prepared now is the one whose diff the plan shows."""
    shown = plan.diff in _diffs(plan, state, texts.settings)
    if not shown or plan.compiled_diff != compiled_diff(state, texts.compiled):
        raise Refused("the plan would do something else than what it shows", hint=_NEW_PLAN)


def _diffs(plan: Plan, state: TargetState, after: str) -> tuple[str, ...]:
    """What the plan's diff of the settings may be: a diff shows lines around a change, and a run that was undone since
    has raised the generation among them, or stated it where nothing did."""
    planned = next((one.generation for one in plan.objects if one.name == state.settings_object), 0)
    if not planned:
        return (settings_diff(state, after),)
    return tuple(
        settings_diff(replace(state, settings_text=as_then(state.settings_text)), as_then(after))
        for as_then in (partial(with_generation, generation=planned), without_generation)
    )


def _check_width(plan: Plan) -> None:
    if not plan.operations:
        raise Refused("the plan changes nothing", hint=_NEW_PLAN)
    if len(plan.operations) > MAX_OPERATIONS:
        raise Refused(
            f"the plan reaches too far: {len(plan.operations)} operations, at most {MAX_OPERATIONS} are allowed",
            hint=_NEW_PLAN,
        )
    keys = [operation.key if operation.kind is OperationKind.SET_SETTING else "" for operation in plan.operations]
    if len(set(keys)) != len(keys):
        raise Refused("the plan sets one setting twice, or warms a cache twice", hint=_NEW_PLAN)


def _check_demands(plan: Plan) -> None:
    """What demands nothing of verification would be kept whatever it did."""
    demanded = {one.signal for one in plan.requirements}
    lacking = [word for word, signals in (("p99", {P99, VIP_P99}), ("error ratio", {ERRORS})) if not demanded & signals]
    if lacking:
        raise Refused(f"the plan demands no {' and no '.join(lacking)} of verification", hint=_NEW_PLAN)


def _check_fresh(plan: Plan, state: TargetState) -> None:
    if plan.target != state.target:
        raise Refused(f"the plan is for {plan.target}, not for {state.target}", hint="Apply it to its own target.")
    now = {item.name: item for item in state.objects}
    if set(now) != {item.name for item in plan.objects}:
        raise Refused(f"the plan does not name exactly the objects it touches: {', '.join(now)}", hint=_NEW_PLAN)
    for planned in plan.objects:
        found = now[planned.name]
        if found.digest != planned.digest:
            when = f" (generation {planned.generation} then, {found.generation} now)" if planned.generation else ""
            raise Refused(f"the plan is stale: {planned.name} has changed since{when}", hint=_NEW_PLAN)


def _check_warming(operation: Operation, fix: Fix) -> None:
    if not fix.warms:
        raise Refused(f"{fix.id} may not write entries of a cache", hint=_NEW_PLAN)
    read_operation(operation)


def _check_restoring(operation: Operation, fix: Fix, plan: Plan, state: TargetState) -> None:
    if not fix.restores or operation.object != state.settings_object or len(plan.operations) > 1:
        raise Refused(f"{fix.id} may not put back other settings of {operation.object!r}", hint=_NEW_PLAN)
    text = restored_text(plan.operations, state)
    kept = [one for one in state.kept if one.digest == operation.after and str(one.generation) == operation.key]
    if text is None or not kept or operation.before != state.digest:
        raise Refused(f"the plan is stale: generation {operation.key!r} is not what it was", hint=_NEW_PLAN)
    if not is_whole(kept[-1]):
        raise Refused(f"generation {operation.key} was a canary's and is not to be put back", hint=_NEW_PLAN)
    refuse_secret(text, state.settings_object)


def _check_setting(operation: Operation, fix: Fix, state: TargetState) -> None:
    bound = fix.bound(operation.key)
    if operation.object != state.settings_object or bound is None:
        raise Refused(f"{fix.id} may not set {operation.key!r} of {operation.object!r}", hint=_NEW_PLAN)
    if not bound.admits(operation.after):
        allowed = " or ".join(bound.words) or f"{bound.low} to {bound.high}"
        raise Refused(f"{operation.key} may not be {operation.after!r}, only {allowed}", hint=_NEW_PLAN)
    if not state.can_set(operation.key):
        raise Refused(f"{state.target} cannot set {operation.key}", hint=_NEW_PLAN)
    if (state.setting(operation.key) or "") != operation.before:
        raise Refused(f"the plan is stale: {operation.key} is not {operation.before!r} any more", hint=_NEW_PLAN)
