"""Times and lengths of time as typed."""

from __future__ import annotations

import math
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.cli.times import length_s, moment_s, span_s, zone
from latencydoctor.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("2d", 172800),
        ("36525d", 3.15576e9),
    ],
)
def test_a_length(text: str, seconds: float) -> None:
    assert length_s(text, "--since") == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "20", "s", "1h 30m", "-5s", "0s", "1y", "1h30", "[/INST]", "36526d", "9" * 400 + "s"]
)
def test_no_length(text: str) -> None:
    with pytest.raises(UsageError, match="--since") as caught:
        length_s(text, "--since")
    assert "90s, 30m or 1h30m" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1796023224", 1796023224),
        ("1796023224.5", 1796023224.5),
        ("2026-11-30T07:20:24Z", 1796023224),
        ("2026-11-30T07:20:24", 1796023224),
        ("2026-11-30T08:20:24+01:00", 1796023224),
        ("1970-01-01", 0),
    ],
)
def test_a_moment(text: str, seconds: float) -> None:
    assert moment_s(text, "--at") == seconds


@pytest.mark.parametrize("text", ["", "now", "nan", "inf", "-1", "1e12", "0001-01-01T00:00:00+14:00", "2026-13-01"])
def test_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match=r"--at is .* not a time"):
        moment_s(text, "--at")


@given(st.text(max_size=20))
def test_any_text_is_a_number_in_range_or_a_usage_error(text: str) -> None:
    for read in (length_s, moment_s):
        try:
            found = read(text, "--x")
        except UsageError:
            continue
        assert math.isfinite(found)
        assert found >= 0


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("1000/2000", (1000, 2000)),
        ("1970-01-01T00:10Z/1970-01-01T00:20Z", (600, 1200)),
        ("30m@24h", (100_000 - 86_400 - 1800, 100_000 - 86_400)),
    ],
)
def test_a_span(text: str, span: tuple[float, float]) -> None:
    assert span_s(text, "--baseline", 100_000.0) == span


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a span of time"),
        ("30m", "not a span of time"),
        ("2000/1000", "must end after it starts"),
        ("1000/1000", "must end after it starts"),
        ("1000/200000", "ends after the time that is diagnosed"),
        ("1000/soon", "--baseline is 'soon', not a time"),
        ("30m@then", "--baseline is 'then', not a length of time"),
        ("1d@1d", "must end after it starts"),
    ],
)
def test_no_span(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        span_s(text, "--baseline", 100_000.0)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "offset_s"), [("+02:00", 7200), ("-0730", -27000), ("UTC", 0), ("Europe/Berlin", 3600), ("+00:00", 0)]
)
def test_a_zone_is_a_name_or_an_offset(text: str, offset_s: int) -> None:
    named = zone(text, "--zone")
    assert named is not None
    offset = datetime(2026, 1, 15, tzinfo=named).utcoffset()
    assert offset is not None
    assert offset.total_seconds() == offset_s


def test_no_zone_is_none_and_a_wrong_one_is_said_to_be() -> None:
    assert zone("", "--zone") is None
    for wrong in ("Mars/Olympus", "+25:00", "../etc/passwd", "+2"):
        with pytest.raises(UsageError, match="--zone"):
            zone(wrong, "--zone")
