"""Use cases: apply a plan, roll a run back, recover an unfinished one. Planning is in `app/planning.py`.

Every run is one transaction: under the target's lock, journalled before each step, committed only after what was asked
for was read back, and verified afterwards. Whatever goes wrong in between ends in the complete old or the complete new
state, proven by digest, or says that it could not and leaves the journal for `runs recover`.

What a run ended as is an `Outcome`, with the error that names its exit code; only what was refused before anything
was touched is raised.
"""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.app.canary_journal import cut_off
from latencydoctor.app.canary_transaction import CanaryTransaction
from latencydoctor.app.planning import Asked, Basis, make_plan, refuse_unsettled
from latencydoctor.app.runs import Change, last_applied, read_run, refuse_unfinished, unfinished
from latencydoctor.app.transaction import Transaction
from latencydoctor.app.treatment import Outcome, Tools, never
from latencydoctor.app.warming import cache_of
from latencydoctor.errors import Held, Refused, UsageError
from latencydoctor.model.evidence import Window
from latencydoctor.model.remedy import NothingToDo, Plan, Reading, RunState, RunSummary, TargetState
from latencydoctor.remedy import guards
from latencydoctor.remedy.judge import as_judged, before_worse, check_of, values_before
from latencydoctor.remedy.plan import Texts, restored_text, values_of, warming_of
from latencydoctor.remedy.staging import SHARE_RATIO, NoCanary, Stage, is_staged, stage

__all__ = ["Asked", "Basis", "Outcome", "Tools", "apply", "make_plan", "never", "preview", "rollback", "unfinished"]


@dataclass(frozen=True, slots=True)
class Cautious:
    """What a person says of the canary: None leaves it to the fix and the target; a share only where there is one."""

    canary: bool | None = None
    share_ratio: float = SHARE_RATIO


BY_DEFAULT = Cautious()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The state now, the texts to write, and the canary that comes before, or why none does."""

    before: TargetState
    texts: Texts
    stage: Stage | NoCanary
    canary_text: str


def preview(plan: Plan, tools: Tools, cautious: Cautious = BY_DEFAULT) -> Prepared:
    """Everything that `apply` checks, without lock, journal or change: what a dry run does. Raises as `apply` does."""
    _refuse_busy(tools)
    return _prepared(plan, tools, cautious)


def _refuse_busy(tools: Tools) -> None:
    """Refused while another run goes on, or one was never finished.

    A run that goes on has no end yet either, so one counts as unfinished only if it still is when nobody has the lock.
    """
    tools.changer.refuse_held()
    open_runs = {run.run_id for run in unfinished(tools.history)}
    if open_runs:
        tools.changer.refuse_held()
        refuse_unfinished(tools.history, among=open_runs)


def apply(plan: Plan, tools: Tools, cautious: Cautious = BY_DEFAULT) -> Outcome:
    """Apply a plan, to a canary first where there can be one, and verify it.

    Raises Refused for an edited or stale plan, a lock held by another, an unfinished run; KnownError when the target
    cannot be read. Everything after the first step comes back as an outcome.
    """
    log = tools.history.start()
    with tools.changer.hold(log.run_id):
        refuse_unfinished(tools.history)
        ready = _prepared(plan, tools, cautious)
        before = ready.before
        change = Change(
            "apply", "", plan, before.settings_text, before.objects, ready.texts.settings, ready.canary_text
        )
        if isinstance(ready.stage, NoCanary) or tools.arms is None:
            transaction = Transaction(change, tools, log)
            transaction.begin()
            return transaction.write() or transaction.verify_and_end()
        earlier = cut_off(tools.history, plan.digest, tools.clock.now_s())
        staged = CanaryTransaction(change, tools, log, ready.stage, earlier)
        staged.begin()
        return staged.try_canary(tools.arms) or staged.write() or staged.verify_and_end()


def _prepared(plan: Plan, tools: Tools, cautious: Cautious) -> Prepared:
    """All that is to be done, made anew from the target's own texts; the plan only says which values to set."""
    before = tools.target.read()
    refuse_unsettled(before)
    fix = guards.check(plan, before)
    if fix.rebuilds:
        guards.check_build(plan, tools.builds.find() if tools.builds is not None else None)
    restored = restored_text(plan.operations, before)
    if is_staged(before) and restored is None:
        raise Refused(
            "the settings hold a canary already", hint="Decide on it first: take its section out of the settings."
        )
    if warming_of(plan) is not None:
        cache_of(tools)
    after = restored or tools.target.edited(before.settings_text, values_of(plan))
    texts = Texts(after, tools.target.preview(after))
    guards.check_shown(plan, before, texts)
    staged = _staged(stage(fix, plan, before, cautious.share_ratio), tools, cautious)
    if isinstance(staged, NoCanary):
        return Prepared(before, texts, staged, "")
    canary_text = tools.target.edited(before.settings_text, staged.values)
    tools.target.preview(canary_text)
    return Prepared(before, texts, staged, canary_text)


def _staged(found: Stage | NoCanary, tools: Tools, cautious: Cautious) -> Stage | NoCanary:
    """What is done of it: a person may do without, but not have a canary that cannot be, or that nobody can judge."""
    if cautious.canary is False:
        return NoCanary("it was asked to do without")
    if isinstance(found, Stage) and tools.arms is None:
        if tools.verifier is None:
            raise Refused(
                "a canary cannot be judged: no metrics source is configured",
                hint="Give --prometheus URL, or do without it: --no-canary.",
            )
        found = NoCanary("this target routes no share of its traffic")
    if cautious.canary and isinstance(found, NoCanary):
        raise Refused(f"there can be no canary: {found.reason}", hint="Without --canary the full change is verified.")
    return found


def rollback(tools: Tools, run_id: str = "", *, force: bool = False) -> Outcome | NothingToDo:
    """Bring back the state from before a run (default: the newest one in place), prove it, and measure again.

    Raises Held when the state before was measured worse than now and `force` is not given; Refused when the settings
    are not those of the run any more, UsageError when there is no such run.
    """
    log = tools.history.start()
    with tools.changer.hold(log.run_id):
        refuse_unfinished(tools.history)
        summary = _chosen(tools, run_id)
        run = read_run(tools.history, summary.run_id)
        if run.change is None:
            raise UsageError(f"run {summary.run_id} changed nothing", hint="List them with `latencydoctor runs`.")
        undone = run.change
        now = tools.target.read()
        warmed = warming_of(undone.plan) is not None and bool(cache_of(tools).tagged(run.run_id))
        if now.digest == undone.before_digest and not warmed:
            return NothingToDo(undone.plan.fix, f"the settings already are as they were before run {run.run_id}")
        if now.digest not in (undone.before_digest, undone.after_digest):
            raise Refused(
                f"the settings have been changed since run {run.run_id}, and a rollback would undo that too",
                hint="Look at the file, then put back by hand what should not stay.",
            )
        if not force:
            _hold_if_worse(undone.plan, tools, run.last_check)
        change = Change("rollback", run.run_id, undone.plan, now.settings_text, now.objects, undone.before_text)
        transaction = Transaction(change, tools, log)
        transaction.begin()
        failed = transaction.write(proof=undone.before_objects)
        return failed or transaction.measure_and_end()


def _chosen(tools: Tools, run_id: str) -> RunSummary:
    if not run_id:
        found = last_applied(tools.history)
        if found is None:
            raise UsageError("there is no applied run to roll back", hint="List runs with `latencydoctor runs`.")
        return found
    named = next((run for run in tools.history.list() if run.run_id == run_id), None)
    if named is None or named.kind != "apply":
        raise UsageError(f"there is no applied run {run_id}", hint="List runs with `latencydoctor runs`.")
    if named.state not in (RunState.APPLIED, RunState.KEPT, RunState.HELD):
        raise UsageError(f"run {run_id} is {named.state.value}: nothing of it is in place")
    return named


def _hold_if_worse(plan: Plan, tools: Tools, last_check: Reading | None) -> None:
    """Held when rolling back would make things worse, by what is measured now, else by the run's own last check."""
    now = _reading_now(plan, tools) or last_check
    worse = before_worse(values_before(plan), as_judged(now, plan)) if now else ""
    if worse:
        raise Held(
            f"the state before was measured worse than now: {worse}",
            hint="Nothing was changed. `latencydoctor rollback --force` brings it back all the same.",
        )


def _reading_now(plan: Plan, tools: Tools) -> Reading | None:
    """What the last window shows, None where the judge would not call it conclusive."""
    if tools.verifier is None:
        return None
    end_s = tools.clock.now_s() - tools.schedule.lag_s
    reading = tools.verifier.read(Window(end_s - tools.schedule.window_s, end_s))
    return reading if check_of(reading, plan, tools.policy, end_s).conclusive else None
