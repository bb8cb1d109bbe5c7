"""Candidate lines: which, with which number, however the stream was cut."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.errors import ContentError
from latencydoctor.evidence.logs.blocks import (
    LOOK_BACK_BYTES,
    MAX_LINE_BYTES,
    Block,
    LineCounter,
    RawLine,
    cut,
    number,
    whole_lines,
)
from latencydoctor.evidence.logs.engine import PatternError, match_blocks, match_lines
from latencydoctor.evidence.logs.levels import LOUD
from latencydoctor.evidence.logs.scanner import Scanner

ENGINES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            find_spec(name) is None, reason=f"{name} is not installed: one of the two engines serves each platform"
        ),
    )
    for name in ("hyperscan", "re2")
]
PATTERNS = ["needle", "pin$", r"a\sb", r"model \d{1,3} (?i:lost)"]
SCANNER = Scanner(PATTERNS, ["excuse"])
PATTERNS_ALONE = Scanner(PATTERNS, look_for=())


def found(data: bytes, size: int = 7, scanner: Scanner = SCANNER) -> list[RawLine]:
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    return [line for block in whole_lines(chunks) for line in scanner.candidates(block)]


@pytest.mark.parametrize("engine", ENGINES)
def test_candidates_have_their_line_number_and_text(engine: str) -> None:
    scanner = Scanner(PATTERNS, ["excuse"], engine)
    lines = found(b"hay\nneedle excuse needle\r\n\nhay\na pin\nmodel 7 Lost\nlast needle", scanner=scanner)
    assert [(line.number, line.data) for line in lines] == [
        (2, b"needle excuse needle"),
        (5, b"a pin"),
        (6, b"model 7 Lost"),
        (7, b"last needle"),
    ]
    assert [scanner.which(line.data.decode()) for line in lines] == [{0, 4}, {1}, {3}, {0}]
    assert scanner.which("a needle too many pins") == {0}
    assert scanner.which("model seven lost, excuse me") == {4}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 10:00:00,000 [ERROR] x",
        "E1130 07:20:26.000000 1 a.cc:1] x",
        "2026-11-30T07:20:26Z E 1 a.cc:1] x",
        "2026-11-30 07:20:26.000000001 [E:onnxruntime:, a.cc:1 f] x",
        "[11/30/2026-07:20:26] [TRT] [E] x",
        "[E] [TRT] x",
        "2026-11-30 07:20:26.000000: F tensorflow/a.cc:1] x",
        "[2026-11-30 07:20:26,000 C 1 2] (raylet) a.cc:1: x",
        "[E ProcessGroupNCCL.cpp:475] x",
        "2026/11/30 07:20:26 [crit] 7#7: *1 x",
        '{"log":"{\\"level\\":\\"Error\\",\\"msg\\":\\"x\\"}\\n","stream":"stdout"}',
        '{"PRIORITY":"3","MESSAGE":"x"}',
    ],
)
def test_lines_at_error_are_candidates_whether_a_rule_knows_them_or_not(engine: str, line: str) -> None:
    scanner = Scanner([], engine=engine, look_for=LOUD)
    assert [one.number for one in found(f"INFO x\n{line}\n".encode(), 4096, scanner)] == [2]
    quiet = (
        line.replace("E", "I").replace("C 1", "I 1").replace(": F", ": I").replace("crit", "info").replace('"3"', '"6"')
    )
    assert found(quiet.replace("Irror", "info").encode(), 4096, scanner) == []


def test_excuse_alone_is_no_candidate_and_no_pattern_spans_lines() -> None:
    assert found(b"excuse\na\nb\n", 100) == []


def test_pieces_may_be_scanned_before_they_are_numbered() -> None:
    data = [b"hay\nneedle\nhay\nho", b"t\na b\n", b"needle\n"]
    pieces = list(cut(data))
    looks = [SCANNER.look(piece.data) for piece in reversed(pieces)][::-1]
    lines = [line for block in number(zip(pieces, looks, strict=True)) for line in SCANNER.candidates(block)]
    assert [(line.number, line.data) for line in lines] == [(2, b"needle"), (5, b"a b"), (6, b"needle")]
    assert [line.lines_after() for line in lines] == [[b"hay", b"hot", b"a b"], [b"needle"], []]


def test_lines_after_reach_into_the_next_block_and_are_bounded() -> None:
    assert found(b"needle\none\ntwo", 7)[0].lines_after() == [b"one"]
    assert found(b"needle\none\ntwo", 15)[0].lines_after() == [b"one", b"two"]
    after = found(b"needle\n" + (b"x" * 99 + b"\n") * 400, 50_000)[0].lines_after()
    assert LOOK_BACK_BYTES // 100 - 1 <= len(after) <= LOOK_BACK_BYTES // 100 + 1


def test_a_line_is_counted_alike_by_both_counters() -> None:
    data = b"a\n\nb\n" * 999
    assert LineCounter(0)(data) == LineCounter()(data) == 3 * 999


@pytest.mark.parametrize("engine", ENGINES)
def test_what_stands_behind_the_part_that_is_looked_at_means_nothing(engine: str) -> None:
    scanner = Scanner(PATTERNS, engine=engine)
    assert found(b"x" * MAX_LINE_BYTES + b"needle\nneedle\n", 10**6, scanner)[0].number == 2


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
    assert len(lines[0].data) == MAX_LINE_BYTES


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
        if b"needle" in line or b"a b" in line or b"a\rb" in line or b"pin" in line
    ]
    assert [line.number for line in found(data, size, PATTERNS_ALONE)] == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_of_everyday_lines_that_are_seldom_asked_for_the_first_few_of_a_block_are_enough(engine: str) -> None:
    everyday, rare = r"POST .{0,20} 200\b", "gryphons served"
    scanner = Scanner(["needle", everyday, rare], engine=engine, seldom={everyday, rare})
    data = b"needle\n" + b"POST /v1 200 OK\n" * 99 + b"needle\n" + b"gryphons served\n" * 99
    for lines in (
        [line.number for line in scanner.candidates(Block(data, 1))],
        [line.number for line in scanner.candidates(Block(data, 1, look=scanner.look(data)))],
    ):
        assert lines[:2] == [1, 2]
        assert 101 in lines
        assert 1 <= len([number for number in lines if 2 <= number <= 100]) <= 8
        assert len([number for number in lines if number > 101]) == 99


class Shelf(dict[str, list[bytes]]):
    """A store in memory."""

    def load(self, key: str) -> list[bytes] | None:
        return self.get(key)

    def save(self, key: str, parts: Sequence[bytes]) -> None:
        self[key] = list(parts)


def test_what_was_compiled_once_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hyperscan", reason="hyperscan is not installed, and RE2 compiles as quickly as it would read")
    shelf = Shelf()
    everyday = r"POST .{0,20} 200\b"
    data = b"hay\nneedle\nPOST /v1 200 OK\n"
    expected = [line.number for line in Scanner([*PATTERNS, everyday], seldom={everyday}).candidates(Block(data, 1))]
    Scanner([*PATTERNS, everyday], seldom={everyday}, store=shelf).prepare()
    assert len(shelf) == 1
    monkeypatch.setattr("latencydoctor.evidence.logs.scanner.match_blocks", None)
    again = Scanner([*PATTERNS, everyday], seldom={everyday}, store=shelf)
    assert [line.number for line in again.candidates(Block(data, 1))] == expected == [2, 3]
    assert again.which("needle") == {0}


@pytest.mark.parametrize("kept", [[], [b""], [b"anything else"]])
def test_what_was_kept_and_cannot_be_used_is_compiled_anew(kept: list[bytes]) -> None:
    class Broken(Shelf):
        def load(self, key: str) -> list[bytes] | None:
            return kept

    assert [line.number for line in found(b"hay\nneedle\n", scanner=Scanner(PATTERNS, store=Broken()))] == [2]


@pytest.mark.parametrize("other", [{"patterns": ["needles"]}, {"also": ["y"]}, {"look_for": ["z"]}, {"engine": "re2"}])
def test_other_patterns_are_kept_apart(other: dict[str, Any]) -> None:
    asked: list[str] = []

    class Noting(Shelf):
        def load(self, key: str) -> list[bytes] | None:
            asked.append(key)
            return None

    plain: dict[str, Any] = {"patterns": ["needle"], "also": ["x"], "look_for": []}
    for arguments in (plain, plain, plain | other):
        Scanner(**arguments, store=Noting())
    assert asked[0] == asked[1] != asked[2]
