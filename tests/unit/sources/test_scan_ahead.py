"""Blocks that threads have scanned are the blocks of one reader, in order."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.sources.scan_ahead import ScanAhead, cores

SCANNER = Scanner(["needle"])
SPARSE = [b"hay\n" * 500 + b"needle %d\n" % number for number in range(300)]
DENSE = [b"needle %d\n" % number * 30 for number in range(60)]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_candidates_are_the_same_with_any_number_of_threads(threads: int) -> None:
    chunks = SPARSE + DENSE + SPARSE + [b"needle without end"]
    found = [
        (line.number, line.data)
        for block in ScanAhead(SCANNER, threads, begins_bytes=10_000).blocks(chunks)
        for line in SCANNER.candidates(block)
    ]
    expected = [
        (number, line) for number, line in enumerate(b"".join(chunks).split(b"\n"), 1) if line.startswith(b"needle")
    ]
    assert found == expected


def test_a_short_stream_starts_no_thread_and_an_empty_one_has_no_block() -> None:
    assert list(ScanAhead(SCANNER, 2).blocks([])) == []
    assert [block.ends for block in ScanAhead(SCANNER, 2).blocks([b"needle\n"])] == [None]


def test_an_engine_without_patterns_looks_at_nothing() -> None:
    blank = Scanner([], look_for=())
    blocks = list(ScanAhead(blank, 2, begins_bytes=1).blocks([b"a\n", b"needle\n", b"c\n"]))
    assert [(block.first_line, block.ends) for block in blocks] == [(1, None), (2, []), (3, [])]


def test_a_machine_has_processors() -> None:
    assert cores() >= 1
