"""`--help` is quick because it loads typer and rich only; every command, option and exit code is documented."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from benchmarks.startup import REFERENCE
from latencydoctor.cli.exit_codes import ExitCode
from latencydoctor.cli.main import app

ROOT = Path(__file__).resolve().parents[2]

# Prints the top-level names of all third-party modules that a program has loaded by the time it exits.
LOADED = """
import atexit, json, sys
def show():
    names = {name.partition(".")[0] for name, module in list(sys.modules.items())
             if "site-packages" in (getattr(module, "__file__", None) or "")}
    print("\\n" + json.dumps(sorted(names)))
atexit.register(show)
sys.argv = ["program", *sys.argv[1:]]
"""
OURS = "from latencydoctor.cli.main import main; main()"


def loaded_by(program: str, *arguments: str) -> set[str]:
    """Third-party packages loaded by a run of `program`; without coverage, which would load its own."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    command = [sys.executable, "-c", f"{LOADED}\n{program}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=clean | {"PYTHONPATH": "src"}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("ours", "reference"),
    [
        (["--help"], ["--help"]),
        (["--version"], ["--help"]),
        (["diagnose", "--help"], ["first", "--help"]),
        (["stack", "up", "--help"], ["first", "--help"]),
    ],
)
def test_help_loads_typer_and_rich_only(ours: list[str], reference: list[str]) -> None:
    """Measured against a small program of typer's, which loads more of its own for the help of a command."""
    assert loaded_by(OURS, *ours) <= loaded_by(REFERENCE, *reference) | {"typer", "rich"}


def test_a_heavy_import_would_be_noticed() -> None:
    assert "pandas" in loaded_by(f"import pandas; {OURS}", "--help")


def commands(command: Any, path: str = "latencydoctor") -> Iterator[tuple[str, Any]]:
    """Every command and group with its full name; typed Any because typer carries its own click."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_command_and_its_parameters_have_help(name: str) -> None:
    command = COMMANDS[name]
    silent = [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]

    assert command.help
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_needs_no_second_break_at_80_columns(name: str) -> None:
    """Lines behind the first paragraph are shown as they stand."""
    _, _, rest = (COMMANDS[name].help or "").partition("\n\n")
    assert [line for line in rest.splitlines() if len(line) > 78] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_in_square_brackets_is_taken_for_markup(name: str) -> None:
    """`[stack]` is an extra and `[default: now]` a hint; unescaped, both would be missing on the screen."""
    command = COMMANDS[name]
    texts = [command.help or "", *(getattr(one, "help", None) or "" for one in command.params)]
    assert [text for text in texts if re.search(r"(?<!\\)\[", text)] == []


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not hasattr(command, "commands")])
def test_command_is_in_the_readme(name: str) -> None:
    """By its full name, or as code without the program's name (`runs show`)."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert name in text or f"`{name.removeprefix('latencydoctor ')}" in text


@pytest.mark.parametrize("code", ExitCode, ids=lambda code: code.name)
def test_exit_code_is_in_the_readme(code: ExitCode) -> None:
    """A row of the table starts with the number, alone or beside another (`130 / 143`)."""
    rows = re.findall(r"^\|([\s`0-9/]+)\|", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert str(int(code)) in {number for row in rows for number in re.findall(r"\d+", row)}
