"""What holds for any bytes at all: no failure, no control characters, the same events however cut, linear time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latencydoctor.evidence.logs.blocks import MAX_LINE_BYTES, whole_lines
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, clean, read_line
from latencydoctor.evidence.logs.reader import SHOWN_CHARACTERS, LogReader, scanner_for
from latencydoctor.model.evidence import LogEvent
from latencydoctor.model.rule import LogRule
from tests.unit.evidence.logs.test_reader import RULES

REFERENCE_S = 1_796_100_000.0
LEVELS = {"", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}
SCANNER = scanner_for(RULES)

# What formats and wrappers are made of, so that random texts get past the first look.
FRAGMENTS = (
    *(
        "> ",
        "{",
        "}",
        '"',
        '\\"',
        "\\n",
        "\\u003c",
        "[",
        "]",
        "(",
        ")",
        " | ",
        ": ",
        " ",
        "\t",
        "\r",
        "\x1b[31m",
        "^[[0m",
    ),
    *("&quot;", "&lt;", "2026-11-30T07:20:26.123456789Z ", "2026-02-30 25:61:61,999 ", "E1330 24:00:60.000000 1 ", "]"),
    *("W0229 10:00:00.5 7 a.cc:1] ", "Nov 31 00:00:00 host unit[1]: ", "[rank3]:[E1130 07:20:26.000000001 x.cpp:1] "),
    *('{"log":"', '\\n","stream":"stderr","time":"2026-11-30T07:20:26Z"}', " stdout F ", " stderr P ", "svc-1  | "),
    *("[pod/a/b] ", "pod-1 main ", "INFO ", "ERROR 11-30 07:20:26 [core.py:9] ", "(APIServer pid=1) ", "INFO:     "),
    *(
        "__CURSOR=s=1",
        "__REALTIME_TIMESTAMP=99999999999999999999",
        "MESSAGE",
        "MESSAGE=died",
        '"MESSAGE":[100,105,300]',
    ),
    *("<14>1 2026-11-30T07:20:26Z h a 1 - - ", "Traceback (most recent call last):", "  File x", "Caused by: ", "died"),
    *(
        "waited 99999999999999999999 ms",
        "odd",
        "excused",
        "[repeated 999999999999x across cluster]",
        " rank=7",
        "|---+",
    ),
    *(
        "[1843.308145] NVRM: Xid (PCI:0000:1a:00): 79, ",
        "Warning  BackOff  2s (x99999999999 over 3m)  kubelet  died",
        "<a>",
    ),
)

PIECES = st.one_of(st.sampled_from([one.encode() for one in FRAGMENTS]), st.binary(max_size=6), st.just(b"\n"))
ANY_BYTES = st.one_of(st.binary(max_size=400), st.lists(PIECES, max_size=40).map(b"".join))


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def read(data: Iterable[bytes], rules: tuple[LogRule, ...] = RULES) -> tuple[LogEvent, ...]:
    reader = LogReader(rules, None, SCANNER)
    reader.read("x", whole_lines(data), REFERENCE_S)
    return reader.events()


def is_control(character: str) -> bool:
    return (character < " " and character not in "\t\n") or "\x7f" <= character <= "\x9f"


@settings(deadline=None)
@given(ANY_BYTES)
def test_a_cleaned_line_holds_nothing_that_moves_a_cursor(data: bytes) -> None:
    assert not any(is_control(one) for one in clean(data.replace(b"\n", b"")))


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY_BYTES, max_size=4))
def test_any_line_is_read_as_a_well_formed_record(lines: list[bytes]) -> None:
    dating = Dating(REFERENCE_S)
    for line in lines:
        record = read_line(clean(line.replace(b"\n", b"")), dating)
        assert isinstance(record, LineRecord)
        assert record.level in LEVELS
        assert record.count >= 1
        for moment_s in (record.time_s, record.outer_s, record.began_s):
            assert moment_s is None or math.isfinite(moment_s)
        assert all(math.isfinite(value) for _, value in record.fields)
        assert not any(is_control(one) for one in record.text)


@settings(max_examples=200, deadline=None)
@given(ANY_BYTES)
def test_events_of_any_bytes_can_be_shown(data: bytes) -> None:
    for event in read([data]):
        assert event.count >= 1
        assert len(event.line) <= SHOWN_CHARACTERS
        assert event.first_s is None or event.last_s is None or event.first_s <= event.last_s
        assert not any(is_control(one) for one in event.line)


@settings(max_examples=200, deadline=None)
@given(ANY_BYTES, st.integers(1, 50))
def test_events_do_not_depend_on_how_the_bytes_arrive(data: bytes, size: int) -> None:
    assert read(chunks(data, size)) == read([data])


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_line_behind_an_endless_one_is_found(before: bytes, filler: bytes) -> None:
    filler = filler.replace(b"\n", b"") or b"x"
    long_line = filler * (MAX_LINE_BYTES // len(filler) + 2)
    (found,) = (one for one in read([before, b"\n", long_line, b"\n2026-11-30T07:20:26Z died\n"]) if one.rule == "dead")
    assert found.first_s is not None


def _seconds(fragment: str, size: int) -> float:
    line = (fragment * (size // len(fragment) + 1))[:size]
    data = f"{line}died\n".encode("utf-8", "replace")
    best = math.inf
    for _ in range(3):
        began = time.process_time()
        read([data] * 2)
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_ten_times_the_line_takes_no_more_than_about_ten_times_as_long(fragment: str) -> None:
    # Twice the bound leaves room for a busy machine; quadratic time would be a hundred times. Under 20 ms is noise.
    allowed_s = max(20 * _seconds(fragment, 20_000), 0.02)
    assert _seconds(fragment, 200_000) <= allowed_s
