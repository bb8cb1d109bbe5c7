"""Reads the three-valued conditions of playbooks and cause rules."""

from __future__ import annotations

from latencydoctor.content.reader import Mapping
from latencydoctor.model.playbook import All, AnyOf, Basis, Comparison, Condition, FirstKnown, Leaf, LogLeaf, Not, Where

_GROUPS: dict[str, type[All | AnyOf | FirstKnown]] = {"all": All, "any": AnyOf, "first": FirstKnown}
_COMPARISONS = tuple(one.value for one in Comparison if one is not Comparison.MEASURED)

NEVER = All(())
"""Stands for a condition that could not be read; a problem has been noted."""


def read_condition(node: Mapping, thresholds: frozenset[str]) -> Condition:
    """The condition a mapping holds; every number in it is a name out of `thresholds`.

    Beside any form may stand `where: <signal>`: then it only applies where that is measured, and is unknown elsewhere.
    `never: true` beside it says that nothing of the kind can be there, `always: true` that nothing speaks against it.
    """
    where = node.text("where", "")
    result = _read(node, thresholds)
    node.close()
    return Where(where, result) if where else result


def _read(node: Mapping, thresholds: frozenset[str]) -> Condition:
    kind = next((key for key in _GROUPS if key in node), None)
    if kind is not None:
        parts = tuple(read_condition(part, thresholds) for part in node.mappings(kind))
        if not parts:
            node.problem("an empty list of conditions answers nothing")
        return _GROUPS[kind](parts)
    if "not" in node:
        inner = node.mapping("not")
        return Not(read_condition(inner, thresholds)) if inner else NEVER
    if "log" in node:
        return LogLeaf(node.text("log"), node.whole("at_least", 1))
    for word, answer in (("never", AnyOf(())), ("always", All(()))):
        if word in node:
            if not node.flag(word) or "where" not in node:
                node.problem(f"{word} must be true and stand beside `where: <signal>`", word)
            return answer
    return _leaf(node, thresholds)


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
