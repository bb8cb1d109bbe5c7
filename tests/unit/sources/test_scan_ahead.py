"""Blocks that other processes have scanned are the blocks of one reader, in order."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Generator

import pytest

from latencydoctor.evidence.logs.blocks import Look
from latencydoctor.evidence.logs.levels import LevelCounter
from latencydoctor.evidence.logs.scanner import Scanner
from latencydoctor.sources.scan_ahead import ScanAhead, cores

SCANNER = Scanner(["needle"])
SPARSE = [b"hay\n" * 500 + b"needle %d\n" % number for number in range(300)]
DENSE = [b"needle %d\n" % number * 30 for number in range(60)]


@pytest.mark.parametrize("processes", [0, 1, 3])
def test_candidates_are_the_same_with_any_number_of_processes(processes: int) -> None:
    chunks = SPARSE + DENSE + SPARSE + [b"needle without end"]
    found = [
        (line.number, line.data)
        for block in ScanAhead(SCANNER, processes, begins_bytes=10_000).blocks(chunks)
        for line in SCANNER.candidates(block)
    ]
    expected = [
        (number, line) for number, line in enumerate(b"".join(chunks).split(b"\n"), 1) if line.startswith(b"needle")
    ]
    assert found == expected


def test_a_short_stream_starts_no_process_and_an_empty_one_has_no_block() -> None:
    assert list(ScanAhead(SCANNER, 2).blocks([])) == []
    assert [block.look for block in ScanAhead(SCANNER, 2).blocks([b"needle\n"])] == [None]


def test_an_engine_without_patterns_looks_at_nothing() -> None:
    blank = Scanner([], look_for=())
    blocks = list(ScanAhead(blank, 2, begins_bytes=1).blocks([b"a\n", b"needle\n", b"c\n"]))
    assert [(block.first_line, block.look) for block in blocks] == [
        (1, None),
        (2, Look([], [], 1)),
        (3, Look([], [], 1)),
    ]


@pytest.mark.parametrize("processes", [0, 2])
def test_levels_are_counted_wherever_a_piece_is_scanned(processes: int) -> None:
    chunks = [b"2026-11-30 10:00:00,000 [ERROR] a\n" * 99 + b"hay\n"] * 20
    ahead = ScanAhead(SCANNER, processes, begins_bytes=5000, levels=LevelCounter())
    assert len(list(ahead.blocks(chunks))) == 20
    assert (ahead.level_counts.lines, ahead.level_counts.levels["ERROR"]) == (2000, 1980)


def test_when_the_processes_die_the_rest_is_scanned_here() -> None:
    chunks = SPARSE + DENSE
    lines: list[bytes] = []
    killed = 0
    for block in ScanAhead(SCANNER, 2, begins_bytes=10_000).blocks(chunks):
        lines += [line.data for line in SCANNER.candidates(block)]
        for child in multiprocessing.active_children() if block.first_line > 50_000 and not killed else ():
            child.kill()
            child.join()
            killed += 1
    assert killed == 2
    assert lines == [line for line in b"".join(chunks).split(b"\n") if line.startswith(b"needle")]
    assert multiprocessing.active_children() == []


def test_whoever_stops_early_leaves_no_process() -> None:
    blocks = ScanAhead(SCANNER, 2, begins_bytes=1000).blocks(SPARSE)
    assert isinstance(blocks, Generator)
    next(block for block in blocks if block.look is not None)
    assert len(multiprocessing.active_children()) == 2
    blocks.close()
    gc.collect()
    assert multiprocessing.active_children() == []


def test_a_piece_too_large_for_the_shared_memory_is_scanned_here() -> None:
    large = (b"x" * 99 + b"\n") * 30_000 + b"needle\n"
    found = [
        line.number
        for block in ScanAhead(SCANNER, 1, begins_bytes=1).blocks([b"hay\n", large, b"needle\n"])
        for line in SCANNER.candidates(block)
    ]
    assert found == [30_002, 30_003]


def test_a_machine_has_processors() -> None:
    assert cores() >= 1
