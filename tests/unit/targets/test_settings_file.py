"""Editing settings as text: one value changes, everything else stays as a person wrote it."""

from __future__ import annotations

import pytest

from latencydoctor.errors import ContentError
from latencydoctor.targets.settings_file import edited, flatten

TEXT = """\
# Ümläut before, so that bytes and characters differ
generation: 7
inference:
  batching: {enabled: true, max_batch_size: 8}
  deadline_ms: "5000"  # quoted
cache:
    ttl_seconds: 300
accelerator: sim:small
"""


def test_every_scalar_by_its_dotted_key_in_order() -> None:
    assert flatten(TEXT, "s") == (
        ("generation", "7"),
        ("inference.batching.enabled", "true"),
        ("inference.batching.max_batch_size", "8"),
        ("inference.deadline_ms", "5000"),
        ("cache.ttl_seconds", "300"),
        ("accelerator", "sim:small"),
    )


@pytest.mark.parametrize(
    ("key", "value", "before", "after"),
    [
        ("inference.batching.max_batch_size", "32", "max_batch_size: 8}", "max_batch_size: 32}"),
        ("inference.deadline_ms", "100", '"5000"  # quoted', "100  # quoted"),
        ("accelerator", "cpu", "sim:small", "cpu"),
        ("cache.max_entries", "9", "    ttl_seconds", "    max_entries: 9\n    ttl_seconds"),
        ("inference.priorities.vip", "2", "  batching:", "  priorities:\n    vip: 2\n  batching:"),
        ("alerts.on", "true", "generation: 7", "alerts:\n  on: true\ngeneration: 7"),
    ],
)
def test_one_value_changes(key: str, value: str, before: str, after: str) -> None:
    assert edited(TEXT, [(key, value)], "s") == TEXT.replace(before, after)


def test_an_empty_value_is_filled() -> None:
    assert edited("a:\nb: 1\n", [("a", "2")], "s") == "a: 2\nb: 1\n"


def test_windows_line_ends_stay() -> None:
    assert edited("a: 1\r\nb: 2\r\n", [("b", "3")], "s") == "a: 1\r\nb: 3\r\n"


@pytest.mark.parametrize("value", ["", "a b", "x\ny: 1", "[1]", "*a", "# x"])
def test_only_plain_values_can_be_set(value: str) -> None:
    with pytest.raises(ContentError, match="cannot be set to"):
        edited(TEXT, [("accelerator", value)], "s")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\nb: *x\n", "aliases are refused"),
        ("a: 1\na: 2\n", "given once"),
        ("a: [1]\n", "lists are not settings"),
        ("[1]\n", "must be a mapping"),
        ("", "must be a mapping"),
        ("? [a]\n: 1\n", "plain word"),
        ("a.b: 1\n", "plain word"),
        ("a: 'x\n", "unexpected end of stream"),
        ("a: {" * 30 + "}" * 30, "did not find|nested too deeply"),
        ("a:\n" + "\n".join(f"{' ' * at}k{at}:" for at in range(1, 30)) + " 1\n", "nested too deeply"),
        ("#" * 70_000, "larger than settings"),
    ],
)
def test_what_settings_are_not(text: str, message: str) -> None:
    with pytest.raises(ContentError, match=message) as refused:
        flatten(text, "settings.yaml")
    assert str(refused.value).startswith("settings.yaml")


@pytest.mark.parametrize(
    ("text", "key"),
    [("{a: 1}\n", "b"), ("a: {b: 1}\n", "a.c"), ("a:\n  b: 1\n", "a"), ("{}\n", "a")],
)
def test_what_cannot_be_edited_in_place_is_refused(text: str, key: str) -> None:
    with pytest.raises(ContentError, match=r"cannot be added here|is a section|cannot be edited"):
        edited(text, [(key, "1")], "s")


def test_a_value_that_would_swallow_its_neighbour_is_refused() -> None:
    with pytest.raises(ContentError):
        edited("a: |\n  text\nb: 1\n", [("a", "2"), ("b.c", "1")], "s")
