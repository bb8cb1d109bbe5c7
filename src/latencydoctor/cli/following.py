"""The command that comes next, with the options that this one was given: what is shown must work when it is pasted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from latencydoctor.cli.probing import shown_address

if TYPE_CHECKING:
    from latencydoctor.cli.sources_wiring import DiagnoseRequest


def options(*named: tuple[str, str | Path | None]) -> str:
    """These options with a blank before each, quoted for a shell; one without a value is left out."""
    return "".join(f" {option} {shlex.quote(str(value))}" for option, value in named if value)


def of_change(request: DiagnoseRequest, target: str) -> str:
    """What names configuration, target and the figures again, for `apply` and `rollback`."""
    return options(("--config", request.config), ("--target", target)) + _selected(request)


def after_diagnosis(command: str, request: DiagnoseRequest, *, saved: Path | None, verbose: bool) -> str:
    """The diagnosis's next command for the sources of this one; empty where nothing is left to look at.

    What is stored need not be asked for or stored again: all that was found is looked at then.
    """
    if command.startswith("latencydoctor plan "):
        return command + options(("--config", request.config), ("--bundle", request.bundle)) + _selected(request)
    saving = "--save" in command
    if command and (request.bundle is not None or (saving and saved is not None)):
        again = options(("--config", request.config), ("--bundle", request.bundle or saved))
        return "" if verbose and request.bundle else f"latencydoctor diagnose{again} --verbose"
    return (command + _sources(request) + (_moment(request) if saving else "")) if command else ""


def _selected(request: DiagnoseRequest) -> str:
    chosen = (("--selector", request.selector), ("--model", request.model))
    return options(("--prometheus", shown_address(request.prometheus)), *chosen)


def _sources(request: DiagnoseRequest) -> str:
    return options(
        ("--config", request.config),
        ("--prometheus", shown_address(request.prometheus)),
        *(("--metrics-url", shown_address(url)) for url in request.metrics_urls),
        ("--triton", request.triton),
        ("--torchserve", shown_address(request.torchserve)),
        *(("--log", path) for path in request.logs),
    )


def _moment(request: DiagnoseRequest) -> str:
    """The service and the time that were looked at, and what must not be stored."""
    default = type(request)()
    since = request.since if request.since != default.since else ""
    asked = (("--at", request.at), ("--since", since), ("--baseline", request.baseline))
    chosen = (("--selector", request.selector), ("--model", request.model))
    return options(*chosen, *asked) + (" --redact-prompts" if request.redact_prompts else "")
