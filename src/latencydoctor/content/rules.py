"""Reads `rules/logs/<area>/<id>.yaml`: one class of the log pyramid a file, every problem of the folder at once."""

from __future__ import annotations

from dataclasses import replace

from latencydoctor.content.locate import ContentRoot, yaml_files
from latencydoctor.content.log_match import Match, read_matches
from latencydoctor.content.reader import Mapping, Problems, load_mapping
from latencydoctor.errors import Location
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import LogRule

STATUSES = ("stable", "test", "experimental")


def load_log_rules(root: ContentRoot, *, compiled: bool = False) -> tuple[LogRule, ...]:
    """All log rules of a content root, by id; raises `ContentErrors` with every problem and its place.

    `compiled` also tries each pattern with the engine, which takes half a second, and that `echo_of` names rules there
    are; without it a bad pattern is found, with its rule but not its line, by whoever compiles the rules to use them.
    """
    problems = Problems()
    rules = _read(root, problems, compiled)
    problems.raise_any()
    return rules


def _read(root: ContentRoot, problems: Problems, compiled: bool) -> tuple[LogRule, ...]:
    rules: dict[str, LogRule] = {}
    tops: dict[str, Mapping] = {}
    for path in yaml_files(root.rules / "logs"):
        top = load_mapping(path, problems, root.shown(path))
        if top is None:
            continue
        rule = _rule(top, compiled)
        if rule.id and rule.id != path.stem:
            top.problem(f"id is {rule.id!r} but the file is called {path.stem!r}; they must be the same", "id")
        if rule.id in rules:
            top.problem(f"another file has the id {rule.id!r} too", "id")
        rules[rule.id], tops[rule.id] = rule, top
    if not rules and not problems.found:
        shown = root.shown(root.rules / "logs")
        problems.add("there are no log rules", Location(shown), "A file a class: rules/logs/<area>/<id>.yaml.")
    if compiled:
        _check_echoes(rules, tops)
    return tuple(rules[rule_id] for rule_id in sorted(rules))


def _check_echoes(rules: dict[str, LogRule], tops: dict[str, Mapping]) -> None:
    """An echo needs the rule that it echoes, and no two rules may echo each other: neither would be raised."""
    for rule_id, rule in rules.items():
        for original in rule.echo_of:
            if original not in rules:
                tops[rule_id].problem(f"echo_of names {original!r}, which is no log rule", "echo_of")
            elif rules[original].benign:
                tops[rule_id].problem(f"echo_of names {original!r}, which is benign and never raised", "echo_of")
            elif rule_id in _originals(original, rules):
                tops[rule_id].problem(f"echo_of: {rule_id!r} and {original!r} are echoes of each other", "echo_of")


def _originals(rule_id: str, rules: dict[str, LogRule]) -> set[str]:
    """The rule, and all that it echoes directly or through others."""
    found: set[str] = set()
    waiting = [rule_id]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += rules[one].echo_of if one in rules else ()
    return found


def _rule(top: Mapping, compiled: bool) -> LogRule:
    benign = top.flag("benign", False)
    block = top.mapping("match")
    matches = read_matches(block, compiled=compiled, benign=benign) if block else ()
    level = Severity(top.choice("level", tuple(level.value for level in Severity)))
    echo_of = top.texts("echo_of", ())
    if benign and level is not Severity.INFO:
        top.problem(f"level is {level.value!r}, but a benign rule raises nothing", "level", "Write level: INFO.")
    if benign and echo_of:
        top.problem("a benign rule raises nothing, so it cannot be an echo", "echo_of")
    bare = LogRule(
        id=top.text("id"),
        title=top.text("title"),
        status=top.choice("status", STATUSES),
        level=level,
        patterns=(),
        unless=(),
        numbers=(),
        gate=None,
        meaning=top.text("meaning"),
        falsepositives=top.texts("falsepositives"),
        remedy=top.text("remedy", "") if benign else top.text("remedy"),
        references=top.texts("references"),
        benign=benign,
        echo_of=echo_of,
    )
    top.close()
    ways = [_with(bare, match) for match in matches] or [bare]
    return replace(ways[0], variants=tuple(ways[1:]))


def _with(rule: LogRule, match: Match) -> LogRule:
    return replace(
        rule,
        patterns=match.patterns,
        unless=match.unless,
        numbers=match.numbers,
        gate=match.gate,
        level_at_least=match.level_at_least,
        level_at_most=match.level_at_most,
        programs=match.programs,
        statuses=match.statuses,
        burst=match.burst,
        climbs=match.climbs,
        only_after=match.only_after,
        echoes=match.echoes,
        not_after=match.not_after,
        recovered_by=match.recovered_by,
        real_when=match.real_when,
    )
