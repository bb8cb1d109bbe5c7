import pytest
from hypothesis import given
from hypothesis import strategies as some

from latencydoctor.stack.gateway.entries import Entry, cache_key, dump_entry, read_entry


def test_the_key_has_the_model_version_and_the_question() -> None:
    assert cache_key("fp32-1", "where is my order?") == "faq:fp32-1:where is my order?"


@given(some.integers(0, 10**6), some.floats(-1, 1), some.text(max_size=100))
def test_an_entry_is_read_back_as_it_was_stored(index: int, score: float, run: str) -> None:
    assert read_entry(dump_entry(Entry(index, score, run))) == Entry(index, round(score, 4), run)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"answer_index": -1, "score": 0.5}',
        b'{"answer_index": true, "score": 0.5}',
        b'{"answer_index": 1.5, "score": 0.5}',
        b'{"answer_index": 1}',
        b'{"answer_index": 1, "score": NaN}',
        b'{"answer_index": 1, "score": 1e9}',
        b'{"answer_index": 1, "score": false}',
        b'{"answer_index": 1, "score": 0.5, "run": 3}',
    ],
)
def test_a_foreign_value_is_no_entry(value: bytes) -> None:
    assert read_entry(value) is None


def test_a_tag_that_is_too_long_is_no_entry() -> None:
    assert read_entry(dump_entry(Entry(1, 0.5, "r" * 101))) is None
