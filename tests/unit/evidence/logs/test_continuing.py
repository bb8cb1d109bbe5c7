"""Whether a line goes on with an open record, and which of a record's hits count."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.continuing import (
    Kind,
    Open,
    goes_on,
    is_past,
    java_frame_after,
    open_traceback,
    opens_dump,
    repeats,
)
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.judging import Hit
from latencydoctor.evidence.logs.lines import LineRecord, read_raw
from latencydoctor.evidence.logs.told import Told
from tests.unit.log_builders import REFERENCE_S, raw_lines, rule, told

TRACEBACK = "Traceback (most recent call last):"
LINK = "The above exception was the direct cause of the following exception:"


def record(text: str, **changes: object) -> LineRecord:
    return LineRecord(None, "", text, continued=True)._replace(**changes)  # type: ignore[arg-type]  # any field, by name


def opened(kind: Kind = Kind.PLAIN, **changes: object) -> Open:
    one = Open("", "", head=1, time_s=10.0, level="ERROR", last=1, kind=kind)
    for name, value in changes.items():
        setattr(one, name, value)
    return one


def follow(base: Open, *texts: str) -> list[bool | None]:
    """What each further line, written without a head, is to the record."""
    dating = Dating(REFERENCE_S)
    lines = raw_lines("\n".join(["head", *texts]) + "\n")
    said: list[bool | None] = []
    for line in lines[1:]:
        said.append(goes_on(base, line, read_raw(line, dating)))
        base.last = line.number
    return said


def test_a_traceback_below_a_head_speaks_with_its_exception_only() -> None:
    base = opened()
    assert follow(base, TRACEBACK, '  File "a.py", line 1, in f', "    x()", "ValueError: odd", "more of it") == [
        *(False, False, False, True),
        True,
    ]
    assert (base.kind, base.block, base.exception_at) == (Kind.PYTHON, 0, 5)


def test_an_exception_after_an_exception_is_a_record_of_its_own() -> None:
    assert follow(opened(), TRACEBACK, "  frame", "ValueError: odd", "KeyError: other")[-1] is None


def test_linked_tracebacks_are_blocks_of_one_record_others_are_not() -> None:
    base = opened()
    assert follow(base, TRACEBACK, "ValueError: odd", "", LINK, "", TRACEBACK, "KeyError: x")[-2:] == [False, True]
    assert base.block == 1
    assert follow(opened(), TRACEBACK, "ValueError: odd", TRACEBACK)[-1] is None


def test_a_java_stack_follows_its_message_and_ends_with_what_caused_it() -> None:
    base = opened()
    said = follow(
        base, "java.io.IOException: odd", "\tat a.B.c(B.java:1)", "Caused by: java.lang.X: root", "\t... 3 more"
    )
    assert said == [True, False, True, False]
    assert (base.kind, base.block) == (Kind.JAVA, 1)


@pytest.mark.parametrize(
    ("text", "level", "goes"),
    [
        ("and more of what went wrong", "ERROR", True),
        ("and more of what went wrong", "INFO", None),
        ("[2026] something of its own", "ERROR", None),
        ("2026-11-30 something of its own", "ERROR", None),
        ("  indented", "INFO", True),
        ("| a row |", "INFO", True),
        ("ValueError: odd", "ERROR", None),
    ],
)
def test_plain_lines_tell_more_of_what_is_loud_and_indented_ones_of_anything(
    text: str, level: str, goes: bool | None
) -> None:
    assert follow(opened(level=level), text) == [goes]


def test_below_a_dump_a_traceback_is_no_part_of_it() -> None:
    assert follow(opened(benign=True), TRACEBACK) == [None]


def test_lines_of_another_stream_or_program_tell_nothing_more() -> None:
    (line,) = raw_lines("more of it\n")
    assert goes_on(opened(stream="stderr"), line, record("more of it", stream="stdout")) is None
    assert goes_on(opened(program="vllm"), line, record("more of it", program="redis")) is None
    assert goes_on(opened(outer_s=1.0), line, record("more of it")) is None
    assert goes_on(opened(stream="stderr"), line, record("more of it", stream="stderr")) is True


@pytest.mark.parametrize(
    ("number", "time_s", "goes"), [(3, 10.0, True), (402, 10.0, None), (3, 12.5, None), (3, None, True)]
)
def test_a_repeated_head_goes_on_with_a_traceback_while_it_is_near(
    number: int, time_s: float | None, goes: bool | None
) -> None:
    current = opened(Kind.PYTHON, block=0)
    assert repeats(current, number, record("ValueError: odd", time_s=time_s)) is goes


def test_under_repeated_heads_frames_are_silent_and_other_words_are_not_its() -> None:
    current = opened(Kind.PYTHON, block=0, file_line="core.py:7")
    assert repeats(current, 2, record('  File "a.py", line 1, in f')) is False
    assert repeats(current, 2, record("^^^^^")) is False
    assert repeats(current, 2, record("all is well")) is None
    assert repeats(current, 2, record("ValueError: odd")) is True
    assert repeats(current, 3, record("of the same place", file_line="core.py:7")) is False
    assert repeats(current, 3, record("of another place", file_line="api.py:1")) is None


def test_a_traceback_right_under_its_head_is_the_heads() -> None:
    assert repeats(opened(), 2, record(TRACEBACK)) is False
    assert repeats(opened(), 99, record(TRACEBACK)) is None
    assert repeats(opened(benign=True), 2, record(TRACEBACK)) is None
    assert repeats(opened(file_line="a.py:1"), 2, record(TRACEBACK, file_line="b.py:1")) is None
    assert repeats(opened(), 2, record("no traceback")) is None


def test_a_head_may_end_with_the_beginning_of_its_traceback() -> None:
    one = opened()
    assert open_traceback(one, f"Scheduler hit an exception: {TRACEBACK}")
    assert (one.kind, one.block) == (Kind.PYTHON, 0)
    assert not open_traceback(opened(), f"{TRACEBACK} {'x' * 300}")


@pytest.mark.parametrize(
    ("base_s", "line_s", "past"), [(1.0, 3.0, False), (1.0, 3.1, True), (None, 9.0, False), (9.0, None, False)]
)
def test_what_a_wrapper_took_over_well_after_a_record_is_not_its(
    base_s: float | None, line_s: float | None, past: bool
) -> None:
    assert is_past(opened(outer_s=base_s), record("x", outer_s=line_s)) == past


def test_a_dump_is_told_by_its_open_bracket() -> None:
    assert [opens_dump(text) for text in ("Args {", "list: [  ", "call(", "done.")] == [True, True, True, False]


def test_a_frame_in_the_next_block_is_seen() -> None:
    first = raw_lines("java.io.IOException: odd\n\tat a.B.c(B.java:1)\n", chunk_bytes=25)[0]
    assert java_frame_after(first)
    assert not java_frame_after(raw_lines("java.io.IOException: odd\nfine\n")[0])


def hit(rule_id: str, number: int) -> tuple[Hit, Told]:
    one = told(rule(rule_id, rule_id), 1, number)
    return Hit(one.way, False, {}), one


@pytest.mark.parametrize(
    ("kind", "blocks", "chosen"),
    [
        (Kind.PYTHON, {-1: "head", 0: "root", 1: "later"}, ["root"]),
        (Kind.PYTHON, {-1: "head", 1: "later"}, ["later"]),
        (Kind.PYTHON, {-1: "head"}, ["head"]),
        (Kind.JAVA, {-1: "head", 0: "outer", 1: "root"}, ["root"]),
        (Kind.PLAIN, {-1: "head", 0: "detail"}, ["head", "detail"]),
        (Kind.PLAIN, {}, []),
    ],
)
def test_of_a_chain_the_root_counts(kind: Kind, blocks: dict[int, str], chosen: list[str]) -> None:
    one = opened(kind)
    for block, rule_id in blocks.items():
        one.hits[block] = [hit(rule_id, block + 2)]
    assert [told.rule_id for _, told in one.chosen()] == chosen


def test_a_class_that_two_lines_of_a_record_show_counts_once() -> None:
    one = opened()
    one.hits = {-1: [hit("slow", 1), hit("dead", 1)], 0: [hit("slow", 2)]}
    assert [(told.rule_id, told.number) for _, told in one.chosen()] == [("slow", 1), ("dead", 1)]


@pytest.mark.parametrize(
    ("kind", "root"), [(Kind.PYTHON, 2), (Kind.JAVA, 4998), (Kind.PLAIN, 2)], ids=["python", "java", "plain"]
)
def test_a_record_without_an_end_keeps_only_what_may_count(kind: Kind, root: int) -> None:
    one = opened(kind)
    one.show(-1, *hit("slow", 1))
    for number in range(2, 5000):
        one.show(number // 2 - 1, *hit("dead", number))
        one.show(-1, *hit("slow", number))
    assert sum(len(held) for held in one.hits.values()) < 200
    assert [told.number for _, told in one.chosen() if told.rule_id == "dead"] == [root]
