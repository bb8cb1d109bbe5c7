"""Aggregations over an instant vector: `sum by (...)` and the like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from latencydoctor.evidence.promql.arithmetic import quantile, total, variance
from latencydoctor.evidence.promql.ranges import greatest, least
from latencydoctor.evidence.promql.syntax import Aggregation
from latencydoctor.evidence.promql.values import NAME, Element, Labels, UnsupportedError, Vector, drop, keep


def _variance(values: Sequence[float]) -> float:
    # One value does not vary, be it infinite or no number.
    return variance(values) if len(values) > 1 else 0.0


_SIMPLE: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": total,
    "avg": lambda values: total(values) / len(values),
    "min": least,
    "max": greatest,
    "count": lambda values: float(len(values)),
    "group": lambda _values: 1.0,
    "stddev": lambda values: math.sqrt(_variance(values)),
    "stdvar": _variance,
}


def aggregate(node: Aggregation, vector: Vector, parameter: float | None) -> Vector:
    """One element for each group of labels, or the chosen ones of each group for `topk` and `bottomk`."""
    groups: dict[Labels, Vector] = {}
    for element in vector:
        groups.setdefault(_group(node, element.labels), []).append(element)
    if node.operator in ("topk", "bottomk") and parameter is not None:
        return [one for group in groups.values() for one in _extremes(node, group, parameter)]
    if node.operator == "quantile" and parameter is not None:
        return [Element(labels, quantile(parameter, [one.value for one in group])) for labels, group in groups.items()]
    compute = _SIMPLE.get(node.operator)
    if compute is None:
        raise UnsupportedError(f"the aggregation {node.operator}")
    return [Element(labels, compute([one.value for one in group])) for labels, group in groups.items()]


def _group(node: Aggregation, labels: Labels) -> Labels:
    return drop(labels, (*node.labels, NAME)) if node.without else keep(labels, node.labels)


def _extremes(node: Aggregation, group: Vector, parameter: float) -> Vector:
    """The `parameter` largest or smallest; NaN comes last either way."""
    sign = -1 if node.operator == "topk" else 1
    ordered = sorted(group, key=lambda one: (math.isnan(one.value), sign * one.value, one.labels))
    return ordered[: max(int(parameter), 0)] if math.isfinite(parameter) else ordered
