"""Binary operators between scalars and vectors, with Prometheus's rules of which elements belong together."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.evidence.promql.arithmetic import ARITHMETIC, COMPARISONS
from latencydoctor.evidence.promql.syntax import Binary
from latencydoctor.evidence.promql.values import (
    NAME,
    Element,
    Labels,
    PromqlError,
    UnsupportedError,
    Vector,
    distinct,
    drop,
    get,
    keep,
    make_labels,
    put,
    shown,
)

SET_OPERATORS = ("and", "or", "unless")


def signature(node: Binary, labels: Labels) -> Labels:
    """The part of an element's labels by which it finds its partner."""
    return drop(labels, (*node.labels, NAME)) if node.ignoring else keep(labels, node.labels)


def combine_sets(node: Binary, left: Vector, right: Vector) -> Vector:
    """`and`, `or`, `unless`: elements pass as they are."""
    on_left = {signature(node, element.labels) for element in left}
    on_right = {signature(node, element.labels) for element in right}
    if node.operator == "or":
        return [*left, *(element for element in right if signature(node, element.labels) not in on_left)]
    wanted = node.operator == "and"
    return [element for element in left if (signature(node, element.labels) in on_right) is wanted]


def combine_scalars(node: Binary, left: float, right: float) -> float:
    """Two numbers; comparisons of numbers are 0 or 1."""
    outcome = _compute(node, left, right)
    return float(outcome.kept) if node.operator in COMPARISONS else outcome.value


def combine_with_scalar(node: Binary, vector: Vector, scalar: float, *, swapped: bool) -> Vector:
    """Each element with one number; `swapped` when the number stands on the left."""
    combined: Vector = []
    for element in vector:
        pair = (scalar, element.value) if swapped else (element.value, scalar)
        outcome = _compute(node, *pair)
        if node.as_bool or node.operator in ARITHMETIC:
            combined.append(element.without_name(float(outcome.kept) if node.as_bool else outcome.value))
        elif outcome.kept:
            combined.append(element)
    return distinct(combined)


def combine_vectors(node: Binary, left: Vector, right: Vector) -> Vector:
    """Elements of equal signature; `PromqlError` where it is not clear which belong together."""
    if not left or not right:
        # Nothing can match, so nothing is ambiguous either.
        return []
    many, one = (right, left) if node.many == "right" else (left, right)
    partners: dict[Labels, Element] = {}
    for element in one:
        key = signature(node, element.labels)
        if key in partners:
            side = "left" if node.many == "right" else "right"
            raise PromqlError(f"several series on the {side} side of {node.operator} match {shown(key)}")
        partners[key] = element
    combined: Vector = []
    seen: set[Labels] = set()
    for element in many:
        key = signature(node, element.labels)
        partner = partners.get(key)
        if partner is None:
            continue
        sides = (partner, element) if node.many == "right" else (element, partner)
        outcome = _compute(node, sides[0].value, sides[1].value)
        if not (outcome.kept or node.as_bool):
            continue
        labels = _result_labels(node, element.labels, partner.labels)
        unique = labels if node.many else key
        if unique in seen:
            raise PromqlError(f"several series on one side of {node.operator} match {shown(unique)}")
        seen.add(unique)
        combined.append(Element(labels, float(outcome.kept) if node.as_bool else outcome.value))
    return combined


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: float
    kept: bool


def _compute(node: Binary, left: float, right: float) -> _Outcome:
    if compute := ARITHMETIC.get(node.operator):
        return _Outcome(compute(left, right), True)
    if compare := COMPARISONS.get(node.operator):
        return _Outcome(left, compare(left, right))
    raise UnsupportedError(f"the operator {node.operator}")


def _result_labels(node: Binary, many: Labels, one: Labels) -> Labels:
    labels = drop(many, (NAME,)) if node.as_bool or node.operator in ARITHMETIC else many
    if not node.many:
        return drop(labels, node.labels) if node.ignoring else keep(labels, node.labels)
    for name in node.copied:
        labels = put(labels, name, get(one, name))
    return make_labels(labels)
