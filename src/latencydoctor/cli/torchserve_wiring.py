"""The part of the composition root that knows TorchServe as a target: which model is meant, and the edges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from latencydoctor.cli.target_places import JOURNAL, meant, own_folder
from latencydoctor.errors import UsageError
from latencydoctor.model.configuration import Configuration, TorchServeModel, TorchServeSource
from latencydoctor.model.effects import Effects

if TYPE_CHECKING:
    from latencydoctor.journal import JournalFolder
    from latencydoctor.targets.torchserve import TorchServeTarget
    from latencydoctor.targets.torchserve_changer import TorchServeChanger

KIND = "torchserve"

_HOW = (
    "Write it as --target torchserve:URL/models/MODEL with the management address (port 8081 by default), or write "
    "targets: {torchserve: {management: URL, model: MODEL}} into the file and give --target torchserve."
)


def chosen(configuration: Configuration, named: str) -> TorchServeModel | None:
    """The model of a TorchServe that `named` means, None when it means another kind; empty for the configured one."""
    configured = configuration.torchserve_target
    return meant(named, "TorchServe", configured, _HOW, lambda rest: _named(configuration, rest))


def _named(configuration: Configuration, rest: str) -> TorchServeModel:
    configured = configuration.torchserve_target
    url, models, model = rest.rpartition("/models/")
    if not models or not model or "://" not in url:
        raise UsageError(f"--target {KIND}:{rest} does not name a server and a model", hint=_HOW)
    # Credentials and archives belong to the server and the model that they were written for.
    if configured is not None and configured.server.url.rstrip("/") == url:
        archives = configured.archives if configured.model == model else ()
        return TorchServeModel(configured.server, model, archives)
    known = configuration.torchserve
    server = known if known is not None and known.url.rstrip("/") == url else TorchServeSource(url)
    return TorchServeModel(server, model)


def edges(
    place: TorchServeModel, now_s: Callable[[], float], effects: Effects
) -> tuple[TorchServeTarget, TorchServeChanger, JournalFolder]:
    """The target, what changes it, and its journals."""
    from latencydoctor.cli.sources_wiring import torchserve_server
    from latencydoctor.journal import JournalFolder
    from latencydoctor.targets.folder import GuardedFolder
    from latencydoctor.targets.torchserve import TorchServeTarget
    from latencydoctor.targets.torchserve_changer import NAMES, TorchServeChanger
    from latencydoctor.targets.torchserve_client import Connection, Management

    address = torchserve_server(place.server)
    connection = Connection(address.url, address.headers, address.ca_file, address.certificate)
    target = TorchServeTarget(Management(connection, place.model, effects), dict(place.archives))
    folder = own_folder(target.name.encode())
    history = JournalFolder(folder / JOURNAL, now_s, effects)
    return target, TorchServeChanger(target, GuardedFolder(folder, NAMES, effects)), history


def journal(place: TorchServeModel) -> Path:
    """Where the journals of a model lie, for whoever only looks."""
    from latencydoctor.cli.sources_wiring import torchserve_server
    from latencydoctor.targets.torchserve import identity

    return own_folder(identity(torchserve_server(place.server).url, place.model).encode()) / JOURNAL
