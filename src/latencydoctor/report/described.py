"""What there is to say about one rule, dialect, cause or playbook: names and texts for a page."""

from __future__ import annotations

from latencydoctor.model.cause import CauseRule
from latencydoctor.model.playbook import All, AnyOf, Basis, Condition, FirstKnown, Leaf, LogLeaf, Not, Playbook, Where
from latencydoctor.model.rule import Dialect, LogRule
from latencydoctor.report.listing import Fact

UNVERIFIED = "not verified against a real server"

_SIGNS = {"above": ">", "below": "<", "at_least": "≥", "at_most": "≤"}
_BASES = {
    Basis.VALUE: "{}",
    Basis.BASELINE: "{} before",
    Basis.RATIO_TO_BASELINE: "{} / before",
    Basis.RISE: "{} - before",
}


def facts_of(one: LogRule | Dialect | CauseRule | Playbook) -> tuple[Fact, ...]:
    """Everything that a reader of `rules show` should see, in order."""
    match one:
        case LogRule():
            return _log_rule(one)
        case CauseRule():
            return _cause(one)
        case Playbook():
            return _playbook(one)
        case Dialect():
            return _dialect(one)


def _cause(rule: CauseRule) -> tuple[Fact, ...]:
    thresholds = dict(rule.thresholds)
    return (
        ("id", rule.id),
        ("title", rule.title),
        ("kind", f"{rule.kind.value}{', tells where and not why' if rule.is_generic else ''}"),
        ("signature", rule.signature),
        ("meaning", rule.meaning),
        ("do", rule.advice),
        ("do not", rule.not_this.removeprefix("Do not ")),
        ("more replicas", {"cures": "cure it", "wrong": "are the wrong reflex"}.get(rule.scaling.value, "buy time")),
        ("fix", rule.fix),
        ("a forecast sets back", rule.undo.value if rule.undo else ""),
        ("confirmed by", tuple(_lines(rule.confirm, thresholds))),
        ("refuted by", tuple(_lines(rule.refute, thresholds)) if rule.refute is not None else ()),
        ("thresholds", tuple(f"{rule.id}.{name} = {value:g}" for name, value in rule.thresholds)),
        ("moves", rule.symptoms),
        ("explains", rule.explains),
        ("references", rule.references),
    )


def _lines(condition: Condition, thresholds: dict[str, float], depth: int = 0) -> list[str]:
    """A condition, one comparison a line, indented by what holds it together."""
    indent = "  " * depth
    match condition:
        case Leaf():
            return [indent + _leaf(condition, thresholds)]
        case LogLeaf(rule=rule, at_least=at_least):
            return [f"{indent}log events {rule} ≥ {at_least}"]
        case Where(signal=signal, part=All(parts=())):
            return [f"{indent}always where {signal} is measured"]
        case Where(signal=signal, part=AnyOf(parts=())):
            return [f"{indent}never where {signal} is measured"]
        case Where(signal=signal, part=part):
            return [f"{indent}where {signal} is measured:", *_lines(part, thresholds, depth + 1)]
        case Not(part=part):
            return [f"{indent}not:", *_lines(part, thresholds, depth + 1)]
        case All(parts=parts):
            word = "all of:"
        case AnyOf(parts=parts):
            word = "any of:"
        case FirstKnown(parts=parts):
            word = "the first that can be told of:"
    return [indent + word, *(line for part in parts for line in _lines(part, thresholds, depth + 1))]


def _leaf(leaf: Leaf, thresholds: dict[str, float]) -> str:
    bound = f"{thresholds[leaf.threshold]:g}" if leaf.threshold else f"{thresholds[leaf.times]:g} x {leaf.than_signal}"
    return f"{_BASES[leaf.basis].format(leaf.signal)} {_SIGNS[leaf.comparison.value]} {bound}"


def _playbook(playbook: Playbook) -> tuple[Fact, ...]:
    nodes = [f"{node.id}: {node.text}" for node in playbook.questions]
    nodes += [f"{node.id}: {node.title}" for node in playbook.verdicts]
    return (
        ("id", playbook.id),
        ("title", playbook.title),
        ("symptom", playbook.symptom),
        ("thresholds", tuple(f"{name} = {value:g}" for name, value in playbook.thresholds)),
        ("nodes", tuple(nodes)),
    )


def _log_rule(rule: LogRule) -> tuple[Fact, ...]:
    gate = ""
    if rule.gate is not None:
        bound = f"at least {rule.gate.at_least_group}" if rule.gate.at_least_group else f"above {rule.gate.above:g}"
        absent = "counts" if rule.gate.counts_when_absent else "does not count"
        gate = f"{rule.gate.group} {bound}; a line without it {absent}"
    return (
        ("id", rule.id),
        ("title", rule.title),
        ("level", rule.level.value),
        ("status", rule.status),
        ("meaning", rule.meaning),
        ("do", rule.remedy),
        ("matches", rule.patterns),
        ("unless", rule.unless),
        ("gate", gate),
        ("mistaken for", rule.falsepositives),
        ("references", rule.references),
    )


def _dialect(dialect: Dialect) -> tuple[Fact, ...]:
    return (
        ("id", dialect.id),
        ("title", dialect.title),
        ("status", dialect.status),
        ("verified", dialect.verified or UNVERIFIED),
        ("detected by", dialect.detect),
        ("signals", tuple(f"{one.signal} = {one.expr}" for one in dialect.signals)),
        ("missing", tuple(f"{one.signal}: {one.reason}" for one in dialect.missing)),
        ("not on the recorded page", tuple(f"{one.signal}: {one.reason}" for one in dialect.unrecorded)),
    )
