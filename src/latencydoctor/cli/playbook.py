"""Which playbook is walked, and whether the configuration's thresholds are its own."""

from __future__ import annotations

from latencydoctor.content.everything import Content
from latencydoctor.errors import ContentError, Location, UsageError
from latencydoctor.model.configuration import Configuration
from latencydoctor.model.playbook import Playbook


def named_playbook(content: Content, name: str) -> Playbook:
    """The playbook of that name; `UsageError` lists those there are."""
    for playbook in content.playbooks:
        if playbook.id == name:
            return playbook
    known = ", ".join(playbook.id for playbook in content.playbooks)
    raise UsageError(f"there is no playbook {name!r}", hint=f"Known: {known}.")


def refuse_unknown_thresholds(configuration: Configuration, playbook: Playbook) -> None:
    """A misspelt threshold would leave the playbook's own in force without a word."""
    known = {name for name, _ in playbook.thresholds}
    unknown = [name for name, _ in configuration.thresholds if name not in known]
    if unknown:
        raise ContentError(
            f"the playbook {playbook.id} has no threshold {', '.join(map(repr, unknown))}",
            hint=f"See them with `latencydoctor rules show {playbook.id}`.",
            location=Location(configuration.path),
        )
