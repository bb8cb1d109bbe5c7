"""An INT8 build as people read it: what it costs in accuracy, what it gains, where that was measured."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from latencydoctor.model.builds import ModelBuild
from latencydoctor.percent import percent
from latencydoctor.report.foreign import clean

_MB = 1e6


def build_lines(build: ModelBuild) -> tuple[str, ...]:
    """The build in four lines or so, the loss first."""
    accuracy = (
        f"accuracy  top-1 {percent(build.top1_before_ratio, 2)} → {percent(build.top1_after_ratio, 2)} "
        f"on {build.questions:,} held-out questions: a drop of {percent(build.drop_ratio, 2)}, "
        f"at most {percent(build.drop_upper_ratio, 2)} (95 %; limit 1 %)"
    )
    sizes = f"{build.bytes_before / _MB:.1f} MB → {build.bytes_after / _MB:.1f} MB"
    where = f"one thread of {build.cpu or 'an unnamed CPU'}, {'with' if build.vnni else 'without'} VNNI"
    return (
        accuracy,
        f"size      {sizes}, {build.size_ratio:.1f} times smaller",
        *(
            f"time      batch {one.size}: {one.before_ms:.2f} ms → {one.after_ms:.2f} ms, {one.ratio:.2f} times faster"
            for one in build.times
        ),
        f"measured  {where}; another device gains more or less",
    )


def show_build(build: ModelBuild, console: Console) -> None:
    """The build, the candidates that were not kept, where it lies, and the next command."""
    console.print(Text(f"{build.precision}, {build.recipe}", style="bold"))
    for line in build_lines(build):
        console.print(clean(line), soft_wrap=True)
    for recipe, why in build.others:
        console.print(clean(f"not kept  {recipe}: {why}"), soft_wrap=True)
    console.print(clean(f"lies in   {build.folder}"), soft_wrap=True)
    console.print("NEXT      latencydoctor plan int8 -o plan.json")
