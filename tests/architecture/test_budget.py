"""Modules and functions stay small enough to read in one go, and are named after what they are about."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "latencydoctor"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 40
LEFTOVERS = {"util", "utils", "helper", "helpers", "common", "misc", "shared", "base", "core", "tools", "stuff"}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without its docstring: neither a long explanation nor a command's options count."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    last = function.body[-1].end_lineno or function.lineno
    return last - body[0].lineno + 1 if body else 0


def long_functions(source: str) -> list[str]:
    """`name: lines` of every function over the budget."""
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    sizes = ((function.name, function_lines(function)) for function in functions)
    return [f"{name}: {lines} lines" for name, lines in sizes if lines > MAX_FUNCTION_LINES]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_within_the_budget(path: Path) -> None:
    source = path.read_text(encoding="utf-8")

    assert len(source.splitlines()) <= MAX_MODULE_LINES
    assert long_functions(source) == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_named_after_its_subject(path: Path) -> None:
    assert LEFTOVERS.isdisjoint(path.relative_to(SOURCE).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_says_what_it_is_for(path: Path) -> None:
    source = path.read_text(encoding="utf-8")

    assert not source.strip() or ast.get_docstring(ast.parse(source))


def test_a_function_over_the_budget_is_noticed() -> None:
    body = "\n".join("    x = 1" for _ in range(MAX_FUNCTION_LINES))

    assert long_functions(f"def short():\n    '''Docstring.'''\n{body}\n") == []
    assert long_functions(f"def long():\n{body}\n    x = 2\n") == ["long: 41 lines"]
