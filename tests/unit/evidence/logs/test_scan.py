"""Candidate lines: which, with which number, however the stream was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.errors import ContentError
from latencydoctor.evidence.logs.scan import (
    LOOK_BACK_BYTES,
    MAX_LINE_BYTES,
    Block,
    PatternError,
    RawLine,
    Scanner,
    match_blocks,
    match_lines,
    whole_lines,
)

SCANNER = Scanner(["needle", "pin$", r"a\sb"], ["excuse"])


def found(data: bytes, size: int = 7) -> list[RawLine]:
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    return [line for block in whole_lines(chunks) for line in SCANNER.candidates(block)]


def test_candidates_have_their_line_number_text_and_patterns() -> None:
    lines = found(b"hay\nneedle excuse needle\r\n\nhay\na pin\nlast needle")
    assert [(line.number, line.data, line.patterns) for line in lines] == [
        (2, b"needle excuse needle", frozenset({0, 3})),
        (5, b"a pin", frozenset({1})),
        (6, b"last needle", frozenset({0})),
    ]


def test_excuse_alone_is_no_candidate_and_no_pattern_spans_lines() -> None:
    assert found(b"excuse\na\nb\n", 100) == []


def test_lines_before_reach_into_earlier_blocks() -> None:
    line = found(b"one\ntwo\nneedle\n", 8)[0]
    assert line.lines_before() == [b"two", b"one"]


def test_lines_before_are_bounded() -> None:
    data = b"x" * 99 + b"\n"
    line = found(data * 400 + b"needle\n", 1000)[0]
    assert LOOK_BACK_BYTES // 100 - 1 <= len(line.lines_before()) <= LOOK_BACK_BYTES // 100 + 1


def test_overlong_line_is_cut_and_the_next_has_its_number() -> None:
    lines = found(b"needle" + b"x" * (3 * MAX_LINE_BYTES) + b"needle\nneedle\n", 64 * 1024)
    assert [line.number for line in lines] == [1, 2]
    assert len(lines[0].data) <= MAX_LINE_BYTES + 64 * 1024


def test_overlong_last_line_without_newline() -> None:
    lines = found(b"hay\nneedle" + b"x" * (2 * MAX_LINE_BYTES), 64 * 1024)
    assert [(line.number, len(line.data)) for line in lines] == [(2, MAX_LINE_BYTES)]


@pytest.mark.parametrize("engine", ["hyperscan", "re2"])
def test_pattern_the_engine_refuses_is_named(engine: str) -> None:
    pytest.importorskip(engine, reason=f"{engine} is not installed: one of the two engines serves each platform")
    for compile_with in (match_blocks, match_lines):
        with pytest.raises(PatternError, match="cannot be used") as caught:
            compile_with(["fine", "(broken"], engine)
        assert caught.value.index == 1


def test_unknown_engine_is_said_to_be_missing() -> None:
    with pytest.raises(ContentError, match="no engine"):
        match_lines(["x"], "grep")


def test_no_patterns_match_nothing() -> None:
    scanner = Scanner([])
    assert list(scanner.candidates(Block(b"needle\n", 1))) == []
    assert scanner.which("needle") == frozenset()


@given(
    st.lists(st.sampled_from([b"needle", b"\n", b"\r", b"\x00", b"\xff\xfe", b"hay", b"a", b" ", b"b"])),
    st.integers(1, 40),
)
def test_any_bytes_in_any_chunks_give_the_lines_that_contain_a_match(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    expected = [
        number
        for number, line in enumerate(data.split(b"\n"), 1)
        if b"needle" in line or b"a b" in line or b"a\rb" in line
    ]
    assert [line.number for line in found(data, size)] == expected
