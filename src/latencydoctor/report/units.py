"""Numbers as people read them: one rounding and one unit style for every screen and file."""

from __future__ import annotations

from datetime import UTC, datetime

from latencydoctor.percent import percent, rounded

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_FINEST = 6
"""Two figures that are the same to so many further digits are the same."""


def amount(value: float | None, unit: str, finer: int = 0) -> str:
    """A value with its unit; ratios (unit `ratio`) become per cent, absent values a dash.

    `finer` is how many digits more than usual are shown.
    """
    if value is None:
        return "-"
    if unit == "ratio":
        return percent(value, finer=finer)
    if unit == "ms" and round(abs(value)) >= 10_000:
        return f"{rounded(value / 1000, finer)} s"
    if unit == "bytes":
        return _bytes(value, finer)
    return f"{rounded(value, finer)} {unit}".rstrip()


def told_apart(value: float, other: float, unit: str) -> tuple[str, str]:
    """Two figures that are compared, with as many digits as it takes to see which is more: 85.01 % beside 85 %."""
    for finer in range(_FINEST):
        told = amount(value, unit, finer), amount(other, unit, finer)
        if told[0] != told[1]:
            return told
    return amount(value, unit), amount(other, unit)


def _bytes(value: float, finer: int) -> str:
    for name in _BINARY:
        if round(abs(value)) < 1024 or name == _BINARY[-1]:
            return f"{rounded(value, finer)} {name}"
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


def interval(low: float | None, high: float | None, unit: str) -> str:
    """From where to where a figure is expected; without an upper end it has no bound, and without a lower it is ""."""
    if low is None:
        return ""
    return f"{amount(low, unit)} to {'no bound' if high is None else amount(high, unit)}"
