"""`latencydoctor stack`: the bundled serving stack, up and down, its state, its logs, its configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latencydoctor.cli import unfinished
from latencydoctor.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from latencydoctor.model.remark import Remark
    from latencydoctor.stack.endpoints import Endpoints
    from latencydoctor.stack.layout import Layout
    from latencydoctor.stack.prepare import Rendered
    from latencydoctor.stack.settings import Settings
    from latencydoctor.stack.status import StackStatus

app = typer.Typer(no_args_is_help=True, help="Run the bundled serving stack: Triton, cache, gateway, Prometheus.")

StateOption = Annotated[
    Path | None, typer.Option("--state", help="State folder. \\[default: one per user]", file_okay=False)
]


class CacheServer(StrEnum):
    """What answers for the cache."""

    VALKEY = "valkey"
    REDIS = "redis"


def _layout(state: Path | None) -> Layout:
    from latencydoctor.stack.layout import locate

    return locate(state)


def _refuse_unsupported() -> None:
    """One line on a machine where the stack's packages do not exist, before any of them is imported."""
    from latencydoctor.stack import host

    host.refuse_unsupported(host.this_host())


def _say(part: str, line: str) -> None:
    typer.echo(f"{part:<13}{line}", err=True)


@app.command()
def up(
    state: StateOption = None,
    settings: Annotated[Path | None, typer.Option(help="Settings file to start with.")] = None,
    accelerator: Annotated[str | None, typer.Option(help="sim:<profile> or cpu; replaces the settings' own.")] = None,
    new_ports: Annotated[bool, typer.Option("--new-ports", help="Do not keep the ports of this state folder.")] = False,
    cache_server: Annotated[
        CacheServer, typer.Option(help="valkey (bundled) or redis (the system's redis-server).")
    ] = CacheServer.VALKEY,
    deadline: Annotated[str, typer.Option(help="Time by which every part has to be ready.")] = "60s",
    form: FormatOption = Format.TEXT,
) -> None:
    """Start the stack, wait until every part is ready, say where each listens.

    Takes seconds; the first time on a machine it prepares files in this user's
    cache for up to a minute.

    Examples:
      latencydoctor stack up
      latencydoctor stack up --state ./mine --settings settings.yaml
    """
    _refuse_unsupported()
    from latencydoctor.cli.times import length_s
    from latencydoctor.stack import lifecycle
    from latencydoctor.stack.prepare import UpOptions

    options = UpOptions(settings, accelerator, new_ports, cache_server.value, length_s(deadline, "--deadline"))
    layout = _layout(state)
    _show_endpoints(layout, lifecycle.up(layout, options, _say), form)


def _show_endpoints(layout: Layout, endpoints: Endpoints, form: Format) -> None:
    from dataclasses import asdict

    from latencydoctor.stack.replicas import load_serving
    from latencydoctor.stack.status import addresses_of

    if form is Format.JSON:
        typer.echo(json.dumps({"state": str(layout.state)} | asdict(endpoints)))
        return
    for name, address in addresses_of(endpoints, load_serving(layout.serving)).items():
        typer.echo(f"{name:<13}{address or 'absent'}")
    simulated = endpoints.accelerator.startswith("sim:")
    typer.echo(
        f"{'accelerator':<13}{endpoints.accelerator}{' (simulated: no GPU has these times)' if simulated else ''}"
    )
    typer.echo(f"{'state':<13}{layout.state}")
    typer.echo(f"next: latencydoctor diagnose --config {layout.doctor_config}")


@app.command()
def down(
    state: StateOption = None,
    purge: Annotated[bool, typer.Option("--purge", help="Also delete settings, logs and metrics.")] = False,
) -> None:
    """Stop the stack and everything of it that still runs."""
    _refuse_unsupported()
    from latencydoctor.stack import lifecycle

    layout = _layout(state)
    ended = lifecycle.down(layout, _say, purge=purge)
    typer.echo(f"{'stopped' if ended else 'nothing was running'}: {layout.state}")


@app.command()
def status(state: StateOption = None, form: FormatOption = Format.TEXT) -> None:
    """Ask every part whether it works. Exit 1 unless all do."""
    _refuse_unsupported()
    from latencydoctor.stack.status import status as ask

    layout = _layout(state)
    unfinished.warn_in(layout.state)
    found = ask(layout)
    if form is Format.JSON:
        typer.echo(json.dumps(_status_data(found)))
    else:
        _print_status(found)
    if not found.ready:
        raise typer.Exit(1)


def _status_data(found: StackStatus) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(found) | {"state": str(found.state), "running": found.running, "ready": found.ready}


def _print_status(found: StackStatus) -> None:
    for part in found.parts:
        times = "" if not part.restarts else f"restarted {part.restarts} time{'s' if part.restarts > 1 else ''}"
        process = f"pid {part.pid}, up {part.uptime_s:.0f} s" if part.pid else ""
        notes = ", ".join(note for note in (process, times, part.problem) if note)
        typer.echo(f"{part.name:<13}{part.state:<9}{part.address}  {notes}".rstrip())
    simulated = " (simulated)" if found.simulated else ""
    typer.echo(f"{'settings':<13}generation {found.generation} in effect, accelerator {found.accelerator}{simulated}")
    if found.canary:
        typer.echo(f"{'canary':<13}{found.canary}")
    if found.settings_error:
        typer.echo(f"{'':<13}the newest settings are not in effect: {found.settings_error}")
    given_up = ", ".join(part.name for part in found.parts if part.given_up)
    if given_up:
        typer.echo(f"ended again and again, and was given up: {given_up}; `latencydoctor stack up` starts it again")
    if found.orphans:
        pids = ", ".join(map(str, found.orphans))
        typer.echo(f"supervisord is gone, its programs still run (pids {pids}); `latencydoctor stack up` starts anew")
    elif not found.supervised:
        typer.echo("the stack is down; start it with `latencydoctor stack up`")


@app.command()
def logs(
    part: Annotated[str | None, typer.Argument(help="One part only; without it, all.")] = None,
    state: StateOption = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the last lines of each.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines until Ctrl-C.")] = False,
) -> None:
    """Show the last lines of the parts' logs."""
    from latencydoctor.errors import KnownError, UsageError
    from latencydoctor.stack import logs as reading

    layout = _layout(state)
    paths = {path.stem: path for path in sorted(layout.logs.glob("*.log"))}
    if part is None and not paths:
        raise KnownError(f"no stack in {layout.state}", hint="Start one with `latencydoctor stack up`.")
    if part is not None and part not in paths:
        known = ", ".join(paths) or "none yet"
        raise UsageError(f"{layout.state} has no log of {part!r}", hint=f"There are: {known}.")
    chosen = paths if part is None else {part: paths[part]}
    for name, path in chosen.items():
        for line in reading.tail(path, lines):
            typer.echo(line if part else f"{name:<13}{line}")
    new: Iterator[reading.LogLine] = reading.follow(chosen) if follow else iter(())
    for found in new:
        typer.echo(found.text if part else f"{found.part:<13}{found.text}")


@app.command()
def render(
    state: StateOption = None,
    settings: Annotated[Path | None, typer.Option(help="Settings file. \\[default: that of the state folder]")] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Print the configuration compiled from the settings, for Triton, Prometheus, Alertmanager and supervisord."""
    _refuse_unsupported()
    from dataclasses import asdict

    from latencydoctor.stack.prepare import UpOptions, wanted_settings
    from latencydoctor.stack.preview import preview

    layout = _layout(state)
    shown = preview(layout, settings)
    remarks = _remarks(wanted_settings(layout, UpOptions(settings_file=settings)))
    if form is Format.JSON:
        typer.echo(json.dumps(asdict(shown) | {"remarks": [asdict(one) for one in remarks]}))
        return
    _print_rendered(shown)
    for one in remarks:
        typer.echo(f"remark: {one}", err=True)


def _remarks(settings: Settings) -> tuple[Remark, ...]:
    """What is worth a look in the settings, held against the doctor's own default SLO."""
    from latencydoctor.model.configuration import Slo
    from latencydoctor.remedy.batching_lint import Around, Batcher, lint

    inference, batching = settings.inference, settings.inference.batching
    classes = (("vip", inference.priorities.vip), ("standard", inference.priorities.standard))
    batcher = Batcher(
        batching.enabled,
        (batching.preferred_batch_size,) if batching.preferred_batch_size else (),
        batching.max_batch_size,
        batching.timeout_micros / 1000,
        levels=max(level for _, level in classes) if inference.priority_levels else 0,
        default_level=inference.priorities.standard if inference.priority_levels else 0,
        classes=classes,
    )
    return lint(batcher, Around(Slo().p99_ms, inference.deadline_ms))


def _print_rendered(shown: Rendered) -> None:
    sections = {
        "config.pbtxt": shown.config_pbtxt,
        "prometheus.yml": shown.prometheus,
        "alertmanager.yml": shown.alertmanager,
        "supervisord.conf": shown.supervisord,
        "latencydoctor.yaml": shown.doctor,
    }
    for name, text in sections.items():
        typer.echo(f"# --- {name}\n{text}")
