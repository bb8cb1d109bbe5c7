"""Numbers as people read them: one rounding and one unit style for every screen and file."""

from __future__ import annotations

from datetime import UTC, datetime

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def amount(value: float | None, unit: str) -> str:
    """A value with its unit; ratios (unit `ratio`) become per cent, absent values a dash."""
    if value is None:
        return "-"
    if unit == "ratio":
        return f"{_round(value * 100)} %"
    if unit == "ms" and abs(value) >= 10_000:
        return f"{_round(value / 1000)} s"
    if unit == "bytes":
        return _bytes(value)
    return f"{_round(value)} {unit}".rstrip()


def _round(value: float) -> str:
    """Three significant digits, never an exponent: 0.0312, 4.57, 86.2, 2140."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 3
    if abs(value) >= 100:
        digits = 0
    elif abs(value) >= 10:
        digits = 1
    elif abs(value) >= 1:
        digits = 2
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"


def _bytes(value: float) -> str:
    for name in _BINARY:
        if abs(value) < 1024 or name == _BINARY[-1]:
            return f"{_round(value)} {name}"
        value /= 1024
    raise AssertionError("the last unit takes everything")


def clock(time_s: float | None) -> str:
    """Time of day in UTC, to the second."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%H:%M:%S") if time_s is not None else "--:--:--"


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
