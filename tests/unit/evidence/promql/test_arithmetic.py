"""Arithmetic as Go has it: never an exception."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.promql.arithmetic import ARITHMETIC, divide, power, quantile, total, variance
from latencydoctor.evidence.promql.functions import ONE_BY_ONE

ANY = st.floats(allow_nan=True, allow_infinity=True)


@given(left=ANY, right=ANY, name=st.sampled_from(sorted(ARITHMETIC)))
def test_no_operation_raises(left: float, right: float, name: str) -> None:
    assert isinstance(ARITHMETIC[name](left, right), float)


@given(value=ANY, name=st.sampled_from(sorted(ONE_BY_ONE)))
def test_no_function_raises(value: float, name: str) -> None:
    assert isinstance(ONE_BY_ONE[name](value), float)


@given(values=st.lists(ANY, min_size=1), share=ANY)
def test_no_summary_raises(values: list[float], share: float) -> None:
    assert isinstance(total(values), float)
    assert isinstance(variance(values), float)
    assert isinstance(quantile(share, values), float)


@pytest.mark.parametrize(
    ("left", "right", "quotient"),
    [(1.0, 0.0, math.inf), (-1.0, 0.0, -math.inf), (1.0, -0.0, -math.inf), (6.0, 3.0, 2.0)],
)
def test_division(left: float, right: float, quotient: float) -> None:
    assert divide(left, right) == quotient


def test_zero_by_zero_is_no_number() -> None:
    assert math.isnan(divide(0.0, 0.0))


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (0.0, -1.0, math.inf),
        (-0.0, -1.0, -math.inf),
        (-10.0, 309.0, -math.inf),
        (10.0, 309.0, math.inf),
        (2.0, 3.0, 8.0),
    ],
)
def test_powers(left: float, right: float, result: float) -> None:
    assert power(left, right) == result


def test_the_root_of_a_negative_number_is_none() -> None:
    assert math.isnan(power(-8.0, 1 / 3))


def test_quantiles_interpolate() -> None:
    assert quantile(0.5, [4.0, 1.0, 2.0, 3.0]) == 2.5
    assert quantile(2.0, [1.0]) == math.inf
    assert quantile(-1.0, [1.0]) == -math.inf
