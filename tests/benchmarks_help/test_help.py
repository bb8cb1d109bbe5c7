"""Every benchmark that is started by hand says what it measures when asked, instead of running for minutes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.told import explain

ROOT = Path(__file__).resolve().parents[2]
CHILDREN = {"forecast_load.py": "a script that its benchmark starts with an order on standard input"}


def started_by_hand() -> list[Path]:
    found = sorted((ROOT / "benchmarks").glob("*.py"))
    return [path for path in found if '__name__ == "__main__"' in path.read_text() and path.name not in CHILDREN]


@pytest.mark.parametrize("path", started_by_hand(), ids=lambda path: path.stem)
def test_help_comes_before_anything_else(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    main = next(node for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test))
    assert ast.unparse(main.body[0]) == "explain(__doc__)"
    assert ast.get_docstring(tree)


def test_a_benchmark_asked_for_help_prints_its_own_words_and_does_not_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.judge", "--help"], capture_output=True, text=True, timeout=20, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("How often the judge of a canary is wrong")


def test_without_the_question_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", "4"])
    explain("words")
    monkeypatch.setattr(sys, "argv", ["benchmark", "-h"])
    with pytest.raises(SystemExit) as ended:
        explain("words")
    assert ended.value.code == 0
