"""Arithmetic on floats as Go does it: no exceptions, infinities and NaN instead."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence


def divide(left: float, right: float) -> float:
    """A quotient; by zero it is infinite, or NaN for zero by zero."""
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def modulo(left: float, right: float) -> float:
    """The remainder with the dividend's sign."""
    if right == 0 or math.isinf(left):
        return math.nan
    return math.fmod(left, right)


def power(left: float, right: float) -> float:
    """A power; NaN where there is no real one."""
    odd = right % 2 == 1 if math.isfinite(right) else False
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and odd else math.inf
    except ValueError:
        if left == 0:
            return math.copysign(math.inf, left) if odd else math.inf
        return math.nan


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "%": modulo,
    "^": power,
}

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


def total(values: Sequence[float]) -> float:
    """The sum, exact to the last place where all are finite."""
    if all(math.isfinite(value) for value in values):
        try:
            return math.fsum(values)
        except OverflowError:
            return sum(values)
    # fsum refuses infinities of both signs; their sum is NaN.
    return sum(values)


def variance(values: Sequence[float]) -> float:
    """The population variance."""
    mean = total(values) / len(values)
    return total([(value - mean) * (value - mean) for value in values]) / len(values)


def quantile(share: float, values: Sequence[float]) -> float:
    """The quantile by linear interpolation; infinite outside 0..1, NaN values lowest."""
    if not values or math.isnan(share):
        return math.nan
    if not 0 <= share <= 1:
        return math.copysign(math.inf, share)
    ordered = sorted(values, key=lambda value: (not math.isnan(value), value))
    rank = share * (len(ordered) - 1)
    lower = math.floor(rank)
    upper = min(lower + 1, len(ordered) - 1)
    weight = rank - lower
    return ordered[lower] * (1 - weight) + ordered[upper] * weight
