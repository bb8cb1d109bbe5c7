"""Log rules, dialects, causes and playbooks together: all problems of all files at once, and that they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from latencydoctor.content.causes import load_causes
from latencydoctor.content.locate import ContentRoot
from latencydoctor.content.playbooks import load_all
from latencydoctor.content.rules import load_log_rules
from latencydoctor.content.signals import read_signal_names, read_signals
from latencydoctor.errors import ContentError, ContentErrors, Location
from latencydoctor.model.cause import CauseRule
from latencydoctor.model.playbook import Condition, Leaf, LogLeaf, Not, Playbook, Where
from latencydoctor.model.rule import Dialect, LogRule, SignalName

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Content:
    """Everything under a content root."""

    log_rules: tuple[LogRule, ...]
    signals: tuple[SignalName, ...]
    dialects: tuple[Dialect, ...]
    causes: tuple[CauseRule, ...]
    playbooks: tuple[Playbook, ...]


def read_everything(root: ContentRoot, *, compiled: bool = False, dialects: bool = True) -> Content:
    """All content; `ContentErrors` with every problem of every file, each with its file and line.

    `compiled` also tries the log patterns with their engine, which takes half a second. Without `dialects` they are
    left out: a replay asks no server.
    """
    errors: list[ContentError] = []
    log_rules = _gather(lambda: load_log_rules(root, compiled=compiled), errors) or ()
    signals, spoken = _gather(lambda: _read_signals(root, dialects), errors) or ((), ())
    causes = _gather(lambda: load_causes(root), errors) or ()
    playbooks = _gather(lambda: load_all(root.path), errors) or ()
    content = Content(log_rules, signals, spoken, causes, playbooks)
    # References into a folder that could not be read would all look broken.
    if not errors:
        errors += _broken_references(content, root)
    if errors:
        hints = dict.fromkeys(error.hint for error in errors if error.hint)
        raise ContentErrors(tuple(errors), hint=" ".join(hints))
    return content


def _read_signals(root: ContentRoot, dialects: bool) -> tuple[tuple[SignalName, ...], tuple[Dialect, ...]]:
    return read_signals(root) if dialects else (read_signal_names(root), ())


def _gather(read: Callable[[], _Kind], errors: list[ContentError]) -> _Kind | None:
    try:
        return read()
    except ContentErrors as found:
        errors += found.errors
    except ContentError as found:
        errors.append(found)
    return None


def _broken_references(content: Content, root: ContentRoot) -> Iterator[ContentError]:
    causes = {cause.id for cause in content.causes}
    for playbook in content.playbooks:
        where = Location(root.shown(root.playbooks / f"{playbook.id}.yaml"))
        for question in playbook.questions:
            yield from _unknown_names(f"node {question.id!r}", question.condition, content, where)
        for verdict in playbook.verdicts:
            if verdict.cause is not None and verdict.cause not in causes:
                hint = f"Write rules/causes/{verdict.cause}.yaml, or name one that `latencydoctor rules list` shows."
                message = f"node {verdict.id!r} names the cause {verdict.cause!r}, which has no rule"
                yield ContentError(message, hint=hint, location=where)
    for cause in content.causes:
        where = Location(root.shown(root.rules / "causes" / f"{cause.id}.yaml"))
        for condition in (cause.confirm, *([cause.refute] if cause.refute else [])):
            yield from _unknown_names("the rule", condition, content, where)
        unknown = set(cause.symptoms) - {signal.id for signal in content.signals}
        for name in sorted(unknown):
            yield ContentError(f"the symptom {name!r} is no signal", location=where)


def _unknown_names(asker: str, condition: Condition, content: Content, where: Location) -> Iterator[ContentError]:
    known = {"log rule": {rule.id for rule in content.log_rules}, "signal": {signal.id for signal in content.signals}}
    for kind, name in _named(condition):
        if name not in known[kind]:
            yield ContentError(f"{asker} asks for {name!r}, which is no {kind}", location=where)


def _named(condition: Condition) -> Iterator[tuple[str, str]]:
    """The signals and log rules that a condition names."""
    if isinstance(condition, Leaf):
        yield "signal", condition.signal
        if condition.than_signal:
            yield "signal", condition.than_signal
    elif isinstance(condition, LogLeaf):
        yield "log rule", condition.rule
    elif isinstance(condition, Where):
        yield "signal", condition.signal
        yield from _named(condition.part)
    elif isinstance(condition, Not):
        yield from _named(condition.part)
    else:
        for part in condition.parts:
            yield from _named(part)
