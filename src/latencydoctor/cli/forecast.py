"""`latencydoctor forecast`: what other settings or another load would do, before anything is changed."""

from __future__ import annotations

import io
import re
from contextlib import nullcontext
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
    Format,
    FormatOption,
    MetricsUrlOption,
    ModelOption,
    PrometheusOption,
    SelectorOption,
    SinceOption,
    TritonOption,
)
from latencydoctor.errors import CannotTell, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from latencydoctor.app.forecasting import Forecast
    from latencydoctor.cli.wiring import DiagnoseRequest
    from latencydoctor.forecast.situation import Situation

_SERVICE_TIME = re.compile(r"\s*(\d+(?:\.\d+)?m?s)\s*\+\s*(\d+(?:\.\d+)?m?s)\s*", re.ASCII)
_MOST = 1e9
_FILE_WIDTH = 120


def forecast(
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting as it would be; repeatable. See above."),
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option("--rate", metavar="RPS", help="Requests/s; repeatable. \\[default: the measured rate]"),
    ] = None,
    times: Annotated[float, typer.Option("--times", help="So many times that rate.")] = 1.0,
    sessions: Annotated[float | None, typer.Option("--sessions", help="The load as concurrent sessions.")] = None,
    per_session: Annotated[
        float | None, typer.Option("--requests-per-session-per-minute", metavar="N", help="What each of them asks.")
    ] = None,
    slo: Annotated[
        str, typer.Option("--slo", help="Ask for the replicas that keep p99 below this, as 1s or 500ms.")
    ] = "",
    max_load: Annotated[
        float, typer.Option("--max-load", help="How far a replica may be loaded when replicas are asked for, 0 to 1.")
    ] = 0.85,
    vip_share: Annotated[
        float, typer.Option("--vip-share", help="Two priority levels, this share of requests on the first, 0 to 1.")
    ] = 0.0,
    replicas: Annotated[int, typer.Option("--replicas", help="Servers that share the measured rate.")] = 1,
    service_time: Annotated[
        str,
        typer.Option(
            "--service-time", metavar="FIXED+EACH", help="What an execution takes, as 20ms+1ms: needs no source."
        ),
    ] = "",
    config: ConfigOption = None,
    prometheus: PrometheusOption = "",
    metrics_url: MetricsUrlOption = None,
    triton: TritonOption = "",
    selector: SelectorOption = "",
    model: ModelOption = "",
    at: AtOption = "",
    since: SinceOption = "30m",
    deadline: DeadlineOption = "20s",
    bundle: BundleOption = None,
    form: FormatOption = Format.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the forecast to a file.")] = None,
    content: ContentOption = None,
) -> None:
    """Say what p50, p95, p99 and load would be with other settings or another load. Changes nothing.

    Simulates Triton's dynamic batcher request by request: preferred sizes, the
    delay, what is prepared while instances are busy, instances, priority
    levels, cache hits and the burstiness that was measured. What one execution
    takes is fitted to Triton's own statistics by batch size (--triton), or
    taken from the rates where only metrics are there.

    Every figure has an interval that holds 95 % of such windows. A load that
    cannot be served is called that and gets no figure. What cannot be told is
    said with the signal that is missing.

    Settings: inference.batching.enabled, .max_batch_size,
    .preferred_batch_size, .timeout_micros, inference.instances,
    inference.replicas, cache.hit_ratio.

    Exits 0 with a forecast (of an overload, too), 4 when there is too little to
    make one from.

    Examples:
      latencydoctor forecast --prometheus http://localhost:9090 --rate 1200
      latencydoctor forecast --bundle incident.json.gz \\
        --set inference.batching.max_batch_size=32
      latencydoctor forecast --slo 1s --sessions 120000 --times 5 \\
        --requests-per-session-per-minute 0.5
    """
    from latencydoctor.app.forecasting import Question
    from latencydoctor.app.forecasting import forecast as answer
    from latencydoctor.cli import output as out
    from latencydoctor.cli.times import length_s
    from latencydoctor.cli.wiring import DiagnoseRequest

    question = Question(
        values=tuple(_pair(text) for text in settings or ()),
        rates_rps=_rates(rate or [], sessions, per_session),
        times=_within(times, "--times", 1e-6, _MOST),
        slo_ms=length_s(slo, "--slo") * 1000 if slo else None,
        max_load_ratio=_within(max_load, "--max-load", 0.01, 0.99),
        vip_ratio=_within(vip_share, "--vip-share", 0.0, 0.99),
    )
    _within(replicas, "--replicas", 1, 100_000)
    request = DiagnoseRequest(
        config=config,
        prometheus=prometheus,
        metrics_urls=tuple(metrics_url or ()),
        triton=triton,
        selector=selector,
        model=model,
        at=at,
        since=since,
        deadline=deadline,
        bundle=bundle,
        content=content,
    )
    out.refuse_unwritable(output=output)
    known = _typed(service_time, replicas) if service_time else _seen(request, replicas)
    found = answer(known, question)
    _write(found, form, output)
    raise typer.Exit(ExitCode.OK)


def _seen(request: DiagnoseRequest, replicas: int) -> Situation:
    """The service as its sources or a bundle show it."""
    from latencydoctor.cli import progress, wiring
    from latencydoctor.forecast.situation import of

    found = wiring.load_configuration(request)
    if request.bundle is None and not (found.prometheus or found.metrics_pages or found.triton_grpc):
        raise CannotTell(
            "there is nothing to forecast from",
            hint="Name a Prometheus with --prometheus URL, a metrics page with --metrics-url URL, or say what an "
            "execution takes with --service-time 20ms+1ms.",
        )
    unfinished.warn_of_configured(request)
    with progress.asking(request.deadline) if request.bundle is None else nullcontext():
        seen = wiring.observe(request, streams.show_progress)
    return of(seen.evidence, seen.collected, replicas)


def _typed(service_time: str, replicas: int) -> Situation:
    """A service of which nothing but its times is known, as somebody typed them."""
    from latencydoctor.cli.times import length_s
    from latencydoctor.forecast.situation import typed

    match = _SERVICE_TIME.fullmatch(service_time)
    if match is None:
        raise UsageError(
            f"--service-time is {service_time!r}, not FIXED+EACH",
            hint="Write it as 20ms+1ms: an execution takes 20 ms and 1 ms more for each request in it.",
        )
    host_ms, item_ms = (length_s(part, "--service-time") * 1000 for part in match.groups())
    return typed(host_ms, item_ms, replicas)


def _rates(rates: list[float], sessions: float | None, per_session: float | None) -> tuple[float, ...]:
    for rate in rates:
        _within(rate, "--rate", 1e-3, _MOST)
    if sessions is None and per_session is None:
        return tuple(rates)
    if sessions is None or per_session is None:
        raise UsageError(
            "--sessions and --requests-per-session-per-minute go together",
            hint="Sessions alone make no rate; a person in a chat sends about one request in two minutes (0.5).",
        )
    if rates:
        raise UsageError("--rate and --sessions both say how much arrives", hint="Give one of them.")
    _within(sessions, "--sessions", 1, _MOST)
    _within(per_session, "--requests-per-session-per-minute", 1e-6, _MOST)
    return (_within(sessions * per_session / 60, "the rate", 1e-3, _MOST),)


def _within(value: float, option: str, low: float, high: float) -> float:
    # Not a number is in no range either.
    if not low <= value <= high:
        raise UsageError(
            f"{option} is {value:g}, not from {low:g} to {high:g}", hint="See `latencydoctor forecast -h`."
        )
    return value


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise UsageError(
            f"--set is {text!r}, not KEY=VALUE", hint="Write it as --set inference.batching.max_batch_size=32."
        )
    return key.strip(), value.strip()


def _write(found: Forecast, form: Format, output: Path | None) -> None:
    from latencydoctor.cli import output as out

    if form is Format.JSON:
        from latencydoctor.report import machine

        out.document(machine.dump(found), output)
        return
    if output is None:
        _show(found, streams.stdout())
        return
    from rich.console import Console

    text = io.StringIO()
    _show(found, Console(file=text, width=_FILE_WIDTH, color_system=None, markup=False, highlight=False))
    out.document(text.getvalue(), output)


def _show(found: Forecast, console: Console) -> None:
    from latencydoctor.report import forecast as report

    report.head(simulated=found.simulated, console=console)
    if found.rows:
        report.show_rows([(row.settings, row.replicas, row.estimate) for row in found.rows], console)
    for one in found.sizing:
        report.show_sizing(one, console)
    report.show_basis(found.basis, found.notes, found.measured_p99_ms, console)
