"""Lists and pages of the content."""

from __future__ import annotations

import io

from rich.console import Console

from latencydoctor.report.listing import Entry, show_list, show_page


def console() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=80, color_system=None, markup=False, highlight=False), text


def test_list_is_one_line_an_entry() -> None:
    screen, text = console()
    show_list([Entry("a", "log rule", "stable", "ERROR", "[/x] A")], screen)
    assert text.getvalue().split() == ["log", "rule", "a", "ERROR", "stable", "[/x]", "A"]


def test_a_note_follows_the_title() -> None:
    screen, text = console()
    show_list([Entry("a", "dialect", "stable", "", "A", "not seen")], screen)
    assert text.getvalue().split() == ["dialect", "a", "stable", "A", "(not", "seen)"]


def test_a_long_line_stays_one_in_a_pipe() -> None:
    screen, text = console()
    show_list([Entry("a", "dialect", "stable", "", "A" * 200, "not seen")], screen)
    assert len(text.getvalue().splitlines()) == 1


def test_page_leaves_out_what_is_empty() -> None:
    screen, text = console()
    show_page([("id", "a"), ("gate", ""), ("matches", ("one", "two"))], screen)
    assert [line.split() for line in text.getvalue().splitlines()] == [["id", "a"], ["matches", "one"], ["two"]]
