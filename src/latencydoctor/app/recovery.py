"""Use case: finish what a killed run left. Undoes what was not committed, completes what was; killable itself.

Each step is decided from the journal and the target as found, and doing it twice does no harm: a recovery that dies is
simply run again.
"""

from __future__ import annotations

from latencydoctor.app.runs import Phase, Run, read_run, unfinished
from latencydoctor.app.transaction import Transaction
from latencydoctor.app.treatment import Outcome, Tools
from latencydoctor.model.remedy import RunEvent, RunState, RunSummary


def describe(tools: Tools) -> tuple[tuple[RunSummary, str], ...]:
    """Each unfinished run and what recovery would do with it, for the question asked before; touches nothing."""
    return tuple((run, read_run(tools.history, run.run_id).phase.value) for run in unfinished(tools.history))


def recover(tools: Tools, *, accept: bool = False) -> tuple[Outcome, ...]:
    """Finish every unfinished run, the oldest last, so that the newest intent is settled first.

    `accept` closes them with the settings as they are, for a state that a person has put right by hand. Raises Refused
    while another process holds the target, KnownError when a journal is damaged.
    """
    with tools.changer.hold("recovery"):
        runs = [read_run(tools.history, run.run_id) for run in unfinished(tools.history)]
        return tuple(_recover(run, tools, accept=accept) for run in runs)


def _recover(run: Run, tools: Tools, *, accept: bool) -> Outcome:
    log = tools.history.resume(run.run_id)
    log.record(RunEvent.RECOVERY, phase=run.phase, accept=accept)
    if run.change is None:
        log.record(RunEvent.ENDED, state=RunState.UNDONE, reason="nothing was done", digest="")
        return Outcome(run.run_id, log.path, "apply", RunState.UNDONE, "nothing was done")
    transaction = Transaction(run.change, tools, log)
    if accept:
        return transaction.accept()
    if run.phase is Phase.NOTHING:
        return transaction.end_as(RunState.UNDONE, "nothing was done")
    if run.phase is Phase.COMPLETE:
        is_rollback = run.change.kind == "rollback"
        return transaction.confirm(ended=RunState.ROLLED_BACK if is_rollback else RunState.APPLIED)
    failed = transaction.undo("recovery")
    if failed is not None:
        return transaction.fail(failed)
    if run.committed:
        return transaction.end_as(RunState.ROLLED_BACK, "the rollback that had been decided was finished by recovery")
    return transaction.end_as(RunState.UNDONE, "undone by recovery: it was not committed")
