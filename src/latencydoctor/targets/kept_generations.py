"""The settings that the bundled stack ran before, as its controller kept them; what is damaged is left out."""

from __future__ import annotations

import json

from latencydoctor.errors import ContentError, KnownError
from latencydoctor.model.kept import KeptGeneration
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets import settings_file
from latencydoctor.targets.state_folder import StateFolder

KEPT = "settings-history.json"
MOST_KEPT = 100
"""The stack keeps fewer; more is a file that something else wrote."""


def read_kept(folder: StateFolder) -> tuple[KeptGeneration, ...]:
    """Oldest first; empty where the stack keeps none or the file cannot be read."""
    try:
        entries = json.loads(folder.read(KEPT))["generations"]
        entries = entries[-MOST_KEPT:] if isinstance(entries, list) else []
    except (KnownError, ValueError, KeyError, TypeError, RecursionError):
        return ()
    found = (_entry(one) for one in entries)
    return tuple(one for one in found if one is not None)


def _entry(one: object) -> KeptGeneration | None:
    if not isinstance(one, dict):
        return None
    text, at_s, generation, owner = (one.get(name) for name in ("text", "in_effect_s", "generation", "owner"))
    if not isinstance(text, str) or not isinstance(generation, int) or not isinstance(at_s, int | float):
        return None
    try:
        settings = settings_file.flatten(text, KEPT)
    except ContentError:
        return None
    said = owner if isinstance(owner, str) else ""
    return KeptGeneration(generation, float(at_s), said, text, settings_digest(text), settings)
