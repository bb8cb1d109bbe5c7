"""kill -9 at every system call that changes a file, and twenty operators at once; real files, real locks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from latencydoctor.app import treat
from latencydoctor.journal import JournalFolder
from latencydoctor.model.remedy import Plan
from latencydoctor.remedy.plan_file import plan_to_json
from tests.fakes.clock import FakeClock
from tests.fakes.patient import FakePatient

ROOT = Path(__file__).resolve().parents[3]
OPERATORS = 20


def child(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


@pytest.mark.slow
@pytest.mark.parametrize("action", ["apply", "rollback"])
def test_every_kill_ends_in_exactly_the_old_or_the_new_state(tmp_path: Path, action: str) -> None:
    done = subprocess.run(
        child("tests.fakes.crash_driver", str(tmp_path / "ward"), action, "5"),
        capture_output=True, text=True, timeout=300, cwd=ROOT, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert told["kills"] >= 25
    assert told["recovery_kills"] >= 50


def test_of_twenty_operators_one_wins_and_the_others_are_told_why(tmp_path: Path) -> None:
    patient = FakePatient(tmp_path / "state")
    plan = treat.make_plan("batch-floor", patient, FakeClock())
    assert isinstance(plan, Plan)
    file = tmp_path / "plan.json"
    file.write_text(plan_to_json(plan))
    command = child("tests.fakes.operator", str(tmp_path / "state"), str(file), str(OPERATORS))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment())
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told.count("kept") == 1
    refused = [word for word in told if word != "kept"]
    assert len(refused) == OPERATORS - 1
    assert all(word.startswith(("locked by run", "the plan is stale")) for word in refused), refused
    assert len(JournalFolder(tmp_path / "state" / "journal", FakeClock().now_s).list()) == 1
