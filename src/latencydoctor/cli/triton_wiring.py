"""The part of the composition root that knows any Triton as a target: which model is meant, and the edges."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from latencydoctor.cli.target_places import JOURNAL, meant, own_folder
from latencydoctor.errors import KnownError, UsageError
from latencydoctor.model.configuration import Configuration, TritonTarget
from latencydoctor.model.effects import Effects

if TYPE_CHECKING:
    from latencydoctor.journal import JournalFolder
    from latencydoctor.targets.triton_changer import TritonChanger
    from latencydoctor.targets.triton_repository import TritonRepository

KIND = "triton"
MAX_LISTED = 10

_HOW = (
    "Write it as --target triton:REPOSITORY@HOST:PORT/MODEL with Triton's gRPC port (8001 by default), or write "
    "targets: {triton: {repository: DIR, grpc: HOST:PORT}} into the file and give --target triton."
)


def chosen(configuration: Configuration, named: str) -> TritonTarget | None:
    """The model of a Triton that `named` means, None when it means another kind; empty for the configured one."""
    configured = configuration.triton_target
    return meant(named, "Triton", configured, _HOW, lambda rest: _named(configured, rest))


def _named(configured: TritonTarget | None, rest: str) -> TritonTarget:
    repository, _, server = rest.rpartition("@")
    address, _, model = server.partition("/")
    host, _, port = address.rpartition(":")
    if not repository or not host or not port.isdecimal():
        raise UsageError(f"--target {KIND}:{rest} does not name a repository and a server", hint=_HOW)
    if configured is not None and configured.repository == repository and configured.grpc == address:
        return replace(configured, model=model or configured.model)
    return TritonTarget(repository, address, model)


def edges(
    place: TritonTarget, model: str, now_s: Callable[[], float], effects: Effects
) -> tuple[TritonRepository, TritonChanger, JournalFolder]:
    """The target, what changes it, and its journals; `model` is what the configuration asks about elsewhere.

    KnownError where there is no such repository, UsageError when it holds several models and none is named.
    """
    repository = Path(place.repository)
    if not repository.is_dir():
        raise KnownError(
            f"there is no model repository in {repository}",
            hint="Name the folder that Triton was started with (--model-repository), as this machine sees it.",
        )
    from latencydoctor.journal import JournalFolder
    from latencydoctor.targets.triton_changer import TritonChanger
    from latencydoctor.targets.triton_repository import TritonRepository

    target = TritonRepository(replace(place, model=place.model or model or _only_model(repository)), effects)
    history = JournalFolder(_journal_of(target.model_folder), now_s, effects)
    return target, TritonChanger(target), history


def journal(place: TritonTarget, model: str) -> Path | None:
    """Where the journals of a model lie, for whoever only looks; None where no model is named."""
    name = place.model or model
    return _journal_of(Path(place.repository) / name) if name else None


def _only_model(repository: Path) -> str:
    names = sorted(path.name for path in repository.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(names) != 1:
        listed = ", ".join(names[:MAX_LISTED]) + (" ..." if len(names) > MAX_LISTED else "")
        raise UsageError(
            f"{repository} holds {len(names)} models{f': {listed}' if names else ''}",
            hint="Name one: --target triton:REPOSITORY@HOST:PORT/MODEL, or --model.",
        )
    return names[0]


def _journal_of(model: Path) -> Path:
    """Not in the repository: nothing but the lock is left there."""
    return own_folder(os.fsencode(os.path.realpath(model))) / JOURNAL
