"""The fix `int8`: serve the model in INT8, as a version of its own that some sessions try first.

It shortens what an item costs, so it helps where the device computes, and hardly where it waits for its host. The build
was measured when it was made; one that loses 1 % of top-1 or more, by its upper 95 % bound, is never planned.
"""

from __future__ import annotations

from collections.abc import Mapping

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.builds import MAX_DROP_RATIO, MIN_QUESTIONS, ModelBuild
from latencydoctor.model.remedy import NothingToDo, Operation, OperationKind, TargetState
from latencydoctor.percent import percent
from latencydoctor.remedy.change import Change

FIX_ID = "int8"
PRECISION = "inference.precision"
BUILD = "INT8 build"
"""What a rebuilt model is called in a plan."""

ACCELERATOR = "accelerator"
MEASURED_ON = "cpu"
"""The accelerator on which a build's times are measured; another one's are not known before it is tried."""


def propose(state: TargetState, build: ModelBuild | None, measured: Mapping[str, float]) -> Change | NothingToDo:
    """The version to serve, with what it was measured to be. Refused for a build that loses too much."""
    if state.in_use(PRECISION) == "int8":
        return NothingToDo(FIX_ID, "the model is served in INT8 already")
    if build is None:
        raise KnownError("this target has no INT8 build to serve", hint="It is there for the bundled stack only.")
    refuse_lossy(build)
    return Change(
        values=((PRECISION, "int8"),),
        side_effects=_side_effects(build),
        operations=(Operation(OperationKind.SERVE_BUILD, BUILD, "digest", "", build.digest),),
        grounds=_grounds(build),
        speedup=_speedup(state, build, measured),
    )


def refuse_lossy(build: ModelBuild) -> None:
    """Refused when the build may lose 1 % of top-1 or more, or was measured on too little."""
    if build.questions < MIN_QUESTIONS:
        raise Refused(
            f"the INT8 build was measured on {build.questions} questions, {MIN_QUESTIONS} are needed",
            hint="Build it again: `latencydoctor quantise --again`.",
        )
    if build.drop_upper_ratio >= MAX_DROP_RATIO:
        raise Refused(
            f"the INT8 build loses {percent(build.drop_ratio, 2)} of top-1, "
            f"at most {percent(build.drop_upper_ratio, 2)} (95 %); {percent(MAX_DROP_RATIO, 0)} is too much",
            hint="Stay with fp32.",
        )


def _speedup(state: TargetState, build: ModelBuild, measured: Mapping[str, float]) -> float | None:
    """How many times faster a batch of the usual size is; None on a device that the build was not measured on."""
    if state.setting(ACCELERATOR) != MEASURED_ON or not build.times:
        return None
    size = measured.get("batch_size_mean", 1.0)
    return min(build.times, key=lambda one: abs(one.size - size)).ratio


def _grounds(build: ModelBuild) -> tuple[str, ...]:
    alone = build.times[0] if build.times else None
    timed = f", {alone.ratio:.2f} times faster at batch {alone.size}" if alone else ""
    where = f"one thread of {build.cpu or 'an unnamed CPU'} {'with' if build.vnni else 'without'} VNNI"
    accuracy = (
        f"Top-1 on {build.questions:,} held-out questions: {percent(build.top1_before_ratio, 2)} before, "
        f"{percent(build.top1_after_ratio, 2)} after; a drop of {percent(build.drop_ratio, 2)}, "
        f"at most {percent(build.drop_upper_ratio, 2)} "
        "(upper 95 % bound)."
    )
    sizes = f"{build.bytes_before / 1e6:.1f} MB before, {build.bytes_after / 1e6:.1f} MB after"
    return (
        accuracy,
        f"{sizes} ({build.size_ratio:.1f} times smaller){timed}, measured on {where}.",
        f"The build is {build.recipe}, {build.digest[:16]}, in {build.folder}.",
    )


def _side_effects(build: ModelBuild) -> tuple[str, ...]:
    placed = sum(size for _, size, _ in build.files) / 1e6
    return (
        f"A version's folder of {placed:.1f} MB is put beside the one before; a rollback takes it out again.",
        "Both versions are in the accelerator's memory while the new one is tried and while the model is loaded.",
        "Answers cached before are not used any more: entries are kept by version, so the hit ratio starts from zero.",
        f"Up to {percent(build.drop_upper_ratio, 2)} of the questions may get another answer that is worse.",
    )
