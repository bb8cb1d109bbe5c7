from __future__ import annotations

from latencydoctor.stack.logs import clean


def test_control_bytes_and_terminal_sequences_are_removed() -> None:
    assert clean("a\x1b[31mred\x1b[0m\x07 \x9bb\tc") == "ared b\tc"
    assert clean("[/INST] is only text") == "[/INST] is only text"
