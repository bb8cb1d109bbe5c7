"""Stamps to seconds: zones, fractions, years that are not written down."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from latencydoctor.evidence.logs.clock import parse_rfc3339, resolve_year


def epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T07:20:24Z", "2026-11-30T07:20:24+00:00"),
        ("2026-11-30T07:20:24.123456789Z", "2026-11-30T07:20:24.123456+00:00"),
        ("2026-11-30 07:20:24,123", "2026-11-30T07:20:24.123+00:00"),
        ("2026-11-30T07:20:24+05:30", "2026-11-30T01:50:24+00:00"),
        ("2026-11-30T07:20:24 -0800 rest", "2026-11-30T15:20:24+00:00"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00"),
    ],
)
def test_stamp_is_read(text: str, expected: str) -> None:
    assert parse_rfc3339(text) == pytest.approx(epoch(expected), abs=1e-5)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-30T07:20:24Z", "2026-11-30T07:20:61Z", "2026-11-30T25:20:00Z"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_rfc3339(text) is None


def test_year_is_the_latest_that_is_not_in_the_future() -> None:
    new_year = epoch("2027-01-01T00:10:00+00:00")
    assert resolve_year(12, 31, (23, 59, 59.5), new_year) == epoch("2026-12-31T23:59:59.500000+00:00")
    assert resolve_year(1, 1, (0, 5, 0.0), new_year) == epoch("2027-01-01T00:05:00+00:00")


def test_clock_may_run_a_day_ahead_even_over_the_turn_of_the_year() -> None:
    reference = epoch("2026-12-31T23:50:00+00:00")
    assert resolve_year(1, 1, (1, 0, 0.0), reference) == epoch("2027-01-01T01:00:00+00:00")


def test_leap_day_finds_its_year_and_month_13_none() -> None:
    reference = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
    assert resolve_year(2, 29, (0, 0, 0.0), reference) == epoch("2024-02-29T00:00:00+00:00")
    assert resolve_year(13, 30, (0, 0, 0.0), reference) is None
