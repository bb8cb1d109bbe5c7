"""Log rules, dialects and playbooks together: all problems of all files at once, and that they fit each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from latencydoctor.content.locate import ContentRoot
from latencydoctor.content.playbooks import load_all
from latencydoctor.content.rules import load_log_rules
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import ContentError, ContentErrors, Location
from latencydoctor.model.playbook import Condition, Leaf, LogLeaf, Not, Playbook
from latencydoctor.model.rule import Dialect, LogRule, SignalName

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Content:
    """Everything under a content root."""

    log_rules: tuple[LogRule, ...]
    signals: tuple[SignalName, ...]
    dialects: tuple[Dialect, ...]
    playbooks: tuple[Playbook, ...]


def read_everything(root: ContentRoot, *, compiled: bool = False) -> Content:
    """All content; `ContentErrors` with every problem of every file, each with its file and line.

    `compiled` also tries the log patterns with their engine, which takes half a second.
    """
    errors: list[ContentError] = []
    log_rules = _gather(lambda: load_log_rules(root, compiled=compiled), errors) or ()
    signals, dialects = _gather(lambda: read_signals(root), errors) or ((), ())
    playbooks = _gather(lambda: load_all(root.path), errors) or ()
    content = Content(log_rules, signals, dialects, playbooks)
    # References into a folder that could not be read would all look broken.
    if not errors:
        errors += _broken_references(content, root)
    if errors:
        hints = dict.fromkeys(error.hint for error in errors if error.hint)
        raise ContentErrors(tuple(errors), hint=" ".join(hints))
    return content


def _gather(read: Callable[[], _Kind], errors: list[ContentError]) -> _Kind | None:
    try:
        return read()
    except ContentErrors as found:
        errors += found.errors
    except ContentError as found:
        errors.append(found)
    return None


def _broken_references(content: Content, root: ContentRoot) -> Iterator[ContentError]:
    rules = {rule.id for rule in content.log_rules}
    signals = {signal.id for signal in content.signals}
    for playbook in content.playbooks:
        where = Location(root.shown(root.playbooks / f"{playbook.id}.yaml"))
        for question in playbook.questions:
            for kind, name in _named(question.condition):
                if name not in (rules if kind == "log rule" else signals):
                    yield ContentError(f"node {question.id!r} asks for {name!r}, which is no {kind}", location=where)


def _named(condition: Condition) -> Iterator[tuple[str, str]]:
    """The signals and log rules that a condition names."""
    if isinstance(condition, Leaf):
        yield "signal", condition.signal
        if condition.than_signal:
            yield "signal", condition.than_signal
    elif isinstance(condition, LogLeaf):
        yield "log rule", condition.rule
    elif isinstance(condition, Not):
        yield from _named(condition.part)
    else:
        for part in condition.parts:
            yield from _named(part)
