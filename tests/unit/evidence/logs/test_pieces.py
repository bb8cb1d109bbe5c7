"""Pieces of lines that a runtime cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.logs.pieces import gather_pieces, is_piece, join_pieces

HEAD = b"2026-11-30T07:20:26.250000001Z "


def docker(text: str, stream: str = "stderr") -> bytes:
    return json.dumps({"log": text, "stream": stream, "time": "2026-11-30T07:20:26Z"}, separators=(",", ":")).encode()


def test_containerd_s_pieces_are_joined_within_their_stream() -> None:
    lines = [HEAD + b"stdout F x", HEAD + b"stderr P \xc3", HEAD + b"stderr F \xa4 end\r", HEAD + b"stderr F next"]
    pieces = gather_pieces(HEAD + b"stderr P caf", lines)
    assert pieces == [HEAD + b"stderr P caf", lines[1], lines[2]]
    assert join_pieces(pieces) == HEAD + "stderr F cafä end".encode()


def test_docker_s_pieces_are_joined_within_their_stream() -> None:
    lines = [docker("other\n", "stdout"), docker("b"), docker("c\n"), docker("next\n")]
    pieces = gather_pieces(docker("a"), lines)
    assert [json.loads(one)["log"] for one in pieces] == ["a", "b", "c\n"]
    assert json.loads(join_pieces(pieces)) == {"log": "abc\n", "stream": "stderr", "time": "2026-11-30T07:20:26Z"}


def test_pieces_end_where_the_wrapper_ends_and_at_a_bound() -> None:
    first = HEAD + b"stderr P a"
    assert gather_pieces(first, [b"something else", HEAD + b"stderr F b"]) == [first]
    assert len(gather_pieces(first, [first] * 1000)) == 64


@pytest.mark.parametrize(
    "line",
    [HEAD + b"stderr F whole", docker("whole\n"), b"plain", b'{"log":"cut', b'{"log":"a"}x', b'{"log":"a","log":5}'],
)
def test_whole_lines_have_no_pieces(line: bytes) -> None:
    assert not is_piece(line)
    assert gather_pieces(line, [line]) == [line]


def test_what_has_no_wrapper_is_put_together_as_it_is() -> None:
    assert join_pieces([b"a", b"b"]) == b"ab"
    assert join_pieces([]) == b""


def test_text_that_ends_with_an_escaped_backslash_is_looked_at_closely() -> None:
    assert is_piece(docker("half \\n"))
    assert not is_piece(docker("whole \\n\n"))


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_are_put_together(lines: list[bytes]) -> None:
    for line in lines:
        assert gather_pieces(line, lines)[0] == line
    assert isinstance(join_pieces(lines), bytes)
