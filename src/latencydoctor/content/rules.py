"""Reads `rules/logs/<area>/<id>.yaml`: one class of the log pyramid a file, every problem of the folder at once."""

from __future__ import annotations

import re

from latencydoctor.content.locate import ContentRoot, yaml_files
from latencydoctor.content.reader import Mapping, Problems, load_mapping
from latencydoctor.errors import Location
from latencydoctor.evidence.logs.quantities import unbounded
from latencydoctor.evidence.logs.scan import PatternError, match_lines
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import LogRule, NumberGate

STATUSES = ("stable", "test", "experimental")


def load_log_rules(root: ContentRoot, *, compiled: bool = False) -> tuple[LogRule, ...]:
    """All log rules of a content root, by id; raises `ContentErrors` with every problem and its place.

    `compiled` also tries each pattern with the engine, which takes half a second; without it a bad pattern is found,
    with its rule but not its line, by whoever compiles the rules to use them.
    """
    problems = Problems()
    rules = _read(root, problems, compiled)
    problems.raise_any()
    return rules


def _read(root: ContentRoot, problems: Problems, compiled: bool) -> tuple[LogRule, ...]:
    rules: dict[str, LogRule] = {}
    for path in yaml_files(root.rules / "logs"):
        top = load_mapping(path, problems, root.shown(path))
        if top is None:
            continue
        rule = _rule(top, compiled)
        if rule.id and rule.id != path.stem:
            top.problem(f"id is {rule.id!r} but the file is called {path.stem!r}; they must be the same", "id")
        if rule.id in rules:
            top.problem(f"another file has the id {rule.id!r} too", "id")
        rules[rule.id] = rule
    if not rules and not problems.found:
        shown = root.shown(root.rules / "logs")
        problems.add("there are no log rules", Location(shown), "A file a class: rules/logs/<area>/<id>.yaml.")
    return tuple(rules[rule_id] for rule_id in sorted(rules))


def _rule(top: Mapping, compiled: bool) -> LogRule:
    match = top.mapping("match")
    rule = LogRule(
        id=top.text("id"),
        title=top.text("title"),
        status=top.choice("status", STATUSES),
        level=Severity(top.choice("level", tuple(level.value for level in Severity))),
        patterns=_patterns(match, "any", required=True, compiled=compiled) if match else (),
        unless=_patterns(match, "unless", required=False, compiled=compiled) if match else (),
        numbers=_numbers(match) if match else (),
        gate=_gate(match) if match else None,
        meaning=top.text("meaning"),
        falsepositives=top.texts("falsepositives"),
        remedy=top.text("remedy"),
        references=top.texts("references"),
    )
    if match:
        match.close()
    top.close()
    return rule


def _patterns(match: Mapping, key: str, *, required: bool, compiled: bool) -> tuple[str, ...]:
    patterns = match.texts(key) if required else match.texts(key, ())
    if required and not patterns and key in match:
        match.problem("a rule without patterns matches nothing", key)
    kept = list(patterns)
    # Compiling them together is quick; only when that fails does it matter which one it was.
    while compiled and kept:
        try:
            match_lines(kept)
            break
        except PatternError as error:
            match.problem(f"{error.message}: {kept.pop(error.index)!r}", key, error.hint)
    return tuple(kept)


def _numbers(match: Mapping) -> tuple[str, ...]:
    kept: list[str] = []
    for pattern in match.texts("numbers", ()):
        reason = unbounded(pattern)
        try:
            groups = re.compile(pattern).groupindex
        except re.error as error:
            reason = f"is no regular expression: {error}"
        else:
            reason = reason or ("" if groups else "has no named group, such as (?P<queue_ms>...)")
        if reason:
            match.problem(f"the number pattern {pattern!r} {reason}", "numbers")
        else:
            kept.append(pattern)
    return tuple(kept)


def _gate(match: Mapping) -> NumberGate | None:
    gate = match.mapping("gate", None)
    if gate is None:
        return None
    if ("above" in gate) == ("at_least_number" in gate):
        gate.problem("a gate needs exactly one of: above, at_least_number")
    absent = gate.choice("when_absent", ("silent", "counts"), "silent")
    result = NumberGate(
        group=gate.text("number"),
        above=gate.number("above", 0.0),
        at_least_group=gate.text("at_least_number", ""),
        counts_when_absent=absent == "counts",
    )
    named = " ".join(match.texts("numbers", ()))
    for name in filter(None, (result.group, result.at_least_group)):
        if f"(?P<{name}>" not in named:
            gate.problem(f"no number pattern has a group {name!r}")
    gate.close()
    return result
