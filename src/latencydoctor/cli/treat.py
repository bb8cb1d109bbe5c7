"""`latencydoctor plan | apply | rollback | runs`: a change as a transaction."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latencydoctor.cli import outcome as outcome_page
from latencydoctor.cli import streams, unfinished
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.options import ConfigOption, ContentOption, Format, FormatOption

if TYPE_CHECKING:
    from latencydoctor.app.ports import Progress
    from latencydoctor.cli.wiring import DiagnoseRequest

runs_app = typer.Typer(name="runs", help="List journalled runs, show one, recover what was interrupted.")

TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="What to change: a stack's state folder, triton:REPOSITORY@HOST:PORT/MODEL, "
        "or torchserve:URL/models/MODEL. "
        "\\[default: the configuration's]",
    ),
]
PrometheusOption = Annotated[
    str, typer.Option("--prometheus", metavar="URL", help="Prometheus to plan from and verify on.")
]
SelectorOption = Annotated[str, typer.Option("--selector", help="Label matchers that pick the service.")]
ModelOption = Annotated[str, typer.Option("--model", help="The model, when there are several.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; required without a terminal.")]


def _request(
    config: Path | None,
    content: Path | None,
    prometheus: str = "",
    selector: str = "",
    model: str = "",
    bundle: Path | None = None,
) -> DiagnoseRequest:
    from latencydoctor.cli.wiring import DiagnoseRequest

    return DiagnoseRequest(
        config=config, content=content, prometheus=prometheus, selector=selector, model=model, bundle=bundle
    )


def plan(
    fix: Annotated[
        str, typer.Argument(help="Which fix: batch-floor, cache-warmup, int8, scale-out, revert-change, vip-priority.")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the plan to a file for `apply`.")] = None,
    config: ConfigOption = None,
    target: TargetOption = "",
    prometheus: PrometheusOption = "",
    selector: SelectorOption = "",
    model: ModelOption = "",
    bundle: Annotated[
        Path | None, typer.Option("--bundle", help="Plan from what `diagnose --save` stored, not from fresh figures.")
    ] = None,
    form: FormatOption = Format.TEXT,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit 3 when there is something to change.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where what was found does not speak for the fix.")
    ] = False,
    content: ContentOption = None,
) -> None:
    """Show what a fix would change and what it is expected to do. Changes nothing.

    Reads the settings in effect and, where a Prometheus is configured, today's
    figures; prints the diff of the settings and of the compiled server
    configuration. With nothing to change it says so and exits 0.

    Example:
      latencydoctor plan batch-floor -o plan.json && latencydoctor apply plan.json
    """
    from latencydoctor.app.treat import Asked, make_plan
    from latencydoctor.cli import following, wiring
    from latencydoctor.cli import output as out
    from latencydoctor.model.remedy import NothingToDo
    from latencydoctor.remedy import catalog
    from latencydoctor.remedy.plan_file import plan_to_json
    from latencydoctor.report import change

    catalog.find(fix)
    out.refuse_unwritable(output=output)
    request = _request(config, content, prometheus, selector, model, bundle)
    treatment = wiring.treatment(request, target, wiring.silent, measures=False)
    unfinished.warn(treatment.tools.history)
    asked = Asked(cache=treatment.tools.cache, force=force, builds=treatment.tools.builds)
    planned = make_plan(fix, treatment.target, wiring.SystemClock(), treatment.basis(), asked)
    if isinstance(planned, NothingToDo):
        outcome_page.nothing(planned, form)
    if output is not None:
        out.document(plan_to_json(planned), output)
    if form is Format.JSON:
        streams.write(plan_to_json(planned))
    else:
        change.show_plan(planned, streams.stdout())
    if output is not None:
        after = f"latencydoctor apply {shlex.quote(str(output))}{following.of_change(request, target)}"
        streams.stderr().print(f"plan written to {output}; next: {after}", soft_wrap=True)
    raise typer.Exit(ExitCode.FOUND if detailed_exitcode else ExitCode.OK)


def apply(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="The file that `plan -o` wrote.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and show the plan, then stop.")] = False,
    yes: YesOption = False,
    canary: Annotated[
        bool | None,
        typer.Option(
            "--canary/--no-canary",
            help="Try it on a part of the traffic first, beside its peers. \\[default: where it is possible]",
            show_default=False,
        ),
    ] = None,
    canary_share: Annotated[
        float,
        typer.Option("--canary-share", metavar="SHARE", min=0.01, max=0.5, help="Of the sessions, for a version."),
    ] = 0.2,
    form: FormatOption = Format.TEXT,
    config: ConfigOption = None,
    target: TargetOption = "",
    prometheus: PrometheusOption = "",
    selector: SelectorOption = "",
    model: ModelOption = "",
    content: ContentOption = None,
) -> None:
    """Apply a plan as a transaction: journalled, read back, verified on fresh metrics, rolled back if it does not hold.

    With several replicas one of them tries a change of batching first (a
    canary) and is judged beside its peers; until it is promoted nothing is
    committed.

    Exits 0 when the change is in place and verified, 4 when it is held for a
    human, 5 when it was refused (edited or stale plan, locked, not approved), 6
    when it was rolled back, 7 when the rollback failed.

    Example:
      latencydoctor apply plan.json --prometheus http://prometheus:9090
    """
    from latencydoctor.app import treat
    from latencydoctor.cli import following, wiring
    from latencydoctor.cli.approval import ask, reader
    from latencydoctor.cli.interrupts import Interrupts
    from latencydoctor.remedy.plan_file import plan_from_json
    from latencydoctor.report import change
    from latencydoctor.report.canary import show_stage

    chosen = plan_from_json(reader(plan_file))
    interrupts = Interrupts()
    request = _request(config, content, prometheus, selector, model)
    treatment = wiring.treatment(request, target, _tell, interrupts.asked)
    cautious = treat.Cautious(canary, canary_share)
    ready = treat.preview(chosen, treatment.tools, cautious)
    # What is approved must be seen; standard output is the document where that is JSON.
    console = streams.stderr() if form is Format.JSON else streams.stdout()
    change.show_plan(chosen, console)
    show_stage(ready.stage, console)
    if dry_run:
        streams.stderr().print("dry run: nothing was changed")
        raise typer.Exit(ExitCode.OK)
    ask("Apply this plan?", yes=yes)
    with interrupts:
        outcome = treat.apply(chosen, treatment.tools, cautious)
    outcome_page.report(outcome, interrupts.code, form, following.of_change(request, target))


def rollback(
    run_id: Annotated[str, typer.Argument(metavar="[RUN]", help="Which run. \\[default: the newest in place]")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Also when the state before was measured worse than now.")
    ] = False,
    yes: YesOption = False,
    form: FormatOption = Format.TEXT,
    config: ConfigOption = None,
    target: TargetOption = "",
    prometheus: PrometheusOption = "",
    selector: SelectorOption = "",
    model: ModelOption = "",
    content: ContentOption = None,
) -> None:
    """Bring back the state from before a run, prove it by digest, and measure again.

    Exits 0 when the state from before is there (or nothing is to be rolled
    back), 4 when it was measured worse than now, 5 when it was refused, 7 when
    it failed.

    Examples:
      latencydoctor rollback
      latencydoctor rollback RUN --yes --format json
    """
    from latencydoctor.app import treat
    from latencydoctor.cli import wiring
    from latencydoctor.cli.approval import ask
    from latencydoctor.cli.interrupts import Interrupts
    from latencydoctor.model.remedy import NothingToDo

    interrupts = Interrupts()
    request = _request(config, content, prometheus, selector, model)
    treatment = wiring.treatment(request, target, _tell, interrupts.asked)
    ask(f"Roll back {run_id or 'the newest run'}?", yes=yes)
    with interrupts:
        outcome = treat.rollback(treatment.tools, run_id, force=force)
    if isinstance(outcome, NothingToDo):
        outcome_page.nothing(outcome, form)
    outcome_page.report(outcome, interrupts.code, form)


@runs_app.callback(invoke_without_command=True)
def runs(
    context: typer.Context,
    config: ConfigOption = None,
    target: TargetOption = "",
    form: FormatOption = Format.TEXT,
) -> None:
    """List journalled runs, newest first; a run without an end is open and blocks further changes."""
    from latencydoctor.cli import wiring
    from latencydoctor.report import change, machine

    if context.invoked_subcommand is not None:
        return
    tools = wiring.treatment(_request(config, None), target, wiring.silent, measures=False).tools
    unfinished.warn(tools.history)
    found = tools.history.list()
    if form is Format.JSON:
        streams.write(machine.dump({"runs": found}))
    elif not found:
        streams.stdout().print("no runs yet")
    else:
        change.show_runs(found, streams.stdout())


@runs_app.command("show")
def show(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's name, as `runs` lists it.")],
    config: ConfigOption = None,
    target: TargetOption = "",
    markdown: Annotated[bool, typer.Option("--markdown", help="As a timeline for a postmortem.")] = False,
) -> None:
    """Every journal record of one run, as JSON lines; the chain is checked first."""
    import json

    from latencydoctor.cli import wiring
    from latencydoctor.report import machine, markdown_run

    history = wiring.treatment(_request(config, None), target, wiring.silent, measures=False).tools.history
    if markdown:
        streams.write(markdown_run.timeline(run_id, history.entries(run_id)))
        return
    for entry in history.entries(run_id):
        streams.write(json.dumps(machine.plain(entry), sort_keys=True, ensure_ascii=False))


@runs_app.command("recover")
def recover(
    accept: Annotated[
        bool, typer.Option("--accept", help="Close unfinished runs with the settings as they are now.")
    ] = False,
    yes: YesOption = False,
    config: ConfigOption = None,
    target: TargetOption = "",
) -> None:
    """Finish what a killed run left: undo what was not committed, complete what was. Safe to repeat."""
    from latencydoctor.app import recovery
    from latencydoctor.cli import wiring
    from latencydoctor.cli.approval import ask
    from latencydoctor.report.foreign import clean

    tools = wiring.treatment(_request(config, None), target, _tell, measures=False).tools
    pending = recovery.describe(tools)
    if not pending:
        streams.stdout().print("no unfinished run: nothing to recover")
        raise typer.Exit(ExitCode.OK)
    for run, phase in pending:
        streams.stderr().print(f"run {run.run_id} ({run.kind} {clean(run.fix)}): {phase}", soft_wrap=True)
    ask("Recover?", yes=yes)
    outcomes = recovery.recover(tools, accept=accept)
    for outcome in outcomes:
        streams.stdout().print(f"run {outcome.run_id}: {outcome.state.value}, {clean(outcome.reason)}", soft_wrap=True)
    for outcome in outcomes:
        outcome.raise_error()


def _tell(progress: Progress) -> None:
    from latencydoctor.report.foreign import clean

    streams.stderr().print(f"{progress.phase}: {clean(progress.text)}", soft_wrap=True)
