"""Reads the three-valued conditions of playbooks and cause rules."""

from __future__ import annotations

from latencydoctor.content.reader import Mapping
from latencydoctor.model.playbook import All, AnyOf, Basis, Comparison, Condition, FirstKnown, Leaf, LogLeaf, Not

_GROUPS: dict[str, type[All | AnyOf | FirstKnown]] = {"all": All, "any": AnyOf, "first": FirstKnown}
_COMPARISONS = tuple(one.value for one in Comparison)

NEVER = All(())
"""Stands for a condition that could not be read; a problem has been noted."""


def read_condition(node: Mapping, thresholds: frozenset[str]) -> Condition:
    """The condition a mapping holds; every number in it is a name out of `thresholds`."""
    kind = next((key for key in _GROUPS if key in node), None)
    if kind is not None:
        parts = tuple(read_condition(part, thresholds) for part in node.mappings(kind))
        result: Condition = _GROUPS[kind](parts)
        if not parts:
            node.problem("an empty list of conditions answers nothing")
    elif "not" in node:
        inner = node.mapping("not")
        result = Not(read_condition(inner, thresholds)) if inner else NEVER
    elif "log" in node:
        result = LogLeaf(node.text("log"), node.whole("at_least", 1))
    else:
        result = _leaf(node, thresholds)
    node.close()
    return result


def _leaf(node: Mapping, thresholds: frozenset[str]) -> Condition:
    signal = node.text("signal")
    basis = Basis(node.choice("of", tuple(one.value for one in Basis), Basis.VALUE.value))
    given = [name for name in _COMPARISONS if name in node]
    if len(given) != 1:
        node.problem(f"a comparison needs exactly one of: {', '.join(_COMPARISONS)}")
        return NEVER
    comparison = Comparison(given[0])
    than = node.text("than", "")
    if than:
        # `at_least: ratio` with `than: signal` multiplies the other signal by a named threshold.
        times = _threshold(node, given[0], thresholds)
        return Leaf(signal, comparison, basis, None, than, times)
    return Leaf(signal, comparison, basis, _threshold(node, given[0], thresholds), None)


def _threshold(node: Mapping, key: str, thresholds: frozenset[str]) -> str:
    name = node.text(key)
    if name and name not in thresholds:
        hint = "Add it to `thresholds:` at the top of the file; numbers have no place inside a condition."
        node.problem(f"no threshold is called {name!r}", key, hint)
    return name
