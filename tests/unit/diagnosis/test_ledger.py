"""The latency ledger: parts in order, the unexplained rest shown as it is, nothing without a whole."""

from __future__ import annotations

import pytest

from latencydoctor.diagnosis.ledger import split_time
from tests.unit.builders import evidence, measure


def test_parts_rest_and_whole() -> None:
    seen = evidence(
        measure("e2e_mean_ms", 100.0, 40.0),
        measure("queue_time_ms", 60.0, 10.0),
        measure("compute_time_ms", 28.0, 25.0),
    )
    rows = {row.part: row for row in split_time(seen)}
    assert rows["queue"].share_ratio == pytest.approx(0.6)
    assert rows["unexplained"].mean_ms == pytest.approx(12.0)
    assert rows["unexplained"].baseline_ms == pytest.approx(5.0)
    assert rows["end to end"].baseline_ms == 40.0
    assert rows["network"].mean_ms is None
    assert list(rows)[-2:] == ["unexplained", "end to end"]


def test_parts_beyond_the_whole_leave_a_negative_rest() -> None:
    rows = split_time(evidence(measure("e2e_mean_ms", 100.0), measure("queue_time_ms", 130.0)))
    rest = next(row for row in rows if row.part == "unexplained")
    assert rest.mean_ms == pytest.approx(-30.0)
    assert rest.baseline_ms is None


def test_no_whole_no_ledger() -> None:
    assert split_time(evidence(measure("queue_time_ms", 130.0))) == ()
    assert split_time(evidence(measure("e2e_mean_ms", 0.0))) == ()
