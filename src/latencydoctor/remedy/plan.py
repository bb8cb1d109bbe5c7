"""Builds a plan from what a fix proposes and what the target looks like.

Pure: a dry run is this and nothing more.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from latencydoctor.errors import Refused
from latencydoctor.model.configuration import Slo
from latencydoctor.model.remedy import Operation, OperationKind, Plan, Prediction, Requirement, TargetState
from latencydoctor.remedy.cache_warmup import Warming, read_operation
from latencydoctor.remedy.catalog import Fix
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.plan_file import SCHEMA, plan_digest
from latencydoctor.remedy.secrecy import redact, secret_line
from latencydoctor.remedy.settings_text import with_generation

FREE_MEMORY_SHARE = 0.25
"""How much of the accelerator's free memory a fix may take before verification calls memory worse."""

MEMORY_GROWTH_LIMIT = 1.10
"""The same where the accelerator's total memory is not known: times the memory in use before."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Settings and compiled configuration after the change."""

    settings: str
    compiled: str


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why the plan is made and against what it will be judged.

    `measured` are signals by name as they were during the incident (`e2e_p99_ms`, `error_ratio`,
    `accelerator_memory_used_bytes`, ...); empty when nothing was measured.
    """

    justification: tuple[str, ...]
    measured: Mapping[str, float]
    predictions: tuple[Prediction, ...]
    slo: Slo
    simulated: bool


def operations_of(state: TargetState, change: Change) -> tuple[Operation, ...]:
    """The change as operations with their before; "" stands for a setting the file does not state."""
    settings = tuple(
        Operation(OperationKind.SET_SETTING, state.settings_object, key, state.setting(key) or "", value)
        for key, value in change.values
    )
    if change.restores is not None:
        # The number is for people; what is restored is known by its digest.
        key, after = str(change.restores.generation), change.restores.digest
        settings = (Operation(OperationKind.RESTORE_SETTINGS, state.settings_object, key, state.digest, after),)
    return (*settings, *change.operations)


def values_of(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The settings that the plan sets."""
    return tuple((one.key, one.after) for one in plan.operations if one.kind is OperationKind.SET_SETTING)


def restored_text(operations: Sequence[Operation], state: TargetState) -> str | None:
    """The whole text that the operations put back, under the present generation; None when they put none back.

    Refused when the target keeps no settings of that digest: a plan cannot bring any of its own.
    """
    asked = [one for one in operations if one.kind is OperationKind.RESTORE_SETTINGS]
    if not asked:
        return None
    kept = next((one for one in reversed(state.kept) if one.digest == asked[0].after), None)
    if kept is None or len(asked) > 1:
        raise Refused(
            f"the plan puts back settings that {state.target} does not keep",
            hint="Make a new plan with `latencydoctor plan`.",
        )
    return with_generation(kept.text, state.generation)


def warming_of(plan: Plan) -> Warming | None:
    """The answers that the plan writes; Refused when it names them in a way that no fix would."""
    found = [one for one in plan.operations if one.kind is OperationKind.WARM_CACHE]
    return read_operation(found[0]) if found else None


def diff_of(before: str, after: str, name: str) -> str:
    """A unified diff with three lines of context, empty when nothing differs."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"{name} (before)", f"{name} (after)"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def settings_diff(state: TargetState, after: str) -> str:
    """What changes in the settings; the generation, which any change raises, is not part of it."""
    return diff_of(state.settings_text, after, state.settings_object)


def compiled_diff(state: TargetState, compiled: str) -> str:
    """What changes in the server's own configuration."""
    return diff_of(state.compiled, compiled, state.compiled_name)


def build(fix: Fix, change: Change, state: TargetState, texts: Texts, grounds: Grounds, created_s: float) -> Plan:
    """The plan, its digest included. Raises Refused when the settings hold what looks like a secret."""
    refuse_secret(state.settings_text, state.settings_object)
    refuse_secret(texts.settings, state.settings_object)
    plan = Plan(
        schema=SCHEMA,
        fix=fix.id,
        title=fix.title,
        target=state.target,
        created_s=created_s,
        objects=state.objects,
        operations=operations_of(state, change),
        diff=settings_diff(state, texts.settings),
        compiled_diff=compiled_diff(state, texts.compiled),
        predictions=grounds.predictions,
        side_effects=change.side_effects,
        blast_radius=fix.blast_radius,
        justification=tuple(redact(line) for line in grounds.justification),
        requirements=_with(requirements_of(grounds.slo, grounds.measured), change),
        before_values=tuple(sorted(grounds.measured.items())),
        simulated=grounds.simulated,
        digest="",
    )
    return replace(plan, digest=plan_digest(plan))


def _with(general: tuple[Requirement, ...], change: Change) -> tuple[Requirement, ...]:
    taken = {*(one.signal for one in change.requirements), *change.instead_of}
    return (*(one for one in general if one.signal not in taken), *change.requirements)


def refuse_secret(settings_text: str, name: str) -> None:
    """Refused when a line of the settings looks like a secret: plan and journal would keep it."""
    line = secret_line(settings_text)
    if line is not None:
        raise Refused(
            f"{name} line {line} looks like it holds a secret, and a plan and its journal would keep it",
            hint="Name a file or an environment variable there instead of the secret, then plan again.",
        )


def requirements_of(slo: Slo, measured: Mapping[str, float]) -> tuple[Requirement, ...]:
    """What each verification window must show: p99 and errors within the SLO, and memory that did not run away."""
    found = [
        Requirement("e2e_p99_ms", "ms", slo.p99_ms),
        Requirement("error_ratio", "ratio", slo.error_ratio),
    ]
    used, total = measured.get("accelerator_memory_used_bytes"), measured.get("accelerator_memory_total_bytes")
    if used is not None and total is not None and total > used:
        found.append(Requirement("accelerator_memory_used_bytes", "bytes", used + FREE_MEMORY_SHARE * (total - used)))
    elif used is not None:
        found.append(Requirement("accelerator_memory_used_bytes", "bytes", used * MEMORY_GROWTH_LIMIT))
    return tuple(found)
