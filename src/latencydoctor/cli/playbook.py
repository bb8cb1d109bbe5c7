"""Which playbook is walked, and whether the configuration's thresholds are known."""

from __future__ import annotations

from collections.abc import Sequence

from latencydoctor.content.everything import Content
from latencydoctor.diagnosis.examine import INSIDE
from latencydoctor.errors import ContentError, Location, UsageError
from latencydoctor.model.cause import CauseRule
from latencydoctor.model.configuration import Configuration
from latencydoctor.model.playbook import Playbook


def named_playbook(content: Content, name: str) -> Playbook:
    """The playbook of that name; `UsageError` lists those there are."""
    for playbook in content.playbooks:
        if playbook.id == name:
            return playbook
    known = ", ".join(playbook.id for playbook in content.playbooks)
    raise UsageError(f"there is no playbook {name!r}", hint=f"Known: {known}.")


def refuse_unknown_thresholds(configuration: Configuration, playbook: Playbook, causes: Sequence[CauseRule]) -> None:
    """A misspelt threshold would leave the one in the file in force without a word.

    A playbook's are named as they stand, a cause rule's as `<rule>.<name>`.
    """
    known = {name for name, _ in playbook.thresholds}
    known.update(f"{cause.id}{INSIDE}{name}" for cause in causes for name, _ in cause.thresholds)
    unknown = [name for name, _ in configuration.thresholds if name not in known]
    if unknown:
        raise ContentError(
            f"neither the playbook {playbook.id} nor a cause rule has a threshold {', '.join(map(repr, unknown))}",
            hint=f"See them with `latencydoctor rules show {playbook.id}`; a cause rule's are called <rule>.<name>.",
            location=Location(configuration.path),
        )
