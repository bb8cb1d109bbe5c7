"""`latencydoctor rules list | show | check`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from latencydoctor.cli.rules import app
from latencydoctor.content.locate import locate
from latencydoctor.errors import ContentErrors, UsageError


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    origin = locate()
    shutil.copytree(origin.rules, tmp_path / "rules")
    shutil.copytree(origin.playbooks, tmp_path / "playbooks")
    rule = tmp_path / "rules" / "logs" / "memory" / "gpu_oom.yaml"
    rule.write_text(rule.read_text(encoding="utf-8").replace("level: CRITICAL", "level: LOUD"), encoding="utf-8")
    return tmp_path


def test_list_shows_rules_dialects_causes_and_playbooks() -> None:
    kinds = {line.split("  ")[0] for line in run("list").stdout.splitlines()}
    assert kinds == {"log rule", "dialect", "cause rule", "playbook"}
    entries = json.loads(run("list", "--format", "json").stdout)
    assert {"gpu_oom", "triton", "batching-failed", "latency-spike"} <= {entry["id"] for entry in entries}


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("gpu_oom", "at least free_bytes"),
        ("queue_delay", "above 500"),
        ("triton", "queue_time_ms"),
        ("batching-failed", "confirmed by"),
        ("latency-spike", "thresholds"),
    ],
)
def test_show_has_what_matters(name: str, word: str) -> None:
    assert word in run("show", name).stdout
    assert json.loads(run("show", name, "--format", "json").stdout)["id"] == name


DIALECT = """
id: mine
title: Mine
status: experimental
prefer: 5
detect: [q_sum]
signals: [{signal: queue_depth, requires: [q_sum], expr: sum(q_sum)}]
missing: {e2e_p99_ms: only a sum is kept}
"""


def test_an_unverified_dialect_says_so_and_what_it_lacks(tmp_path: Path) -> None:
    origin = locate()
    shutil.copytree(origin.rules, tmp_path / "rules")
    shutil.copytree(origin.playbooks, tmp_path / "playbooks")
    (tmp_path / "rules" / "signals" / "mine.yaml").write_text(DIALECT, encoding="utf-8")
    (line,) = [line for line in run("list", "--content", tmp_path).stdout.splitlines() if " mine " in line]
    assert "(not verified against a real server, 1 signal missing)" in " ".join(line.split())
    page = run("show", "mine", "--content", tmp_path).stdout
    assert "not verified against a real server" in page
    assert "e2e_p99_ms: only a sum is kept" in page
    assert "not verified" not in run("show", "triton").stdout


def test_show_of_nothing_points_to_the_list() -> None:
    error = run("show", "nothing").exception
    assert isinstance(error, UsageError)
    assert "rules list" in error.hint


def test_check_of_what_ships() -> None:
    result = run("check")
    assert result.exit_code == 0
    assert f"{len(list((locate().rules / 'logs').rglob('*.yaml')))} log rules" in result.stdout
    assert json.loads(run("check", "--format", "json").stdout)["errors"] == []


def test_check_says_file_and_line(broken: Path) -> None:
    error = run("check", "--content", broken).exception
    assert isinstance(error, ContentErrors)
    assert "gpu_oom.yaml:4:" in str(error)
    result = run("check", "--content", broken, "--format", "json")
    assert result.exit_code == 1
    (found,) = json.loads(result.stdout)["errors"]
    assert "gpu_oom.yaml:4:" in found["where"]
    assert "LOUD" in found["message"]
