"""Tracebacks inside one message, and the line that ends one."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.exceptions import EXCEPTION, exception_after, holds_together, parts

TRACEBACK = "Traceback (most recent call last):\n  File 'x', line 1\n    f()\n"


def test_message_without_a_traceback_is_one_part() -> None:
    assert parts("one line") == ["one line"]
    assert parts("two\nlines") == ["two\nlines"]


def test_root_comes_first_then_the_head_then_what_came_of_it() -> None:
    chain = "\nDuring handling of the above exception, another exception occurred:\n\n"
    text = f"it failed\n{TRACEBACK}KeyError: 'a'\n{chain}{TRACEBACK}RuntimeError: b\nand more\n"
    assert parts(text) == ["KeyError: 'a'", "it failed", "RuntimeError: b\nand more"]
    assert parts(TRACEBACK) == []


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'x'",
        "torch.cuda.OutOfMemoryError: no",
        "asyncio.exceptions.CancelledError",
        "my.pkg.Boom: x",
        "SystemExit",
    ],
)
def test_exceptions_are_known_by_their_names(text: str) -> None:
    assert EXCEPTION.match(text)


@pytest.mark.parametrize("text", ["it failed: x", "loading model.bin"])
def test_other_lines_are_none(text: str) -> None:
    assert not EXCEPTION.match(text)


def test_lines_that_join_others() -> None:
    assert holds_together(TRACEBACK)
    assert holds_together("The above exception was the direct cause of the following exception:")
    assert holds_together("  Caused by: x")
    assert not holds_together("KeyError: 'x'")


def test_exception_after_a_traceback_behind_equal_prefixes() -> None:
    lines = [b"web | Traceback (most recent call last):", b"web |   File 'x'", b"web |     f()", b"web | KeyError: 'x'"]
    assert exception_after(lines[0], lines[1:]) == "KeyError: 'x'"
    assert exception_after(lines[0], lines[1:3]) == ""
    assert exception_after(lines[0], [*lines[1:3], b"web | fine again"]) == ""
