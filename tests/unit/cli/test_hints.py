"""A command that a message names in backquotes exists, with the options it is given there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import latencydoctor
from latencydoctor.cli import main

ROOT = typer.main.get_command(main.app)
SOURCE = Path(latencydoctor.__file__).parent


def named() -> Iterator[tuple[str, str]]:
    """Every command of ours that a `hint` or `needs` names, and the module; what is filled in later is left out."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg in ("hint", "needs"):
                texts = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
                for command in re.findall(r"`([^`]+)`", "".join(text for text in texts if isinstance(text, str))):
                    words = command.split()
                    if words and (words[0] == "latencydoctor" or words[0] in getattr(ROOT, "commands", {})):
                        yield path.name, command


def mistakes(command: str) -> list[str]:
    """What in it the program does not know."""
    found = ROOT
    words = command.removeprefix("latencydoctor").split()
    while words and hasattr(found, "commands"):
        if words[0] not in found.commands:
            break
        found = found.commands[words.pop(0)]
    options = {"-h", "--help"}.union(*(set(one.opts) | set(one.secondary_opts) for one in found.params))
    # A group takes one of its commands, and nothing else.
    unknown = words[:1] if hasattr(found, "commands") else []
    return unknown + [word for word in words if word.startswith("-") and word not in options]


def test_there_are_hints_that_name_commands() -> None:
    assert len(list(named())) > 20


@pytest.mark.parametrize("command", sorted({command for _, command in named()}))
def test_what_a_hint_names_exists(command: str) -> None:
    assert mistakes(command) == []


@pytest.mark.parametrize("command", ["latencydoctor heal", "stack restart", "apply --force-it", "rules lst"])
def test_what_does_not_exist_is_noticed(command: str) -> None:
    assert mistakes(command) != []
