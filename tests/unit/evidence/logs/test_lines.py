"""One line, understood: formats, levels, counts, ranks; and bytes of any kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.logs.lines import LineRecord, clean, read_line

REFERENCE_S = 1_796_100_000.0
MOMENT_S = 1_796_023_226.0
"""2026-11-30T07:20:26Z."""


def test_structured_line_of_the_stack() -> None:
    record = read_line(
        '{"time": "2026-11-30T07:20:26Z", "level": "WARN", "event": "e", "message": "m", "count": 3, "on": true}',
        REFERENCE_S,
    )
    assert record == LineRecord(MOMENT_S, "WARNING", "m", "e", (("count", 3.0),), 3, structured=True, program="stack")


@pytest.mark.parametrize("text", ['{"a": ', "{}x", '["a"]', "{" * 100_000])
def test_what_only_looks_like_json_is_text(text: str) -> None:
    assert not read_line(text, REFERENCE_S).structured


def test_figures_that_are_none_are_left_out() -> None:
    record = read_line(
        '{"a": NaN, "b": 1e999, "c": 1' + "0" * 4000 + ', "count": -5, "event": 3, "message": null}', REFERENCE_S
    )
    assert record.fields == (("count", -5.0), ("event", 3.0))
    assert (record.count, record.event, record.text) == (1, "", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('E1130 07:20:26.000000 41 a_b.cc:1] "say \\"x\\"\\nmore"', 'say "x"\nmore'),
        ("E1130 07:20:26.000000 41 a_b.cc:1] plain", "plain"),
        ('2026-11-30T07:20:26Z E 41 a_b.cc:1] "quoted"', "quoted"),
        ('E1130 07:20:26.000000 41 a_b.cc:1] "cut \\', '"cut \\'),
        ('E1130 07:20:26.000000 41 a_b.cc:1] "bad \\x"', "bad \\x"),
    ],
)
def test_triton_in_both_formats(line: str, message: str) -> None:
    assert read_line(line, REFERENCE_S) == LineRecord(
        MOMENT_S, "ERROR", message, program="triton", file_line="a_b.cc:1"
    )


@pytest.mark.parametrize(("level", "word"), [("WARN", "WARNING"), ("ERROR", "ERROR"), ("FATAL", "CRITICAL"), ("", "")])
def test_stamped_line_of_any_program(level: str, word: str) -> None:
    record = read_line(f"2026-11-30 07:20:26,000 {level} text", REFERENCE_S)
    assert (record.time_s, record.level, record.continued) == (MOMENT_S, word, False)


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [("[rank7]: ", "7"), ("(Worker_TP3 pid=9) ", "3"), ("[2026-11-30 07:20:26 TP5] ", "5"), ("", "")],
)
def test_rank_of_a_worker(prefix: str, rank: str) -> None:
    assert read_line(prefix + "died", REFERENCE_S).rank == rank


def test_line_without_a_head_is_continued() -> None:
    assert read_line("  at x", REFERENCE_S).continued


def test_clean_takes_control_bytes_and_overrides_away() -> None:
    assert clean(b"\x1b[31mred\x1b[0m\x00\x07 \xff[/INST]\t\xe2\x80\xaex\r") == "red \ufffd[/INST]\tx"


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_read(data: bytes) -> None:
    record = read_line(clean(data), REFERENCE_S)
    assert record.count >= 1
    assert not any(ord(one) < 32 and one != "\t" for one in clean(data))
