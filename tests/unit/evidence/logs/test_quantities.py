"""Figures with units, and which patterns may look for them."""

from __future__ import annotations

import re

import pytest

from latencydoctor.evidence.logs.quantities import find_numbers, in_unit, unbounded


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("1.5 s", "queue_ms", 1500.0),
        ("250 usec", "queue_ms", 0.25),
        ("612", "queue_ms", 612.0),
        ("2 GiB", "requested_bytes", 2.0 * 2**30),
        ("640.00 KiB", "free_bytes", 655360.0),
        ("5 GB", "free_bytes", 5e9),
        ("4 kB", "resident_bytes", 4096.0),
        ("4 KB", "resident_bytes", 4000.0),
        ("32", "max_batch_size", 32.0),
        ("32 x", "max_batch_size", None),
        ("5 parsec", "queue_ms", None),
        ("many", "queue_ms", None),
    ],
)
def test_figure_in_its_names_unit(text: str, name: str, value: float | None) -> None:
    assert in_unit(text, name) == value


def test_first_pattern_for_a_name_counts_and_optional_groups_may_be_absent() -> None:
    patterns = [re.compile(r"a (?P<n>\d)(?: of (?P<m>\d))?"), re.compile(r"b (?P<n>\d)")]
    assert find_numbers(patterns, "b 2 a 1") == {"n": 1.0}
    assert find_numbers(patterns, "nothing") == {}


@pytest.mark.parametrize("pattern", [r"\d+", r"x*", r"\d{2,}", r"(?:a{1,9}){1,9}"])
def test_patterns_that_could_be_slow_are_refused(pattern: str) -> None:
    assert unbounded(pattern)


@pytest.mark.parametrize("pattern", [r"\d{1,9}", r"a\+b\*", r"[+*]", r"[^]+*]x?", r"(?:\.\d{1,3})?"])
def test_bounded_patterns_are_taken(pattern: str) -> None:
    assert unbounded(pattern) == ""
