from __future__ import annotations

import pytest

from latencydoctor.stack.encoder.tokenize import MAX_TOKENS, TextTokenizer, mask_numbers, normalise


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Where\tis\nit? ", "where is it?"),
        ("\uff37HERE", "where"),
        ("Straße", "strasse"),
        ("order 48213", "order 48213"),
    ],
)
def test_spellings_of_one_question_become_one(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_numbers_are_masked() -> None:
    assert mask_numbers("order 48213 of 2026") == "order 0 of 0"


def test_every_question_has_the_same_length() -> None:
    tokenizer = TextTokenizer()
    for question in ("", "hello", "why " * 50):
        tokens = tokenizer(question)
        assert len(tokens.ids) == len(tokens.mask) == MAX_TOKENS
        assert sum(tokens.mask) == sum(1 for token in tokens.ids if token)


def test_numbers_and_spelling_do_not_change_the_tokens() -> None:
    tokenizer = TextTokenizer()
    assert tokenizer("Where is my parcel (order 48213)") == tokenizer("where is  my parcel (order 7)")
    assert tokenizer.batch(["a b", "c"]) == [tokenizer("a b"), tokenizer("c")]
