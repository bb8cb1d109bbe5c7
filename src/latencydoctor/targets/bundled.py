"""The bundled stack as a target: its settings file, what the server runs, and what a change would compile to.

Reads only. Implements the port `Target`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from latencydoctor.model.builds import ModelBuild
from latencydoctor.model.effects import Effect, Effects, unwatched
from latencydoctor.model.remedy import TargetObject, TargetState
from latencydoctor.remedy.settings_text import SETTINGS_OBJECT, generation_of, settings_digest
from latencydoctor.targets import settings_file
from latencydoctor.targets.admin import Rendered, render
from latencydoctor.targets.kept_generations import read_kept
from latencydoctor.targets.placed_version import PlacedVersion, no_build, versions_object
from latencydoctor.targets.state_folder import SETTINGS, StateFolder
from latencydoctor.targets.triton import EffectiveConfig, differences, read_effective

DEFAULT_MODEL = "faq-encoder"
DEFAULT_DEADLINE_MS = "5000"


class BundledTarget:
    """The stack whose files lie in `state`."""

    def __init__(self, state: Path, effects: Effects = unwatched, find: Callable[[], ModelBuild] = no_build) -> None:
        self.folder = StateFolder(state, effects)
        self.versions = PlacedVersion(self.folder, find)

    @property
    def name(self) -> str:
        """The target's identity: kind and folder."""
        return f"bundled:{self.folder.path}"

    def settings_text(self) -> str:
        """The settings file as it is."""
        return self.folder.read(SETTINGS)

    def read(self) -> TargetState:
        """Settings, digests and the configuration in effect; KnownError when a part of the stack does not answer."""
        text = self.settings_text()
        settings = settings_file.flatten(text, str(self.folder.path / SETTINGS))
        model = dict(settings).get("inference.model", DEFAULT_MODEL)
        effective = self._effective(model)
        rendered = self._rendered(text)
        generation = generation_of(text)
        # What a restarted server would load; a change that lived in the server alone would be lost with it.
        stored = f"models/{model}/config.pbtxt"
        return TargetState(
            target=self.name,
            objects=(
                TargetObject(SETTINGS_OBJECT, generation, settings_digest(text)),
                TargetObject(f"triton model {model}", generation, _together(effective)),
                TargetObject(stored, generation, hashlib.sha256(self.folder.read(stored).encode()).hexdigest()),
                TargetObject(versions_object(model), generation, self.versions.digest(model)),
            ),
            settings=settings,
            settings_text=text,
            effective=(*effective[0].settings, ("inference.replicas", str(len(effective)))),
            compiled=rendered.compiled,
            not_in_effect=tuple(_differing(rendered.replicas, effective)),
            deadline_ms=float(dict(settings).get("inference.deadline_ms", DEFAULT_DEADLINE_MS)),
            kept=read_kept(self.folder),
        )

    def edited(self, settings_text: str, values: Sequence[tuple[str, str]]) -> str:
        """The settings text with these dotted keys set; comments and order stay."""
        return settings_file.edited(settings_text, values, str(self.folder.path / SETTINGS))

    def preview(self, settings_text: str) -> str:
        """The `config.pbtxt` these settings compile to, from the gateway's admin API."""
        return self._rendered(settings_text).compiled

    def _rendered(self, settings_text: str) -> Rendered:
        socket = self.folder.endpoints().admin_socket
        with self.folder.effects(Effect.ASK_ADMIN):
            return render(socket, settings_text)

    def _effective(self, model: str) -> list[EffectiveConfig]:
        """What each replica says it runs."""
        found = []
        for address in self.folder.endpoints().tritons_grpc:
            with self.folder.effects(Effect.ASK_TRITON):
                found.append(read_effective(address, model))
        return found


def _together(effective: Sequence[EffectiveConfig]) -> str:
    """One digest for all replicas; that of the only one where there is one."""
    if len(effective) == 1:
        return effective[0].digest
    return hashlib.sha256("".join(one.digest for one in effective).encode()).hexdigest()


def _differing(asked: Sequence[str], effective: Sequence[EffectiveConfig]) -> Iterator[str]:
    """Where a replica runs something else than it should, in words; the first, which all settings name, without a
    number."""
    if len(asked) != len(effective):
        yield f"inference.replicas: {len(asked)} asked for, {len(effective)} run"
    for number, (text, runs) in enumerate(zip(asked, effective, strict=False), start=1):
        place = f"replica {number}: " if number > 1 else ""
        yield from (f"{place}{difference}" for difference in differences(text, runs))
