"""Numbers in log lines: named groups whose suffix says the unit they are handed on in, whatever unit the line uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

_QUANTITY = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) {0,3}([A-Za-zµ]{0,5})", re.ASCII)
_MS = {"": 1.0, "ms": 1.0, "s": 1e3, "sec": 1e3, "us": 1e-3, "µs": 1e-3, "usec": 1e-3, "ns": 1e-6}
_BYTES = {
    "": 1.0,
    "b": 1.0,
    "bytes": 1.0,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "kib": 2.0**10,
    "mib": 2.0**20,
    "gib": 2.0**30,
    "tib": 2.0**40,
}
_SCALES = {"_ms": _MS, "_bytes": _BYTES}
_SEARCHED_CHARACTERS = 4096
"""Numbers stand near the start of a message; a bound keeps the search quick on lines of any length."""


def in_unit(text: str, name: str) -> float | None:
    """A figure as its name's unit (`_ms` milliseconds, `_bytes` bytes, anything else as it stands); None if unclear."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return None
    for suffix, scale in _SCALES.items():
        if name.endswith(suffix):
            # So written it is the kernel's unit, which means KiB.
            factor = 1024.0 if match[2] == "kB" and scale is _BYTES else scale.get(match[2].lower())
            return None if factor is None else float(match[1]) * factor
    return float(match[1]) if not match[2] else None


def find_numbers(patterns: Iterable[re.Pattern[str]], text: str) -> dict[str, float]:
    """Every figure that the patterns find in a line; of several patterns for one name the first that matches counts."""
    found: dict[str, float] = {}
    for pattern in patterns:
        match = pattern.search(text, 0, _SEARCHED_CHARACTERS)
        for name, raw in match.groupdict().items() if match else ():
            value = None if raw is None else in_unit(raw, name)
            if value is not None:
                found.setdefault(name, value)
    return found


def unbounded(pattern: str) -> str:
    """Why a number pattern could be slow on a hostile line, empty if it cannot.

    Python's own engine, which alone gives groups, backtracks; with bounded repeats only, and none of a group, the
    work a line can cause is bounded too.
    """
    bare = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", pattern)
    if re.search(r"[*+]|\{\d*,\}", bare):
        return "repeats without an upper bound (*, + or {n,}); write {0,9} or the like"
    if re.search(r"\)\{", bare):
        return "repeats a group"
    return ""
