"""From a line without a head or a stamp back to the one that has it."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.blocks import RawLine
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, read_raw
from latencydoctor.evidence.logs.lookback import LookBack
from tests.unit.log_builders import REFERENCE_S, START_S, at, raw_lines

HEAD = f"{at(1)} ERROR it failed\n"


def last(text: str, chunk_bytes: int = 1 << 20) -> tuple[LookBack, RawLine, LineRecord]:
    dating = Dating(REFERENCE_S)
    line = raw_lines(text, chunk_bytes)[-1]
    return LookBack(dating), line, read_raw(line, dating)


@pytest.mark.parametrize("chunk_bytes", [1 << 20, 30])
@pytest.mark.parametrize("between", [0, 1, 100])
def test_a_frame_belongs_to_the_head_above_it(between: int, chunk_bytes: int) -> None:
    back, line, record = last(HEAD + "  frame\n" * between + "  the last frame\n", chunk_bytes)
    found = back.head_of(line, record, {})
    assert isinstance(found, tuple)
    assert (found[0], found[1].text) == (1, "it failed")


def test_what_is_known_to_reach_up_to_it_is_found_first() -> None:
    back, line, record = last(HEAD + "  frame\n  the last frame\n")
    assert back.head_of(line, record, {2: "the open record"}) == "the open record"


def test_without_any_head_an_indented_line_belongs_to_the_nearest_that_is_not() -> None:
    back, line, record = last("it failed here\n  because\n  of this\n")
    found = back.head_of(line, record, {})
    assert isinstance(found, tuple)
    assert (found[0], found[1].text) == (1, "it failed here")
    back, line, record = last("it failed here\nbecause of this\n")
    assert back.head_of(line, record, {}) is None


def test_lines_of_other_sources_are_passed_over() -> None:
    text = f"a-1 | {at(1)} ERROR ours\nb-1 | {at(2)} ERROR theirs\na-1 |   frame\n"
    back, line, record = last(text)
    found = back.head_of(line, record, {})
    assert isinstance(found, tuple)
    assert (found[0], found[1].text) == (1, "ours")


def test_a_head_written_long_before_is_another_records() -> None:
    text = f"{at(1)} stdout F {at(1)} ERROR old\n{at(9)} stdout F   frame\n"
    back, line, record = last(text)
    assert back.head_of(line, record, {}) is None


def test_looking_back_is_given_up_sooner_where_it_finds_nothing() -> None:
    dating = Dating(REFERENCE_S)
    back = LookBack(dating)
    lines = raw_lines("plain words\n" * 40 + HEAD + "plain words\n" * 20)
    for line in lines[:40]:
        assert back.head_of(line, read_raw(line, dating), {}) is None
    # By now only the nearest lines are asked, and the head is twenty away.
    assert back.head_of(lines[-1], read_raw(lines[-1], dating), {}) is None
    assert back.head_of(lines[43], read_raw(lines[43], dating), {}) is not None
    # What was found there makes it look as far as before.
    assert back.head_of(lines[-1], read_raw(lines[-1], dating), {}) is not None


@pytest.mark.parametrize(("between", "expected"), [(0, START_S + 1), (15, START_S + 1), (16, None)])
def test_a_stamp_is_borrowed_from_a_near_neighbour(between: int, expected: float | None) -> None:
    back, line, record = last(HEAD + "plain words\n" * between + "no stamp\n")
    assert back.time_before(line, record) == expected


def test_a_stamp_that_was_seen_need_not_be_looked_for() -> None:
    dating = Dating(REFERENCE_S)
    first, second = raw_lines(HEAD + "no stamp\n")
    back = LookBack(dating)
    back.saw(first, read_raw(first, dating)._replace(time_s=7.0))
    assert back.time_before(second, read_raw(second, dating)) == 7.0


def test_a_stamp_of_another_source_is_not_borrowed() -> None:
    back, line, record = last(f"a-1 | {at(1)} ERROR theirs\nb-1 | no stamp\n")
    assert back.time_before(line, record) is None


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("INFO 11-30 07:20:26 [a.py:1] one\r\nINFO 11-30 07:20:26 [a.py:1] two\n", False),
        (
            "INFO 11-30 07:20:25 [a.py:1] x\nINFO 11-30 07:20:26 [a.py:1] one\r\nINFO 11-30 07:20:26 [a.py:1] two\n",
            True,
        ),
        ("one\ntwo\n", False),
        ("one\r\ntwo\r\nthree\r\n", False),
    ],
    ids=["every line may end so", "a message of two lines", "plain", "a file of another system"],
)
def test_a_carriage_return_goes_on_only_where_others_have_none(text: str, repeats: bool) -> None:
    back, line, _ = last(text)
    assert back.repeats_head(line) == repeats


@pytest.mark.parametrize(
    ("before", "is_one"), [("Process EngineCore_0:\n", True), ("Process of 3\n", False), ("", False)]
)
def test_what_python_prints_of_a_dying_process_is_a_reprint(before: str, is_one: bool) -> None:
    back, line, _ = last(before + "Traceback (most recent call last):\n")
    assert back.is_reprint(line) == is_one


@pytest.mark.parametrize(("before", "plain"), [("words\n", True), ("  frame\n", False), ("\tat x\n", False)])
def test_a_frame_before_a_line_is_told_from_words(before: str, plain: bool) -> None:
    back, line, record = last(before + "ValueError: odd\n")
    assert back.is_plain_before(line, record) == plain
