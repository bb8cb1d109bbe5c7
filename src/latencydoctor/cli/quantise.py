"""`latencydoctor quantise`: the bundled encoder in INT8, measured, refused where it loses too much."""

from __future__ import annotations

from typing import Annotated

import typer

from latencydoctor.cli import streams
from latencydoctor.cli.options import Format, FormatOption


def quantise(
    again: Annotated[bool, typer.Option("--again", help="Build it again although it is there.")] = False,
    engine: Annotated[bool, typer.Option("--engine", help="Build a TensorRT engine instead (no GPU needed).")] = False,
    capability: Annotated[
        str, typer.Option("--capability", metavar="X.Y", help="With --engine: compute capability of the GPU to run it.")
    ] = "8.9",
    python: Annotated[
        str, typer.Option("--python", metavar="FILE", help="With --engine: the interpreter that has TensorRT.")
    ] = "",
    form: FormatOption = Format.TEXT,
) -> None:
    """Rebuild the bundled encoder in INT8 and measure it; `plan int8` then has something to plan with.

    Builds candidates on the FAQ's index questions, measures each on its
    held-out ones, and keeps the fastest whose top-1 drops by less than 1 % with
    95 % confidence. Takes a minute or two of one core; writes into this user's
    cache only. Exits 1 when no candidate passes.

    Example:
      latencydoctor quantise && latencydoctor plan int8 -o plan.json
    """
    from latencydoctor.stack import host

    host.refuse_unsupported(host.this_host())
    from latencydoctor.stack.quantise import shelf

    if engine:
        _show_engine(shelf.make_engine(_tell, capability, python), form)
        return
    from latencydoctor.cli import targets_wiring
    from latencydoctor.report import machine, quantised

    found = targets_wiring.read_build(shelf.make(_tell, again=again))
    if form is Format.JSON:
        streams.write(machine.dump({"build": found}))
        return
    quantised.show_build(found, streams.stdout())


def _show_engine(built: dict[str, object], form: Format) -> None:
    import json

    from latencydoctor.report.foreign import clean

    if form is Format.JSON:
        streams.write(json.dumps(built, sort_keys=True))
        return
    for name, value in built.items():
        streams.stdout().print(clean(f"{name:<24}{value}"), soft_wrap=True)


def _tell(line: str) -> None:
    from latencydoctor.report.foreign import clean

    streams.stderr().print(f"quantise: {clean(line)}", soft_wrap=True)
