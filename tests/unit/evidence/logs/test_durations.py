"""Durations that move a start back, and figures that do not."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.durations import began_s, lasted_s
from latencydoctor.evidence.logs.lines import LineRecord


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("WorkNCCL(SeqNum=2, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.", 600.02),
        ("No available shared memory broadcast block found in 60 seconds.", 60.0),
        ("no answer for last 20 seconds. tic start time: 03:17:58. last_heartbeat time: 03:17:38", 20.0),
        ("tic start time: 00:00:08. last_heartbeat time: 23:59:38", 30.0),
        ("tic start time: 30:00:08. last_heartbeat time: 23:59:38", 0.0),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:123]", 22.0),
        ("INFO: task python:12 blocked for more than 120 seconds.", 120.0),
        ("watchdog got stuck for 480 seconds without making progress", 480.0),
        ("request timed out after 30s", 30.0),
        ("Timed out in 1.5 minutes", 90.0),
        ("did not respond within 500 ms", 0.5),
        ("waited for 30 s without an answer", 30.0),
        ("timed out after 1999999999 s", 172_800.0),
        ("watchdog_timeout=300, waiting for 2 replicas", 0.0),
        ("loaded in 12 seconds, ran for 30 seconds", 0.0),
        ("Timeout 30s", 0.0),
        ("", 0.0),
    ],
)
def test_how_long_it_lasted(text: str, seconds: float) -> None:
    assert lasted_s(text) == pytest.approx(seconds)


def test_start_moves_back() -> None:
    assert began_s(LineRecord(1000.0, "", "timed out after 30s")) == 970.0
    assert began_s(LineRecord(1000.0, "", "timed out")) == 1000.0
    assert began_s(LineRecord(None, "", "timed out after 30s")) is None
    assert began_s(LineRecord(1000.0, "", "timed out after 30s", began_s=900.0)) == 900.0
