"""How a run of `apply` or `rollback` ended, on standard output as text or JSON, and its exit code."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import typer

from latencydoctor.cli import streams
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.options import Format
from latencydoctor.errors import KnownError

if TYPE_CHECKING:
    from latencydoctor.app.treat import Outcome
    from latencydoctor.model.remedy import NothingToDo


def report(outcome: Outcome, interrupted: ExitCode | None, form: Format, again: str = "") -> NoReturn:
    """What a run ended as, the journal's place, how to undo it (`again` names the target); the exit code.

    The code is the run's also where nobody can be told: 1 would say that nothing was changed.
    """
    from latencydoctor.report import machine

    try:
        if form is Format.JSON:
            streams.write(machine.dump({"run": replace(outcome, error=None)}))
        else:
            _show(outcome, again)
    except KnownError as error:
        streams.stderr().print(f"error: {error}; run {outcome.run_id} is {outcome.state.value}", soft_wrap=True)
    if outcome.error is not None:
        # The command in the hint is of a layer that does not know how the target was named.
        outcome.error.hint = outcome.error.hint.replace("--force`", f"--force{again}`")
    outcome.raise_error()
    raise typer.Exit(interrupted if outcome.interrupted and interrupted is not None else ExitCode.OK)


def nothing(found: NothingToDo, form: Format) -> NoReturn:
    """Why there is nothing to do; exit code 0."""
    from latencydoctor.report import change, machine

    if form is Format.JSON:
        streams.write(machine.dump({"nothing_to_do": found}))
    else:
        change.show_nothing(found, streams.stdout())
    raise typer.Exit(ExitCode.OK)


def _show(outcome: Outcome, again: str) -> None:
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
        undo = f"latencydoctor rollback {outcome.run_id}{again}"
        console.print(f"to undo it: {undo}", soft_wrap=True)
