"""How a run of `apply` or `rollback` ended, on standard output as text or JSON, and its exit code."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from latencydoctor.cli import streams
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.options import Format

if TYPE_CHECKING:
    from latencydoctor.app.treat import Outcome


def report(outcome: Outcome, interrupted: ExitCode | None, form: Format = Format.TEXT, named_target: str = "") -> None:
    """What a run ended as, the journal's place, the next command (for the target as it was named); the exit code."""
    from latencydoctor.report import machine

    if form is Format.JSON:
        streams.write(machine.dump({"run": replace(outcome, error=None)}))
    else:
        _show(outcome, named_target)
    outcome.raise_error()
    raise typer.Exit(interrupted if outcome.interrupted and interrupted is not None else ExitCode.OK)


def on_target(named: str) -> str:
    """The option that names the target again, as a shell takes it; empty where the configuration names it."""
    return f" --target {shlex.quote(named)}" if named else ""


def _show(outcome: Outcome, named_target: str) -> None:
    from latencydoctor.report import change
    from latencydoctor.report.canary import show_trial
    from latencydoctor.report.foreign import clean

    console = streams.stdout()
    if outcome.trial is not None:
        show_trial(outcome.trial, console)
    if outcome.verification is not None:
        change.show_verification(outcome.verification, console)
        change.show_reached(outcome.verification, console)
    if outcome.remeasured is not None:
        console.print(change.check_line(outcome.remeasured))
    console.print(f"run {outcome.run_id} {outcome.state.value}: {clean(outcome.reason)}", soft_wrap=True)
    console.print(f"journal {outcome.journal}", soft_wrap=True)
    if outcome.state.value in ("kept", "held", "applied") and outcome.kind == "apply":
        undo = f"latencydoctor rollback {outcome.run_id}{on_target(named_target)}"
        console.print(f"to undo it: {undo}", soft_wrap=True)
