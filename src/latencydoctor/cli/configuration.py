"""`latencydoctor config`: what is configured, and whether each source answers."""

from __future__ import annotations

from typing import Annotated

import typer

from latencydoctor.cli import streams, unfinished
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.options import ConfigOption, Format, FormatOption, LogOption, MetricsUrlOption

app = typer.Typer(name="config", help="Show the configuration in effect and probe its sources.", no_args_is_help=True)


@app.callback()
def root() -> None:
    """Show the configuration in effect and probe its sources."""


@app.command()
def check(
    config: ConfigOption = None,
    prometheus: Annotated[str, typer.Option("--prometheus", metavar="URL", help="Prometheus to probe.")] = "",
    triton: Annotated[str, typer.Option("--triton", metavar="HOST:PORT", help="Triton's gRPC address.")] = "",
    torchserve: Annotated[str, typer.Option("--torchserve", metavar="URL", help="TorchServe's management API.")] = "",
    metrics_url: MetricsUrlOption = None,
    log: LogOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Ask every configured source a small question and say what it answered.

    Exits 0 when at least one answers, 1 when one is configured wrongly, 4 when
    none can be reached.

    Examples:
      latencydoctor config check
      latencydoctor config check --prometheus http://localhost:9090
    """
    from latencydoctor.cli import probing
    from latencydoctor.cli.sources_wiring import DiagnoseRequest
    from latencydoctor.report import machine, probes

    request = DiagnoseRequest(
        config=config,
        prometheus=prometheus,
        metrics_urls=tuple(metrics_url or ()),
        triton=triton,
        torchserve=torchserve,
        logs=tuple(str(path) for path in log or ()),
    )
    unfinished.warn_of_configured(request)
    probed = probing.probe(request)
    if form is Format.JSON:
        streams.write(machine.dump(probed))
    else:
        probes.show(probed, streams.stdout())
    raise typer.Exit(_code(tuple(one.state for one in probed.sources)))


def _code(states: tuple[str, ...]) -> ExitCode:
    if "wrong" in states:
        return ExitCode.FAILED
    return ExitCode.OK if "ok" in states else ExitCode.CANNOT_TELL
