"""Lines that were damaged on the way, and what is left of them."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.logs.damage import LOOKED_AT_CHARACTERS, clean, split_interleaved, tidy, unescape
from latencydoctor.evidence.logs.draft import Draft


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        (b"windows\r", "windows"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"^[[36mactor^[[0m x", "actor x"),
        (b"a^[b", "a^[b"),
        (b"\x00\x00\x00late", "late"),
        (b"bad \xff\xc3", "bad \ufffd\ufffd"),
        ("\u202eturned \u2028 \u200e".encode(), "turned  "),
        (b"a\tb", "a\tb"),
        (b" 10%|# | 1/10 [1.1s/it]\r 20%|## | 2/10 [1.1s/it]", " 20%|## | 2/10 [1.1s/it]"),
        (b" 10%|# | 1/10 [1.1it/s]\rERROR boom", "ERROR boom"),
        (b"ERROR boom\r 20%|## | 2/10 [1.1it/s]\r\r", "ERROR boom"),
        (b"first\rsecond", "second"),
        (b" 10%|# | 1.1it/s\r" * 1000 + b"ERROR boom\r" + b" 20%|# | 1.1it/s\r" * 50, "ERROR boom"),
        (b"ERROR boom\r" + b" 20%|# | 1.1it/s\r" * 1000, " 20%|# | 1.1it/s"),
        (b"\r\r", ""),
        (b"", ""),
    ],
)
def test_clean(data: bytes, text: str) -> None:
    assert clean(data) == text


def test_end_of_a_huge_line_is_not_looked_at() -> None:
    assert len(clean(b"x" * 10_000_000)) == LOOKED_AT_CHARACTERS


@given(st.binary(max_size=200))
def test_no_control_byte_is_left(data: bytes) -> None:
    assert not any((ord(one) < 32 and one != "\t") or 127 <= ord(one) < 160 for one in clean(data))


@given(st.text(max_size=200))
def test_tidy_text_can_be_encoded_and_stays_so(text: str) -> None:
    tidied = tidy(text)
    tidied.encode()
    assert tidy(tidied) == tidied or "\x1b" in text or "^[" in text


@pytest.mark.parametrize("line", ['{"a": "b<c>"}', "it's <b>", 'say "x" & y'])
def test_escaped_lines_are_as_before(line: str) -> None:
    draft = Draft()
    assert unescape(html.escape(line), draft) == line
    assert draft.quoted


@pytest.mark.parametrize("line", ['{"message": "&lt;html&gt;"}', "a & b", "no entity", "&lt; <b>"])
def test_entities_among_raw_marks_are_a_program_s_own(line: str) -> None:
    draft = Draft()
    assert unescape(line, draft) == line
    assert not draft.quoted


def test_second_writer_s_lines_are_cut_off() -> None:
    first = "INFO 11-30 07:20:26 [a.py:1] half of"
    second = "E1130 07:20:26.000000 41 a.cc:1] boom"
    third = "[2026-11-30 07:20:26 TP0] Decode batch"
    fourth = "2026-11-30T07:20:26.123456Z ERROR x: y"
    assert split_interleaved(first + second + third + fourth) == [first, second, third, fourth]
    assert split_interleaved("  " + first) == ["  ", first]
    assert split_interleaved("nothing at all") == ["nothing at all"]
