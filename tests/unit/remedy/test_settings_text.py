"""The generation line, and the digest of everything else."""

from __future__ import annotations

import pytest

from latencydoctor.remedy.settings_text import generation_of, settings_digest, with_generation

TEXT = "# shop\ngeneration: 7  # night shift\ncache: {}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, "# shop\ngeneration: 8  # night shift\ncache: {}\n"),
        ("generation:\t7\r\ncache: {}\r\n", "generation:\t8\r\ncache: {}\r\n"),
        ("generation: 7", "generation: 8"),
        ("cache: {}\n", "generation: 8\ncache: {}\n"),
        ("---\ncache: {}\n", "---\ngeneration: 8\ncache: {}\n"),
        ("%YAML 1.1\n--- # x\ncache: {}\n", "%YAML 1.1\n--- # x\ngeneration: 8\ncache: {}\n"),
        ("cache:\n  generation: 7\n", "generation: 8\ncache:\n  generation: 7\n"),
        ("", "generation: 8\n"),
    ],
)
def test_only_the_number_changes(text: str, expected: str) -> None:
    assert with_generation(text, 8) == expected
    assert generation_of(expected) == 8
    assert settings_digest(expected) == settings_digest(text)


def test_a_file_without_one_has_the_stacks_default() -> None:
    assert generation_of("cache: {}\n") == 1


@pytest.mark.parametrize("other", ["# shop\ncache: {}", "cache: {}\n", TEXT + "\n", TEXT.replace("shop", "Shop")])
def test_every_other_byte_counts(other: str) -> None:
    assert settings_digest(other) != settings_digest(TEXT)
