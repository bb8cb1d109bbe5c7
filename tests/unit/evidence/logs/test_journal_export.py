"""Entries of a journal's export, text and binary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.logs.blocks import whole_lines
from latencydoctor.evidence.logs.journal_export import entry, is_entry_line
from latencydoctor.evidence.logs.reader import LogReader
from tests.unit.log_builders import REFERENCE_S, rule


def block(value: bytes) -> list[bytes]:
    binary = b"MESSAGE\n" + len(value).to_bytes(8, "little") + value
    text = b"\n_PID=9\n\n__CURSOR=a\n_PID=1\n" + binary + b"\n_COMM=\xff\nPRIORITY=3\n_PID=7\n\n_PID=8\n"
    return text.split(b"\n")


# 10 and 2570 are lengths one byte of which is a newline.
@pytest.mark.parametrize("length", [1, 9, 10, 11, 255, 256, 2570, 2571, 5000])
def test_binary_value_of_any_length(length: int) -> None:
    value = b"x" * length
    lines = block(value)
    number = max(index for index, line in enumerate(lines) if line.endswith(b"x"))
    before, after = lines[number - 1 :: -1], lines[number + 1 :]
    assert is_entry_line(lines[number], before)
    message, fields = entry(lines[number], before, after)
    assert message == value
    assert fields == {"__CURSOR": "a", "_PID": "1", "_COMM": "\ufffd", "PRIORITY": "3"}


def test_later_lines_of_a_binary_value_belong_to_it_and_what_follows_does_not() -> None:
    lines = block(b"one\ntwo\n\nfour")
    number = lines.index(b"four")
    assert entry(lines[number], lines[number - 1 :: -1], lines[number + 1 :])[1]["PRIORITY"] == "3"
    assert not is_entry_line(lines[number + 1], lines[number::-1])
    assert not is_entry_line(b"x", [])
    assert not is_entry_line(b"x", [b"_PID=1", b"MESSAGE"])


@pytest.mark.parametrize(
    "value", [b"a\n\nb", b"\n", b"", b"\n\n\n", b"PRIORITY=7\n\n_PID=7\n", b"x" * 266, b"__CURSOR=\n" * 30]
)
def test_binary_values_before_the_message_hide_no_fields_and_are_none(value: bytes) -> None:
    other = b"COREDUMP_ENVIRON\n" + len(value).to_bytes(8, "little") + value + b"\n"
    lines = (b"_PID=9\n\n__CURSOR=a\n_PID=1\n" + other + b"PRIORITY=3\n").split(b"\n")[:-1]
    for message in (b"MESSAGE=it died", b"MESSAGE\n" + (7).to_bytes(8, "little") + b"it died"):
        further = message.split(b"\n")
        before = [*reversed(further[:-1]), *reversed(lines)]
        assert entry(further[-1], before, []) == (b"it died", {"__CURSOR": "a", "_PID": "1", "PRIORITY": "3"})


def test_value_that_is_text() -> None:
    message, fields = entry(b"MESSAGE=a=b", [b"_PID=1\r", b"", b"_PID=2"], [b"\r", b"PRIORITY=3"])
    assert (message, fields) == (b"a=b", {"_PID": "1"})
    assert is_entry_line(b"MESSAGE=a", [])


@pytest.mark.parametrize("length", [200, 266, 2570])
def test_the_first_entry_is_dated_whatever_bytes_its_length_has(length: int) -> None:
    words = (b"died of it" + b"x" * length)[:length]
    entry_of_it = b"__CURSOR=a\n__REALTIME_TIMESTAMP=1796023226250000\nMESSAGE\n"
    data = entry_of_it + length.to_bytes(8, "little") + words + b"\nPRIORITY=3\n\n"
    reader = LogReader([rule("dead", "died of it")])
    reader.read("x", whole_lines([data]), REFERENCE_S)
    (event,) = reader.events()
    assert event.first_s == 1_796_023_226.25


@given(st.binary(max_size=60), st.lists(st.binary(max_size=20) | st.just(b"MESSAGE"), max_size=6))
def test_any_lines_are_read(data: bytes, lines: list[bytes]) -> None:
    is_entry_line(data, lines)
    assert isinstance(entry(data, lines, lines)[0], bytes)
