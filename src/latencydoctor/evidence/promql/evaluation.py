"""Evaluates a parsed expression at a moment, over recorded pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from latencydoctor.evidence.promql import functions
from latencydoctor.evidence.promql.aggregation import aggregate
from latencydoctor.evidence.promql.histogram import histogram_quantile
from latencydoctor.evidence.promql.matching import (
    SET_OPERATORS,
    combine_scalars,
    combine_sets,
    combine_vectors,
    combine_with_scalar,
)
from latencydoctor.evidence.promql.ranges import QUANTILE_OVER_TIME, RANGE_FUNCTIONS, Span, quantile_over_time
from latencydoctor.evidence.promql.recording import Recording
from latencydoctor.evidence.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Negation,
    Number,
    RangeSelector,
    Selector,
    Text,
)
from latencydoctor.evidence.promql.values import (
    NAME,
    Element,
    Labels,
    PromqlError,
    Samples,
    UnsupportedError,
    Vector,
    distinct,
    drop,
    make_labels,
)

_KEEPS_NAME = "last_over_time"


@dataclass(frozen=True, slots=True)
class Moment:
    """The samples there are, and the time as of which they are looked at."""

    recording: Recording
    at_ms: int

    def value(self, node: Expression) -> float | Vector:
        """A number or an instant vector; `PromqlError` where Prometheus would refuse."""
        match node:
            case Number(value):
                return value
            case Selector():
                return [Element(labels, value) for labels, _, value in self.newest(node)]
            case Negation(operand):
                inner = self.value(operand)
                return -inner if isinstance(inner, float) else distinct([one.without_name(-one.value) for one in inner])
            case Aggregation():
                number = None if isinstance(node.parameter, Text | None) else self.number(node.parameter)
                return aggregate(node, self.vector(node.operand), number)
            case Binary():
                return self._binary(node)
            case Call():
                return self._call(node)
            case Text() | RangeSelector():
                raise PromqlError("a string or a range is no result of its own")

    def vector(self, node: Expression) -> Vector:
        """An instant vector; the parser has seen to it that it is one."""
        value = self.value(node)
        if isinstance(value, float):
            raise PromqlError("a vector is needed where there is a number")
        return value

    def number(self, node: Expression) -> float:
        """A scalar."""
        value = self.value(node)
        if not isinstance(value, float):
            raise PromqlError("a number is needed where there is a vector")
        return value

    def samples(self, node: Expression) -> list[Samples]:
        """The samples of a range selector."""
        span = self._span(node)
        return (
            self.recording.range(node.selector, span.start_ms, span.end_ms) if isinstance(node, RangeSelector) else []
        )

    def newest(self, node: Selector) -> list[tuple[Labels, int, float]]:
        """The newest sample of each series and its time."""
        return self.recording.instant(node, self.at_ms - node.offset_ms)

    def _binary(self, node: Binary) -> float | Vector:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, float):
            if isinstance(right, float):
                return combine_scalars(node, left, right)
            return combine_with_scalar(node, right, left, swapped=True)
        if isinstance(right, float):
            return combine_with_scalar(node, left, right, swapped=False)
        if node.operator in SET_OPERATORS:
            return combine_sets(node, left, right)
        return combine_vectors(node, left, right)

    def _call(self, node: Call) -> float | Vector:
        if node.function in RANGE_FUNCTIONS:
            return self._over_range(node)
        if compute := functions.ONE_BY_ONE.get(node.function):
            return distinct([one.without_name(compute(one.value)) for one in self.vector(node.arguments[0])])
        special = _SPECIAL.get(node.function)
        if special is None:
            raise UnsupportedError(f"the function {node.function}")
        return special(self, node)

    def _over_range(self, node: Call) -> Vector:
        compute, span = RANGE_FUNCTIONS[node.function], self._span(node.arguments[0])
        result: Vector = []
        for held in self.samples(node.arguments[0]):
            value = compute(held, span)
            if value is not None:
                labels = held.labels if node.function == _KEEPS_NAME else drop(held.labels, (NAME,))
                result.append(Element(labels, value))
        return distinct(result)

    def _span(self, node: Expression) -> Span:
        if not isinstance(node, RangeSelector):
            raise PromqlError("a range is needed")
        end_ms = self.at_ms - node.selector.offset_ms
        return Span(end_ms - node.range_ms, end_ms)


def _quantile_over_time(moment: Moment, node: Call) -> Vector:
    share = moment.number(node.arguments[0])
    samples = moment.samples(node.arguments[1])
    return distinct([Element(drop(held.labels, (NAME,)), quantile_over_time(share, held)) for held in samples])


def _histogram_quantile(moment: Moment, node: Call) -> Vector:
    return histogram_quantile(moment.number(node.arguments[0]), moment.vector(node.arguments[1]))


def _clamp(moment: Moment, node: Call) -> Vector:
    bounds = [moment.number(argument) for argument in node.arguments[1:]]
    low = -math.inf if node.function == "clamp_max" else bounds[0]
    high = math.inf if node.function == "clamp_min" else bounds[-1]
    return functions.clamp(moment.vector(node.arguments[0]), low, high)


def _round(moment: Moment, node: Call) -> Vector:
    nearest = moment.number(node.arguments[1]) if len(node.arguments) > 1 else 1.0
    return functions.rounded(moment.vector(node.arguments[0]), nearest)


def _timestamp(moment: Moment, node: Call) -> Vector:
    operand = node.arguments[0]
    if isinstance(operand, Selector):
        times = [Element(drop(labels, (NAME,)), time_ms / 1000) for labels, time_ms, _ in moment.newest(operand)]
        return distinct(times)
    # What was computed has no time of its own but that of the evaluation.
    return distinct([one.without_name(moment.at_ms / 1000) for one in moment.vector(operand)])


def _absent(moment: Moment, node: Call) -> Vector:
    operand = node.arguments[0]
    there = moment.samples(operand) if node.function == "absent_over_time" else moment.vector(operand)
    if there:
        return []
    selector = operand.selector if isinstance(operand, RangeSelector) else operand
    matchers = selector.matchers if isinstance(selector, Selector) else ()
    names = [one.name for one in matchers]
    told = [
        (one.name, one.value)
        for one in matchers
        if not one.pattern and not one.negated and one.name != NAME and names.count(one.name) == 1
    ]
    return [Element(make_labels(told), 1.0)]


def _text(node: Expression) -> str:
    if not isinstance(node, Text):
        raise PromqlError("a string is needed")
    return node.value


def _label_replace(moment: Moment, node: Call) -> Vector:
    target, replacement, source, pattern = (_text(argument) for argument in node.arguments[1:])
    return functions.label_replace(moment.vector(node.arguments[0]), target, replacement, source, pattern)


def _label_join(moment: Moment, node: Call) -> Vector:
    target, separator, *sources = (_text(argument) for argument in node.arguments[1:])
    return functions.label_join(moment.vector(node.arguments[0]), target, separator, sources)


_SPECIAL: dict[str, Callable[[Moment, Call], float | Vector]] = {
    "histogram_quantile": _histogram_quantile,
    QUANTILE_OVER_TIME: _quantile_over_time,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "round": _round,
    "scalar": lambda moment, node: functions.scalar(moment.vector(node.arguments[0])),
    "vector": lambda moment, node: [Element((), moment.number(node.arguments[0]))],
    "time": lambda moment, _node: moment.at_ms / 1000,
    "timestamp": _timestamp,
    "absent": _absent,
    "absent_over_time": _absent,
    "label_replace": _label_replace,
    "label_join": _label_join,
}
