"""Log files, folders, globs, gzip and stdin; what cannot be read is a gap."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pytest

from latencydoctor.evidence.logs.scan import CHUNK_BYTES
from latencydoctor.model.evidence import GapReason, Severity, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from latencydoctor.sources.logfiles import EMPTY, LogFiles

RULE = LogRule("dead", "t", "stable", Severity.CRITICAL, ("died",), (), (), None, "", (), "", ())
EVER = Window(float("-inf"), float("inf"))
MOMENT_S = 1_796_023_226.0
"""2026-11-30T07:20:26Z."""


def read(*paths: str | Path, window: Window = EVER, stdin: bytes = b"", limit: int = 10**9) -> Readings:
    files = LogFiles([str(path) for path in paths], lambda: MOMENT_S + 60, io.BytesIO(stdin), limit)
    return files.read([RULE], window)


def write(path: Path, data: bytes, modified_s: float = MOMENT_S + 60) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (modified_s, modified_s))
    return path


def test_folder_glob_and_file_are_read_once_each(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write(logs / "b.log", b"died\n")
    write(logs / "deep" / "a.log", b"x\ndied\n")
    write(logs / ".hidden", b"died\n")
    readings = read(logs, logs / "*.log", logs / "b.log")
    assert readings.log_events[0].count == 2
    assert [(one.query, one.outcome, one.series_count) for one in readings.queries] == [
        ("logs/b.log", "ok", 1),
        ("deep/a.log", "ok", 1),
    ]
    assert readings.gaps == ()


def test_relative_path_is_named_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "logs" / "a.log", b"died\n")
    monkeypatch.chdir(tmp_path)
    assert read("logs").log_events[0].place == "logs/a.log:1"


def test_rotated_set_is_read_oldest_first(tmp_path: Path) -> None:
    for name in ("a.log", "a.log.1", "a.log.10.gz"):
        data = b"died\n"
        write(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    readings = read(tmp_path)
    assert [one.query.split("/")[1] for one in readings.queries] == ["a.log.10.gz", "a.log.1", "a.log"]
    assert readings.log_events[0].place.endswith("a.log.10.gz:1")


def test_long_file_in_chunks(tmp_path: Path) -> None:
    line = b"x" * 99 + b"\n"
    write(tmp_path / "a.log", line * (CHUNK_BYTES // 100 + 50) + b"died\n")
    assert read(tmp_path / "a.log").log_events[0].place.endswith(f"a.log:{CHUNK_BYTES // 100 + 51}")


@pytest.mark.parametrize("name", ["nothing.log", "none*.log", "empty"])
def test_missing_file_is_a_gap_that_names_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    readings = read(tmp_path / name, write(tmp_path / "a.log", b"died\n"))
    assert [gap.reason for gap in readings.gaps] == [GapReason.UNREACHABLE]
    assert name in readings.gaps[0].detail
    assert readings.log_events[0].count == 1


def test_unreadable_name_is_a_gap() -> None:
    assert read("bad\0name").gaps[0].reason is GapReason.UNREACHABLE
    assert read("bad\0name*").gaps[0].reason is GapReason.UNREACHABLE


def test_truncated_and_damaged_gzip_keep_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(b"died\n" * 5000 + os.urandom(50_000))
    write(tmp_path / "cut.gz", packed[: len(packed) // 2])
    write(tmp_path / "bad.gz", packed[:12] + b"\xff" * 40)
    readings = read(tmp_path)
    assert [gap.reason for gap in readings.gaps] == [GapReason.BAD_ANSWER] * 2
    assert all("damaged after" in gap.detail for gap in readings.gaps)


def test_gzip_bomb_is_given_up(tmp_path: Path) -> None:
    write(tmp_path / "bomb.gz", gzip.compress(b"died\n" + b"\0" * (3 * CHUNK_BYTES)))
    readings = read(tmp_path, limit=2 * CHUNK_BYTES)
    assert "given up" in readings.gaps[0].detail
    assert readings.log_events[0].count == 1


def test_zstd_is_said_to_be_unknown(tmp_path: Path) -> None:
    readings = read(write(tmp_path / "a.zst", b"\x28\xb5\x2f\xfd rest"))
    assert readings.gaps[0].reason is GapReason.NOT_SUPPORTED


def test_empty_file_and_standard_input(tmp_path: Path) -> None:
    readings = read(write(tmp_path / "a.log", b""), "-", stdin=b"x\ndied\n")
    assert [(one.query.split("/")[-1], one.outcome) for one in readings.queries] == [
        ("a.log", EMPTY),
        ("<stdin>", "ok"),
    ]
    assert readings.log_events[0].place == "<stdin>:2"


def test_no_paths_are_a_gap() -> None:
    assert read().gaps[0].reason is GapReason.NOT_CONFIGURED


@pytest.mark.parametrize("modified_s", [MOMENT_S + 60, MOMENT_S + 5 * 365 * 86400])
def test_year_comes_from_the_window_or_the_file_whichever_is_earlier(tmp_path: Path, modified_s: float) -> None:
    line = b"E1130 07:20:26.000000 1 a.cc:1] died\n"
    path = write(tmp_path / "a.log", line, modified_s)
    readings = read(path, window=Window(MOMENT_S - 60, MOMENT_S + 60))
    assert readings.log_events[0].first_s == MOMENT_S
