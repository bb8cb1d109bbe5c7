"""A canary as people read it: what is tried first, each window beside its peers, and the judge's word."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from latencydoctor.model.canary import CanaryCheck, CanaryKind, CanaryTrial
from latencydoctor.model.remedy import Decision
from latencydoctor.remedy.canary import CanaryPolicy
from latencydoctor.remedy.staging import NoCanary, Stage
from latencydoctor.report.foreign import clean
from latencydoctor.report.units import amount, clock

TITLES = ("window", "p99", "peers", "times", "errors", "peers", "requests")

_KINDS = {CanaryKind.REPLICA: "one replica", CanaryKind.VERSION: "one version of the model"}


def show_stage(stage: Stage | NoCanary, console: Console) -> None:
    """What will try the change first, or why nothing does."""
    if isinstance(stage, NoCanary):
        console.print(Text(f"no canary: {clean(stage.reason)}; the full change is verified"))
        return
    policy = CanaryPolicy()
    told = f"{clean(stage.told)}, tries it first and is judged beside its peers"
    console.print(Text(f"canary: {told}, at least {policy.windows_to_promote} windows"))


def show_trial(trial: CanaryTrial, console: Console) -> None:
    """Every window and the decision."""
    who = f"{_KINDS.get(trial.kind, '')}, {amount(trial.share_ratio, 'ratio')} of the sessions"
    console.print(Text(f"canary: {who}; times in UTC"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in TITLES:
        table.add_column(title, no_wrap=True, justify="left" if title == "window" else "right")
    for check in trial.checks:
        table.add_row(*row(check))
    console.print(table)
    for note in dict.fromkeys(check.note for check in trial.checks if check.note):
        console.print(Text(f"not conclusive: {clean(note)}", style="yellow"))
    style = "green" if trial.decision is Decision.KEEP else "red" if trial.decision is Decision.ROLL_BACK else "yellow"
    console.print(Text(f"{word(trial)}: {clean(trial.reason)}", style=f"bold {style}"))


def word(trial: CanaryTrial) -> str:
    """The decision in the words for a canary."""
    return "promote" if trial.decision is Decision.KEEP else trial.decision.value


def row(check: CanaryCheck) -> tuple[str, ...]:
    """One window: its end, then the canary's figures and its peers'. What is absent is a dash."""
    canary, baseline = check.canary, check.baseline
    times = "-"
    if canary.p99_ms is not None and baseline.p99_ms:
        times = f"{canary.p99_ms / baseline.p99_ms:.2f}"
    return (
        clock(check.end_s),
        amount(canary.p99_ms, "ms"),
        amount(baseline.p99_ms, "ms"),
        times,
        amount(canary.error_ratio, "ratio"),
        amount(baseline.error_ratio, "ratio"),
        "-" if canary.requests is None else f"{canary.requests:,.0f}",
    )
