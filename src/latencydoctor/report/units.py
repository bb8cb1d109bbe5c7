"""Numbers as people read them: one rounding and one unit style for every screen and file."""

from __future__ import annotations

import math
from datetime import UTC, datetime

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_NOTHING = 1e-9
"""Below this in any unit there is nothing but the error of floating-point sums."""


def amount(value: float | None, unit: str) -> str:
    """A value with its unit; ratios (unit `ratio`) become per cent, absent values a dash."""
    if value is None:
        return "-"
    if unit == "ratio":
        return f"{_round(value * 100)} %"
    if unit == "ms" and round(abs(value)) >= 10_000:
        return f"{_round(value / 1000)} s"
    if unit == "bytes":
        return _bytes(value)
    return f"{_round(value)} {unit}".rstrip()


def _round(value: float) -> str:
    """Three significant digits, no exponent: 4.57, 86.2, 2,140; three decimals below 1, but never a false zero."""
    size = abs(value)
    if size < _NOTHING:
        return "0"
    if size >= 99.95:
        return f"{value:,.0f}"
    # A rare event is one in an hour, 0.00028/s: it must not read as none.
    digits = 1 - math.floor(math.log10(size)) if size < 0.001 else 3 if size < 1 else 2 if size < 10 else 1
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def _bytes(value: float) -> str:
    for name in _BINARY:
        if round(abs(value)) < 1024 or name == _BINARY[-1]:
            return f"{_round(value)} {name}"
        value /= 1024
    raise AssertionError("the last unit takes everything")


def clock(time_s: float | None) -> str:
    """Time of day in UTC, to the second."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%H:%M:%S") if time_s is not None else "--:--:--"


def day(time_s: float) -> str:
    """Date in UTC."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d")


def instant(time_s: float) -> str:
    """Date and time in UTC, to the second, RFC 3339."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """A length of time: 42 s, 3 min 10 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
