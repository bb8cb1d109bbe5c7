"""Stamps to seconds: zones, fractions, years that are not written down."""

from __future__ import annotations

from datetime import datetime

import pytest

from latencydoctor.evidence.logs.clock import parse_rfc3339


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
