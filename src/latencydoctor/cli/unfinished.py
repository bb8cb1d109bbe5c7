"""Warns of runs without an end, on stderr: commands that only look touch nothing, not even the lock that would tell
who is at work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from latencydoctor.cli import streams
from latencydoctor.errors import LatencyDoctorError

if TYPE_CHECKING:
    from latencydoctor.app.ports import RunHistory
    from latencydoctor.cli.sources_wiring import DiagnoseRequest


def warn(history: RunHistory) -> None:
    """One line for each run of this target that never ended."""
    from latencydoctor.app.runs import unfinished
    from latencydoctor.report.foreign import clean

    for run in unfinished(history):
        streams.stderr().print(
            f"warning: run {run.run_id} ({run.kind} {clean(run.fix)}) has no end; unless it is still at work, "
            "settle it with `latencydoctor runs recover`",
            soft_wrap=True,
        )


def warn_of_configured(request: DiagnoseRequest) -> None:
    """The same for the targets that the configuration names; a stored bundle says nothing of them."""
    from latencydoctor.cli import targets_wiring, wiring

    if request.bundle is not None:
        return
    configuration = wiring.load_configuration(request)
    try:
        folders = targets_wiring.journals(configuration)
    except LatencyDoctorError:  # a target that cannot be reached is no reason not to look at the rest
        return
    for folder in folders:
        _warn_of(folder)


def warn_in(state: Path) -> None:
    """The same for a stack's state folder."""
    _warn_of(state / "journal")


def _warn_of(folder: Path) -> None:
    """Journals that cannot be read are no reason not to look at the rest."""
    from latencydoctor.cli import wiring
    from latencydoctor.report.foreign import clean

    history = wiring.history_in(folder)
    if history is None:
        return
    try:
        warn(history)
    except LatencyDoctorError as error:
        streams.stderr().print(f"warning: {clean(error.message)}", soft_wrap=True)
