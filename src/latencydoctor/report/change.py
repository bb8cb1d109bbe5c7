"""Plans, runs and their outcomes as people read them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from latencydoctor.model.remedy import Check, NothingToDo, Plan, RunSummary, Verification
from latencydoctor.report.foreign import clean
from latencydoctor.report.listing import show_lines
from latencydoctor.report.reached import batches_line, sizes_line, why_outside
from latencydoctor.report.units import amount, clock, instant, interval, told_apart
from latencydoctor.report.wording import name

_AIMS = ("vip_p99_ms", "e2e_p99_ms")
"""What a fix is there to lower: where VIP requests go first, theirs."""

MOST_SIZES = 8
"""A batcher that fills batches by chance runs dozens of sizes; these say where most of the executions lie."""


def show_plan(plan: Plan, console: Console) -> None:
    """What would change, what it is expected to do, what it may cost, and what verification will demand."""
    head = Text(f"{plan.fix}: {clean(plan.title)}", style="bold")
    if plan.simulated:
        head.append("  SIMULATED ACCELERATOR", style="bold magenta")
    console.print(head)
    console.print(Text(f"target {clean(plan.target)}, {plan.blast_radius}", style="dim"))
    for line in plan.justification:
        console.print(Text(f"because {clean(line)}"))
    console.print()
    _diff("settings", plan.diff, console)
    _diff("compiled server configuration", plan.compiled_diff, console)
    _predictions(plan, console)
    if why := no_gain(plan):
        console.print(Text(why, style="bold yellow"))
    for effect in plan.side_effects:
        console.print(Text(f"side effect: {clean(effect)}", style="yellow"))
    demands = ", ".join(f"{name(one.signal)} ≤ {amount(one.at_most, one.unit)}" for one in plan.requirements)
    console.print(Text(f"verification will demand: {demands or 'nothing'}"))


def show_nothing(nothing: NothingToDo, console: Console) -> None:
    """Why there is nothing to do."""
    console.print(Text(f"nothing to do for {nothing.fix}: {clean(nothing.reason)}", style="green"))
    for note in nothing.notes:
        console.print(Text(f"note: {clean(note)}"))


def _diff(title: str, text: str, console: Console) -> None:
    console.print(Text(title, style="bold"))
    if not text:
        console.print("  no difference")
    for line in text.splitlines():
        style = "green" if line.startswith("+") else "red" if line.startswith("-") else ""
        # Spaces mean something in a settings file, so lines are cleaned without folding them.
        console.print(Text("  " + clean(line), style=style))
    console.print()


def _predictions(plan: Plan, console: Console) -> None:
    """Each figure; how several in a row were reached is said once, below the last of them."""
    following = [*(one.method for one in plan.predictions), None][1:]
    for one, next_method in zip(plan.predictions, following, strict=True):
        if one.after is None:
            console.print(Text(f"predicted {name(one.signal)}: not computed, {clean(one.method)}", style="dim"))
            continue
        between = interval(one.low, one.high, one.unit)
        within = f" ({between})" if between else ""
        before = f"{amount(one.before, one.unit)} → " if one.before is not None else ""
        console.print(
            Text(f"predicted {name(one.signal)}: {before}{amount(one.after, one.unit)}{within}", style="cyan")
        )
        if one.method != next_method:
            console.print(Text(f"  by {clean(one.method)}", style="dim"))


def no_gain(plan: Plan) -> str:
    """That what the plan is for is not expected to get better, in one sentence; empty where it is, or is not known."""
    aims = [one for signal in _AIMS for one in plan.predictions if one.signal == signal]
    for one in aims[:1]:
        if one.before is not None and one.after is not None and one.after >= one.before:
            before, after = told_apart(one.before, one.after, one.unit)
            return f"NO GAIN PREDICTED: {name(one.signal)} is not expected to fall ({before} → {after})"
    return ""


def show_verification(verification: Verification, console: Console) -> None:
    """Every check and the decision."""
    for check in verification.checks:
        console.print(check_line(check))
    console.print(Text(f"{verification.decision.value}: {clean(verification.reason)}", style="bold"))


def show_reached(verification: Verification, console: Console) -> None:
    """Each predicted effect beside what verification measured of it, and the batches that ran since the change.

    Nothing for what no check measures; what could not be predicted is said where it was measured.
    """
    for one in verification.reached:
        if one.measured is None:
            continue
        expected = "not predicted" if one.predicted is None else f"predicted {amount(one.predicted, one.unit)}"
        line = f"{name(one.signal)}: {expected}, reached {amount(one.measured, one.unit)}"
        place = "" if one.within is None else ", within the interval" if one.within else ", outside the interval"
        console.print(Text(f"{line}{place}", style="cyan"))
    if why := why_outside(verification.reached):
        console.print(Text(f"why outside: {why}", style="cyan"))
    if verification.batches is not None:
        console.print(Text(batches_line(verification.batches), style="cyan"))
        console.print(Text(f"  {sizes_line(verification.batches, MOST_SIZES)}", style="dim"))


def check_line(check: Check) -> Text:
    """One check on one line."""
    word, style = ("passed", "green") if check.passed else ("failed", "red")
    if not check.conclusive:
        word, style = "not conclusive", "yellow"
    line = Text(f"{clock(check.at_s)} UTC  {word:<14}", style=style)
    values = (
        f"p99 {amount(check.p99_ms, 'ms')}",
        f"errors {amount(check.error_ratio, 'ratio')}",
        *by_priority(check),
        f"cache hits {amount(check.hit_ratio, 'ratio')}",
        f"memory {amount(check.memory_bytes, 'bytes')}",
        amount(check.requests, "requests"),
    )
    line.append(f"  {', '.join(values)}", style="default")
    if check.note:
        line.append(f"  {clean(check.note)}", style="dim")
    return line


def by_priority(check: Check) -> tuple[str, ...]:
    """What VIP requests saw and how many were turned away, where some were."""
    also = dict(check.also)
    if not also.get("shed_ratio"):
        return ()
    vip = also.get("vip_p99_ms")
    return (f"of them turned away {amount(also['shed_ratio'], 'ratio')}", f"VIP p99 {amount(vip, 'ms')}")


def show_runs(runs: Iterable[RunSummary], console: Console) -> None:
    """Runs, newest first; names are whole, since `rollback` and `runs show` are given them."""
    rows = [
        (
            run.run_id,
            f"{run.state.value}{', DAMAGED' if run.damage else ''}",
            run.fix,
            instant(run.started_s),
            f"rollback of {run.of}" if run.of else run.kind,
        )
        for run in runs
    ]
    show_lines(rows, console, head=("run", "state", "fix", "started (UTC)", "what"))
