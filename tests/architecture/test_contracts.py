"""The import directions hold, import-linter being the judge, and each contract notices the import it is there for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Contract -> a module, and an import added to it that the contract must report.
VIOLATIONS = {
    "flow": ("content/locate.py", "import latencydoctor.stack.layout"),
    "patient": ("stack/layout.py", "import latencydoctor.evidence.logs.clock"),
    "pure-core": ("diagnosis/walk.py", "import logging"),
    "model-stdlib": ("model/evidence.py", "import numpy"),
    "acyclic": ("model/evidence.py", "import latencydoctor.model.diagnosis"),
    "mutation": ("cli/diagnose.py", "import latencydoctor.targets.executor"),
    "wiring": ("cli/sources_wiring.py", "import latencydoctor.targets.admin"),
    "sources-wiring": ("cli/wiring.py", "import latencydoctor.sources.logfiles"),
    "typer": ("report/terminal.py", "import typer"),
    "rich": ("app/ports.py", "import rich.console"),
    "pandas": ("cli/main.py", "import pandas"),
    "numpy": ("report/units.py", "import numpy"),
    "hyperscan": ("evidence/logs/lines.py", "import hyperscan"),
    "prometheus": ("sources/logfiles.py", "import prometheus_api_client"),
    "promql": ("sources/pages.py", "import promql_parser"),
    "http": ("app/ports.py", "import requests"),
    "nvml": ("sources/logfiles.py", "import pynvml"),
    "triton": ("sources/logfiles.py", "import tritonclient.grpc"),
    "yaml": ("sources/logfiles.py", "import yaml"),
    "serving": ("load/runner.py", "import psutil"),
    "locust": ("load/runner.py", "import locust"),
}
RESULT = re.compile(r"^(?P<name>.+) (?P<result>KEPT|BROKEN)$", flags=re.MULTILINE)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the tree in `folder`; wide enough that no contract's name is wrapped."""
    program = Path(sys.executable).parent / "lint-imports"
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "COLUMNS": "400"}
    return subprocess.run(
        [program, "--no-cache", "--no-logo"], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def contracts() -> dict[str, str]:
    """Names of the contracts in pyproject.toml by id."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["id"]: contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]}


def copied_tree(folder: Path) -> Path:
    shutil.copytree(ROOT / "src", folder / "src", ignore=lambda _, names: [n for n in names if n == "__pycache__"])
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_import_contracts_are_kept() -> None:
    done = lint(ROOT)

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_each_contract_reports_the_import_it_forbids(tmp_path: Path) -> None:
    tree = copied_tree(tmp_path)
    for module, line in VIOLATIONS.values():
        with (tree / "src" / "latencydoctor" / module).open("a", encoding="utf-8") as source:
            source.write(f"\n{line}\n")

    results = {found["name"]: found["result"] for found in RESULT.finditer(lint(tree).stdout)}

    assert set(VIOLATIONS) == set(contracts())
    assert dict.fromkeys(contracts().values(), "BROKEN") == results


def test_a_module_without_a_place_is_reported(tmp_path: Path) -> None:
    tree = copied_tree(tmp_path)
    (tree / "src" / "latencydoctor" / "leftovers.py").write_text("", encoding="utf-8")

    done = lint(tree)

    assert done.returncode != 0
    assert "latencydoctor.leftovers" in done.stdout
