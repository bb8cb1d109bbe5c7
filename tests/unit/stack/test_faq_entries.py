"""The FAQ that ships with the stack, and a damaged one."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.errors import ContentError
from latencydoctor.stack.faq_entries import FaqEntry, load_entries


@pytest.fixture(scope="module")
def entries() -> tuple[FaqEntry, ...]:
    return load_entries()


def test_the_faq_has_hundreds_of_answers_with_ids_of_their_own(entries: tuple[FaqEntry, ...]) -> None:
    assert len(entries) > 200
    assert len({entry.answer_id for entry in entries}) == len(entries)


def test_at_least_a_thousand_questions_are_held_out_and_none_is_indexed(entries: tuple[FaqEntry, ...]) -> None:
    held_out = {text.casefold() for entry in entries for text in entry.held_out}
    indexed = {text.casefold() for entry in entries for text in entry.indexed}
    assert len(held_out) >= 1000
    assert not held_out & indexed


@pytest.mark.parametrize("text", ["topics: 7", "a: [", "topics: [{entries: [{id: x}]}]"])
def test_a_damaged_faq_says_where_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "faq.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ContentError, match=r"faq\.yaml"):
        load_entries(path)
