"""Text from elsewhere cannot become markup, escape codes or structure."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from latencydoctor.report.foreign import clean, markdown, plain


@given(st.text(max_size=200))
def test_clean_text_has_no_control_characters_and_keeps_its_limit(text: str) -> None:
    cleaned = clean(text, 100)
    assert len(cleaned) <= 100
    assert cleaned.isprintable()


def test_escape_sequences_and_bidirectional_overrides_are_taken_out() -> None:
    assert clean("\x1b[31mred\x1b[0m \u202egpj.exe\x00\x7f") == "[31mred[0m gpj.exe"
    assert clean("a\tb\r\nc") == "a b  c"


def test_markup_in_a_log_line_is_shown_as_it_is() -> None:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(plain("[INST] [/INST] [bold]x[/]"))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().strip() == "[INST] [/INST] [bold]x[/]"


def test_markdown_structure_is_escaped() -> None:
    assert markdown("# a | [b](c) <i>") == "\\# a \\| \\[b\\](c) \\<i\\>"
    assert "\n" not in markdown("a\n# b")
