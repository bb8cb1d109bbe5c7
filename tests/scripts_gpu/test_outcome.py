"""How pieces report and how their reports are told."""

from __future__ import annotations

import json

import pytest

from scripts.gpu.outcome import Outcome, from_json, summary, table


def test_a_pieces_line_becomes_its_outcome() -> None:
    found = from_json("nvml", '{"state": "ok", "detail": "read", "figures": {"busy": 0.97}}', 6.04)

    assert found == Outcome("nvml", "ok", "read", 6.0, {"busy": 0.97})


@pytest.mark.parametrize(
    "line", ["", "Segmentation fault", "[]", '{"state": "ok"}', '{"state":"?","detail":"","figures":{}}']
)
def test_a_piece_without_an_outcome_failed(line: str) -> None:
    assert from_json("nvml", line, 1).state == "failed"


def test_only_a_failure_makes_the_whole_not_ok() -> None:
    ok, skipped, failed = (Outcome(state, state, "") for state in ("ok", "skipped", "failed"))

    assert json.loads(summary([ok, skipped]))["ok"] is True
    assert json.loads(summary([ok, failed]))["ok"] is False


def test_a_figure_that_is_absent_is_not_zero() -> None:
    told = table([Outcome("nvml", "ok", "read", 1.0, {"power_w": None, "busy": 0.5})])

    assert "unknown" in told
    assert "0.5" in told
