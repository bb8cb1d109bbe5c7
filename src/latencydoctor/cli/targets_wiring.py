"""The half of the composition root that knows the targets: which one is meant, and the edges that change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from latencydoctor.cli import torchserve_wiring, triton_wiring
from latencydoctor.cli.target_places import JOURNAL
from latencydoctor.errors import KnownError, UsageError
from latencydoctor.model.configuration import Configuration
from latencydoctor.model.effects import Effects

if TYPE_CHECKING:
    from latencydoctor.app.ports import AnswerCache, Changer, ModelBuilds, RunHistory, Target
    from latencydoctor.model.builds import ModelBuild
    from latencydoctor.targets.state_folder import StateFolder

Now = Callable[[], float]

BUNDLED = "bundled"


@dataclass(frozen=True, slots=True)
class Bound:
    """One target with its edges. `model` is what verification looks at where the configuration names none; `canary`
    says that it can send a share of its traffic to a canary."""

    target: Target
    changer: Changer
    history: RunHistory
    cache: AnswerCache | None = None
    builds: ModelBuilds | None = None
    model: str = ""
    canary: bool = False
    tritons: Callable[[], tuple[str, ...]] = tuple
    """Asked when somebody wants to know, since the target may be down by then."""


def bound(configuration: Configuration, named: str, now_s: Now, effects: Effects) -> Bound:
    """The target that --target names, else the configured one; `UsageError` when there is none, or more than one."""
    if not named:
        _refuse_several(configuration)
    torchserve = torchserve_wiring.chosen(configuration, named)
    if torchserve is not None:
        return Bound(*torchserve_wiring.edges(torchserve, now_s, effects), model=torchserve.model)
    triton = triton_wiring.chosen(configuration, named)
    if triton is not None:
        target, changer, history = triton_wiring.edges(triton, configuration.model, now_s, effects)
        return Bound(target, changer, history, model=target.model, tritons=lambda: (triton.grpc,))
    state = configuration.bundled_state if named in ("", BUNDLED) else named
    if not state:
        raise UsageError(
            "no target to change is configured",
            hint="Give --target DIR (a stack's state folder), --target triton:REPOSITORY@HOST:PORT/MODEL or "
            "--target torchserve:URL/models/MODEL, or write targets: into the file (examples/latencydoctor.yaml).",
        )
    return _bundled(Path(state), now_s, effects)


def journals(configuration: Configuration) -> tuple[Path, ...]:
    """Where the journals of the configured targets lie, for whoever only looks."""
    found = [Path(configuration.bundled_state) / JOURNAL] if configuration.bundled_state else []
    if configuration.torchserve_target is not None:
        found.append(torchserve_wiring.journal(configuration.torchserve_target))
    if configuration.triton_target is not None:
        journal = triton_wiring.journal(configuration.triton_target, configuration.model)
        found += [journal] if journal is not None else []
    return tuple(found)


def _refuse_several(configuration: Configuration) -> None:
    kinds = (
        (BUNDLED, configuration.bundled_state),
        (triton_wiring.KIND, configuration.triton_target),
        (torchserve_wiring.KIND, configuration.torchserve_target),
    )
    names = [name for name, there in kinds if there]
    if len(names) > 1:
        raise UsageError(
            f"several targets are configured: {', '.join(names)}",
            hint=f"Choose one: {', '.join(f'--target {name}' for name in names)}.",
        )


def _bundled(state: Path, now_s: Now, effects: Effects) -> Bound:
    if not state.is_dir():
        raise KnownError(
            f"there is no stack in {state}",
            hint="Start one with `latencydoctor stack up`, or name its folder in the configuration.",
        )
    # Triton's client costs half a second to load, and only a change needs it and what goes with it.
    from latencydoctor.journal import JournalFolder
    from latencydoctor.targets.answer_cache import BundledAnswerCache
    from latencydoctor.targets.bundled import BundledTarget
    from latencydoctor.targets.executor import BundledChanger
    from latencydoctor.targets.model_builds import BuildShelf

    builds = BuildShelf(_build_folder)
    target = BundledTarget(state, effects, builds.find)
    history = JournalFolder(state / JOURNAL, now_s, effects)
    cache = BundledAnswerCache(target.folder)
    return Bound(
        target,
        BundledChanger(target),
        history,
        cache,
        builds,
        canary=True,
        tritons=lambda: _tritons(target.folder),
    )


def _build_folder() -> Path:
    """Where `latencydoctor quantise` leaves the build that fits today's encoder; KnownError without the stack."""
    from latencydoctor.stack import host

    host.refuse_unsupported(host.this_host())
    from latencydoctor.stack import int8_build, prepare
    from latencydoctor.stack.encoder import onnx_model

    return int8_build.location(onnx_model.model_path(), prepare.user_cache())


def _tritons(folder: StateFolder) -> tuple[str, ...]:
    try:
        return folder.endpoints().tritons_grpc
    except KnownError:
        return ()


def read_build(folder: Path) -> ModelBuild:
    """The INT8 build in this folder; KnownError when it is damaged."""
    from latencydoctor.targets import model_builds

    return model_builds.read_build(folder)
