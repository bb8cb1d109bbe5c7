"""Functions of an instant vector and of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from latencydoctor.evidence.promql.arithmetic import divide
from latencydoctor.evidence.promql.syntax import compile_pattern
from latencydoctor.evidence.promql.values import Element, PromqlError, Vector, distinct, get, put

_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_REFERENCE = re.compile(r"\$(?:\$|\{(\w+)\}|(\w+))", re.ASCII)


def _total_function(compute: Callable[[float], float]) -> Callable[[float], float]:
    """Python's functions raise where Go's give NaN or an infinity."""

    def guarded(value: float) -> float:
        try:
            return compute(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return guarded


def _rounded_to(compute: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: float(compute(value)) if math.isfinite(value) else value


def _logarithm(compute: Callable[[float], float]) -> Callable[[float], float]:
    guarded = _total_function(compute)
    return lambda value: -math.inf if value == 0 else guarded(value)


ONE_BY_ONE: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "ceil": _rounded_to(math.ceil),
    "floor": _rounded_to(math.floor),
    "sqrt": _total_function(math.sqrt),
    "exp": _total_function(math.exp),
    "ln": _logarithm(math.log),
    "log2": _logarithm(math.log2),
    "log10": _logarithm(math.log10),
    "sgn": lambda value: value if value == 0 or math.isnan(value) else math.copysign(1.0, value),
}


def clamp(vector: Vector, low: float, high: float) -> Vector:
    """Values between two bounds; nothing when the bounds are the wrong way round."""
    if low > high:
        return []
    return distinct([one.without_name(_within(one.value, low, high)) for one in vector])


def _within(value: float, low: float, high: float) -> float:
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        return math.nan
    return max(low, min(high, value))


def rounded(vector: Vector, nearest: float) -> Vector:
    """Values rounded to a multiple, halves upwards."""
    inverse = divide(1.0, nearest)
    floor = ONE_BY_ONE["floor"]
    return distinct([one.without_name(divide(floor(one.value * inverse + 0.5), inverse)) for one in vector])


def scalar(vector: Vector) -> float:
    """The one element's value; NaN when there is not exactly one."""
    return vector[0].value if len(vector) == 1 else math.nan


def label_replace(vector: Vector, target: str, replacement: str, source: str, pattern: str) -> Vector:
    """A label set from another one where that matches the pattern as a whole."""
    compiled = compile_pattern(pattern)
    _check_name(target)
    replaced: Vector = []
    for one in vector:
        found = compiled.fullmatch(one.get(source))
        if found is None:
            replaced.append(one)
        else:
            replaced.append(Element(put(one.labels, target, _expand(replacement, found)), one.value))
    return distinct(replaced)


def label_join(vector: Vector, target: str, separator: str, sources: Sequence[str]) -> Vector:
    """A label made of others."""
    _check_name(target)
    return distinct(
        [
            Element(put(one.labels, target, separator.join(get(one.labels, name) for name in sources)), one.value)
            for one in vector
        ]
    )


def _check_name(name: str) -> None:
    if not _LABEL_NAME.fullmatch(name):
        raise PromqlError(f"{name!r} is no label name")


def _expand(template: str, found: re.Match[str]) -> str:
    """`$1`, `${1}` and `$name` stand for groups, `$$` for a dollar; groups that there are not are empty."""

    def value(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        if name is None:
            return "$"
        try:
            return found[int(name) if name.isdigit() else name] or ""
        except IndexError:
            return ""

    return _REFERENCE.sub(value, template)
