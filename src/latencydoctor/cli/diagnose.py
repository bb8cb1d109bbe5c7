"""`latencydoctor diagnose`: what is wrong, since when, and how it is known."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latencydoctor.cli import streams, unfinished
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.options import (
    AtOption,
    BundleOption,
    ConfigOption,
    ContentOption,
    DeadlineOption,
    LogOption,
    MetricsUrlOption,
    ModelOption,
    PrometheusOption,
    ReportFormat,
    SelectorOption,
    SinceOption,
    TritonOption,
)

if TYPE_CHECKING:
    from latencydoctor.model.evidence import Collected


def diagnose(
    config: ConfigOption = None,
    prometheus: PrometheusOption = "",
    metrics_url: MetricsUrlOption = None,
    scrapes: Annotated[
        int | None, typer.Option("--scrapes", help="How often to read each page. \\[default: what the deadline allows]")
    ] = None,
    every: Annotated[str, typer.Option("--every", help="Time between two readings of a page. \\[default: 2s]")] = "",
    triton: TritonOption = "",
    torchserve: Annotated[str, typer.Option("--torchserve", metavar="URL", help="TorchServe's management API.")] = "",
    log: LogOption = None,
    selector: SelectorOption = "",
    model: ModelOption = "",
    at: AtOption = "",
    since: SinceOption = "30m",
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline",
            metavar="START/END|LENGTH@AGO",
            help="What to compare with if that range holds nothing from before the incident, as 30m@24h.",
        ),
    ] = "",
    deadline: DeadlineOption = "20s",
    playbook: Annotated[str, typer.Option("--playbook", help="Decision tree to walk.")] = "latency-spike",
    bundle: BundleOption = None,
    save: Annotated[Path | None, typer.Option("--save", help="Store all that was collected, redacted.")] = None,
    redact_prompts: Annotated[
        bool, typer.Option("--redact-prompts", help="Blank what users wrote in log lines, also in --save.")
    ] = False,
    series: Annotated[
        Path | None, typer.Option("--series", help="Write every collected series as CSV, one row a moment.")
    ] = None,
    form: Annotated[ReportFormat, typer.Option("--format", help="Form of the report.")] = ReportFormat.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the report to a file.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every finding, gap and query.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 also when an incident was found.")] = False,
    content: ContentOption = None,
) -> None:
    """Find the cause of an incident from Prometheus, Triton, TorchServe, NVML and logs, with its proof.

    Exits 0 when healthy, 3 when there is an incident (also without a known
    cause), 4 when it cannot be told.

    Examples:
      latencydoctor diagnose --prometheus http://localhost:9090
      latencydoctor diagnose --save incident.json.gz
      latencydoctor diagnose --bundle incident.json.gz
      latencydoctor diagnose --metrics-url http://localhost:8000/metrics

    The last one needs no Prometheus: it reads the page for 18 s.
    """
    from latencydoctor.cli import following, progress, wiring
    from latencydoctor.cli import output as out

    request = wiring.DiagnoseRequest(
        config=config,
        prometheus=prometheus,
        metrics_urls=tuple(metrics_url or ()),
        scrapes=scrapes,
        every=every,
        triton=triton,
        torchserve=torchserve,
        logs=tuple(str(path) for path in log or ()),
        selector=selector,
        model=model,
        at=at,
        since=since,
        baseline=baseline,
        deadline=deadline,
        playbook=playbook,
        bundle=bundle,
        content=content,
        redact_prompts=redact_prompts,
    )
    out.refuse_unwritable(output=output, save=save, series=series)
    unfinished.warn_of_configured(request)
    with progress.asking(deadline) if bundle is None else nullcontext():
        found = wiring.diagnose(request, streams.show_progress)
    _keep(found.collected, save, series)
    shown = found.diagnosis
    if form is ReportFormat.TEXT:
        # For whoever reads this screen; data and documents are the same wherever and however they were asked for.
        after = following.after_diagnosis(shown.next_command, request, saved=save, verbose=verbose)
        shown = replace(shown, next_command=after)
    out.diagnosis(shown, form.value, output, verbose=verbose)
    raise typer.Exit(ExitCode.OK if exit_zero else exit_code(found.diagnosis.incident.state.value))


def _keep(collected: Collected, save: Path | None, series: Path | None) -> None:
    from latencydoctor.cli import output, wiring
    from latencydoctor.evidence.table import to_csv

    if save is not None:
        wiring.save_bundle(save, collected)
        streams.stderr().print(f"saved what was collected to {save}", soft_wrap=True)
    if series is not None:
        output.document(to_csv(collected), series, "series")


def exit_code(state: str) -> ExitCode:
    """The exit code of an incident's state."""
    return {"healthy": ExitCode.OK, "incident": ExitCode.FOUND}.get(state, ExitCode.CANNOT_TELL)
