"""Ratios as people read them: the one place that writes a per cent."""

from __future__ import annotations

import math

_NOTHING = 1e-9
"""Below this in any unit there is nothing but the error of floating-point sums."""


def rounded(value: float, finer: int = 0) -> str:
    """Three significant digits, no exponent: 4.57, 86.2, 2,140; three decimals below 1, but never a false zero.

    `finer` is how many digits more than usual are shown.
    """
    size = abs(value)
    if size < _NOTHING:
        return "0"
    if size >= 99.95:
        return _short(f"{value:,.{finer}f}")
    # A rare event is one in an hour, 0.00028/s: it must not read as none.
    digits = 1 - math.floor(math.log10(size)) if size < 0.001 else 3 if size < 1 else 2 if size < 10 else 1
    return _short(f"{value:.{digits + finer}f}")


def _short(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(ratio: float, decimals: int | None = None, finer: int = 0) -> str:
    """A ratio of 0..1 in per cent, with a blank before the sign; three significant digits unless `decimals` says.

    `finer` is how many of those more are shown.
    """
    return f"{rounded(ratio * 100, finer) if decimals is None else f'{ratio * 100:.{decimals}f}'} %"
