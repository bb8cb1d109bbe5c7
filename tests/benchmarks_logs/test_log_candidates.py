"""The tool that tells which patterns make healthy lines candidates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import log_candidates
from benchmarks.log_candidates import Cost, costs, healthy, report
from latencydoctor.evidence.logs.blocks import whole_lines
from tests.unit.log_builders import rule

BLOCKS = list(whole_lines([b"request served\nrequest waited 3 ms\nall is well\n" * 100]))


def test_a_pattern_of_everyday_words_is_named_with_its_rules_and_what_it_matches() -> None:
    rules = [rule("slow", r"request.{1,40}waited \d", "fell off the bus"), rule("late", r"request.{1,40}waited \d")]
    assert costs(rules, BLOCKS) == [Cost(r"request.{1,40}waited \d", ("slow", "late"), 100, 100)]


def test_what_is_excused_or_seldom_asked_for_costs_little() -> None:
    excused = rule("slow", "fell off the bus", unless=("request served",))
    assert costs([excused], BLOCKS) == []
    answers = list(whole_lines([b'"GET / HTTP/1.1" 200 OK\n' * 99]))
    (seldom,) = costs([rule("slow", "fell off the bus", only_after=(r'/1\.[01]" 200\b',))], answers)
    assert 0 < seldom.candidates < 10


def test_the_table_has_the_worst_first_for_a_million_lines() -> None:
    found = [Cost("x" * 99, ("slow",), 200, 100), *(Cost(f"p{number}", ("a",), 1, 0) for number in range(30))]
    lines = list(report(found, 1000, us_each=10.0))
    assert lines[1].split()[:3] == ["200000", "100000", "2000.0"]
    assert lines[1].endswith("…   (slow)")
    assert lines[-1] == "and 6 more, each with at most 1000"


def test_healthy_lines_are_of_all_programs() -> None:
    data = b"".join(healthy(1900))
    assert data.count(b"\n") >= 1900
    assert b"Avg generation throughput" in data
    assert b"NVRM" in data or b"kernel" in data or b"nvidia" in data


def test_files_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_text("Request timeout expired\nfine\n")
    log_candidates.main([str(tmp_path / "a.log")])
    out = capsys.readouterr().out
    assert "(queue_reject)" in out
    assert json.loads(out.splitlines()[-1])["candidates_per_million"] == 333_333


def test_nothing_to_look_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_candidates, "healthy", lambda _lines: iter([b""]))
    with pytest.raises(SystemExit, match="no lines to look at"):
        log_candidates.main([])
