"""Twenty applies at once on real files and sockets: one wins, and every other is told who did."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNT = 20

pytestmark = pytest.mark.stack


def test_while_the_winner_is_at_work_all_others_are_refused_naming_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.rivals", str(tmp_path / "ward"), str(COUNT)],
        capture_output=True, text=True, timeout=180, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert sorted(one["code"] for one in told["rivals"]) == [0] + [5] * (COUNT - 1), told
    (run,) = told["runs"]
    (winner,) = [one for one in told["rivals"] if one["code"] == 0]
    assert f"run {run} kept" in winner["said"]
    holder = re.compile(rf"is locked by run {run}, user \S+, host \S+, pid {winner['pid']}, since 20\d\d-")
    for one in told["rivals"]:
        if one is not winner:
            (error,) = re.findall(r"^error: (.*)$", one["said"], re.MULTILINE)
            assert holder.search(error), error
