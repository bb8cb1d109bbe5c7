"""One rounding and one unit style."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import latencydoctor
from latencydoctor.percent import percent
from latencydoctor.report.units import amount, clock, instant, span, told_apart


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (None, "ms", "-"),
        (0.0, "ms", "0 ms"),
        (0.0312, "ms", "0.031 ms"),
        (0.000312, "eps", "0.00031 eps"),
        (0.000004, "ratio", "0.0004 %"),
        (1e-12, "ms", "0 ms"),
        (-1e-12, "ms", "0 ms"),
        (999.7, "ms", "1,000 ms"),
        (9_999.9, "ms", "10 s"),
        (1023.9, "bytes", "1 KiB"),
        (4.567, "ms", "4.57 ms"),
        (86.25, "ms", "86.2 ms"),
        (412.0, "ms", "412 ms"),
        (2140.4, "ms", "2,140 ms"),
        (12_345.0, "ms", "12.3 s"),
        (0.29, "ratio", "29 %"),
        (0.005, "ratio", "0.5 %"),
        (1.0, "ratio", "100 %"),
        (8.0, "", "8"),
        (512.0, "bytes", "512 B"),
        (1024.0**2 * 1.5, "bytes", "1.5 MiB"),
        (1024.0**5 * 3, "bytes", "3,072 TiB"),
        (-3.5, "ms", "-3.5 ms"),
    ],
)
def test_amounts(value: float | None, unit: str, expected: str) -> None:
    assert amount(value, unit) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.4, "0 s"), (59.4, "59 s"), (190.0, "3 min 10 s"), (7500.0, "2 h 5 min")]
)
def test_spans(seconds: float, expected: str) -> None:
    assert span(seconds) == expected


def test_times_are_utc() -> None:
    assert clock(1_800_000_000.0) == "08:00:00"
    assert instant(1_800_000_000.0) == "2027-01-15T08:00:00Z"
    assert clock(None) == "--:--:--"


def test_every_per_cent_is_written_by_one_function() -> None:
    written = re.compile(r":[^{}\"']*\.\d%\}")
    source = Path(latencydoctor.__file__).parent
    others = [path.name for path in source.rglob("*.py") if written.search(path.read_text(encoding="utf-8"))]
    assert others == []


@pytest.mark.parametrize(
    ("ratio", "decimals", "text"),
    [(0.5, 0, "50 %"), (0.0012, 2, "0.12 %"), (0.115, None, "11.5 %"), (1.0, None, "100 %"), (0.0, None, "0 %")],
)
def test_a_per_cent_has_a_blank_before_its_sign(ratio: float, decimals: int | None, text: str) -> None:
    assert percent(ratio, decimals) == text


@pytest.mark.parametrize(
    ("value", "other", "unit", "expected"),
    [
        (0.850004, 0.85, "ratio", ("85.0004 %", "85 %")),
        (1000.4, 1000.0, "ms", ("1,000.4 ms", "1,000 ms")),
        (12_000_100.0, 12_000_000.0, "ms", ("12,000.1 s", "12,000 s")),
        (1024.2**3, 1024.0**3, "bytes", ("1.001 GiB", "1 GiB")),
        (930.28, 50.0, "ms", ("930 ms", "50 ms")),
        (2.0, 2.0, "requests", ("2 requests", "2 requests")),
    ],
)
def test_what_is_compared_never_reads_as_the_same_when_it_is_not(
    value: float, other: float, unit: str, expected: tuple[str, str]
) -> None:
    assert told_apart(value, other, unit) == expected
