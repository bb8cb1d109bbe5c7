"""Bytes become numbered blocks of whole lines, also where one file of a set follows another."""

from __future__ import annotations

from latencydoctor.evidence.logs.blocks import LOOK_BACK_BYTES, MAX_LINE_BYTES, Block, Seam, cut, whole_lines

SEAM = Seam("x.log", 9.0)


def test_another_file_begins_with_a_line_of_its_own_and_sees_what_was_before() -> None:
    blocks = list(whole_lines([b"one\ntwo", SEAM, b"three\n"]))
    assert blocks[0] == Block(b"one\n", 1, after=b"two\n")
    assert blocks[1] == Block(b"two\n", 2, before=b"one\n", after=b"three\n")
    assert blocks[2] == Block(b"three\n", 3, before=b"one\ntwo\n", seam=SEAM)


def test_a_file_without_lines_is_no_block() -> None:
    last = Seam("y.log", 9.0)
    assert [block.seam for block in whole_lines([SEAM, b"", last, b"one\n"])] == [last]
    assert list(whole_lines([SEAM])) == []


def test_an_overlong_line_ends_with_its_file() -> None:
    pieces = list(cut([b"x" * (MAX_LINE_BYTES + 9), SEAM, b"next\n"]))
    assert [len(piece.data) for piece in pieces] == [MAX_LINE_BYTES + 1, 5]
    assert pieces[1].data == b"next\n"
    assert len(pieces[1].before) == LOOK_BACK_BYTES
