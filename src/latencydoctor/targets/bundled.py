"""The bundled stack as a target: its settings file, what the server runs, and what a change would compile to.

Reads only. Implements the port `Target`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from latencydoctor.model.effects import Effect, Effects, unwatched
from latencydoctor.model.remedy import TargetObject, TargetState
from latencydoctor.remedy.settings_text import SETTINGS_OBJECT, generation_of, settings_digest
from latencydoctor.targets import settings_file
from latencydoctor.targets.admin import render
from latencydoctor.targets.kept_generations import read_kept
from latencydoctor.targets.state_folder import SETTINGS, StateFolder
from latencydoctor.targets.triton import differences, read_effective

DEFAULT_MODEL = "faq-encoder"
DEFAULT_DEADLINE_MS = "5000"


class BundledTarget:
    """The stack whose files lie in `state`."""

    def __init__(self, state: Path, effects: Effects = unwatched) -> None:
        self.folder = StateFolder(state, effects)

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
        endpoints = self.folder.endpoints()
        model = dict(settings).get("inference.model", DEFAULT_MODEL)
        with self.folder.effects(Effect.ASK_TRITON):
            effective = read_effective(endpoints.triton_grpc, model)
        compiled = self.preview(text)
        generation = generation_of(text)
        # What a restarted server would load; a change that lived in the server alone would be lost with it.
        stored = f"models/{model}/config.pbtxt"
        return TargetState(
            target=self.name,
            objects=(
                TargetObject(SETTINGS_OBJECT, generation, settings_digest(text)),
                TargetObject(f"triton model {model}", generation, effective.digest),
                TargetObject(stored, generation, hashlib.sha256(self.folder.read(stored).encode()).hexdigest()),
            ),
            settings=settings,
            settings_text=text,
            effective=effective.settings,
            compiled=compiled,
            not_in_effect=differences(compiled, effective),
            deadline_ms=float(dict(settings).get("inference.deadline_ms", DEFAULT_DEADLINE_MS)),
            kept=read_kept(self.folder),
        )

    def edited(self, settings_text: str, values: Sequence[tuple[str, str]]) -> str:
        """The settings text with these dotted keys set; comments and order stay."""
        return settings_file.edited(settings_text, values, str(self.folder.path / SETTINGS))

    def preview(self, settings_text: str) -> str:
        """The `config.pbtxt` these settings compile to, from the gateway's admin API."""
        socket = self.folder.endpoints().admin_socket
        with self.folder.effects(Effect.ASK_ADMIN):
            return render(socket, settings_text)
