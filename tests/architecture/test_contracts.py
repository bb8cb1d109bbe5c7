"""The import directions of design and pyproject.toml hold; import-linter is the judge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_import_contracts_are_kept() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
