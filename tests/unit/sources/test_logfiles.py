"""Log files, folders, globs, gzip and stdin; what cannot be read is a gap."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from backports import zstd

from latencydoctor.evidence.logs.blocks import CHUNK_BYTES, MAX_LINE_BYTES
from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.model.evidence import GapReason, Severity, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from latencydoctor.sources.logfiles import EMPTY, LogFiles, LogOptions

RULE = LogRule("dead", "t", "stable", Severity.CRITICAL, ("died",), (), (), None, "", (), "", ())
EVER = Window(float("-inf"), float("inf"))
MOMENT_S = 1_796_023_226.0
"""2026-11-30T07:20:26Z."""


def read(*paths: str | Path, window: Window = EVER, stdin: bytes = b"", limit: int = 10**9) -> Readings:
    options = LogOptions(max_unpacked_bytes=limit)
    files = LogFiles([str(path) for path in paths], lambda: MOMENT_S + 60, io.BytesIO(stdin), options=options)
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


def test_rotated_sets_are_read_oldest_first(tmp_path: Path) -> None:
    ages = {
        "a.log.10.gz": 1,
        "a.log.2.zst": 2,
        "a.log.1": 3,
        "a.log": 4,
        "ts_log.30-Nov.log.gz": 10,
        "ts_log.01-Dec.log.gz": 20,
        "ts_log.log": 5,
        "z.log-20261129": 7,
        "z.log-20261130.gz": 8,
        "z.log": 1,
    }
    for name, age in ages.items():
        write(tmp_path / name, packed(name, b"died\n"), MOMENT_S + age)
    readings = read(tmp_path)
    assert [one.query.split("/")[1] for one in readings.queries] == list(ages)
    assert readings.log_events[0].count == len(ages)


def packed(name: str, data: bytes) -> bytes:
    pack: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".zst": zstd.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
    }
    return pack[Path(name).suffix](data) if Path(name).suffix in pack else data


@pytest.mark.parametrize("name", ["a.log.gz", "a.zst", "a.log.bz2", "a.xz"])
def test_packed_files_and_streams_of_any_kind(tmp_path: Path, name: str) -> None:
    data = packed(name, b"x\ndied\n") + packed(name, b"died\n") + b"\0" * 100
    readings = read(write(tmp_path / name, data), "-", stdin=data)
    assert [(one.outcome, one.series_count) for one in readings.queries] == [("ok", 2), ("ok", 2)]
    assert readings.gaps == ()


@pytest.mark.parametrize("name", ["a.log.gz", "a.zst", "a.log.bz2", "a.xz"])
def test_a_packed_file_cut_anywhere_gives_what_is_there(tmp_path: Path, name: str) -> None:
    data = packed(name, b"died\n" * 3 + os.urandom(3_000_000))
    for size in (len(data) - 1, len(data) // 2 * 2 - 1000, 1_500_000, 10):
        readings = read(write(tmp_path / name, data[:size]))
        assert [gap.reason for gap in readings.gaps] == [GapReason.BAD_ANSWER]
        assert "damaged after" in readings.gaps[0].detail
        assert size == 10 or readings.log_events[0].count >= 3


def test_a_broken_byte_in_a_packed_file(tmp_path: Path) -> None:
    # zstd's own checksum is optional, and its command line writes it; the library does not.
    for name in ("a.log.gz", "a.log.bz2", "a.xz"):
        data = bytearray(packed(name, os.urandom(3_000_000)))
        data[1_500_000] ^= 255
        assert "damaged after" in read(write(tmp_path / name, bytes(data))).gaps[0].detail


def test_a_bomb_is_given_up_by_its_ratio(tmp_path: Path) -> None:
    zeros = zstd.compress(b"\n" * (270 * 1024 * 1024))
    readings = read(write(tmp_path / "a.zst", zstd.compress(b"died\n") + zeros))
    assert "times its size is no log" in readings.gaps[0].detail
    assert readings.log_events[0].count == 1


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"LPKSHHRH\0\0", "journalctl"),
        (b"\x7fELF\2\1", "core dump"),
        (b"PK\x03\x04\n", "zip"),
        (b"\xff\xfeE\0R\0", "UTF-16"),
        (b"a\0" * 128 + b"\0" + b"ustar", "tar"),
        (bytes(range(256)) * 4, "no text"),
        (b"\0" * 5000 + b"\1\2\3" * 99, "no text"),
    ],
)
def test_what_is_clearly_no_log_is_skipped_and_named(tmp_path: Path, head: bytes, words: str) -> None:
    path = write(tmp_path / "core", head + b"\ndied\n")
    for readings in (read(path), read("-", stdin=path.read_bytes())):
        assert readings.gaps[0].reason is GapReason.NOT_SUPPORTED
        assert words in readings.gaps[0].detail
        assert readings.log_events == ()


@pytest.mark.parametrize(
    "data",
    [
        b"died\n" + bytes(range(256)) * 99,
        "µ€漢字 died\n".encode() * 99,
        b"\x1b[31mdied\x1b[0m\r\n",
        b"Caf\xe9 died\n" * 9,
    ],
)
def test_a_log_with_odd_bytes_is_a_log(tmp_path: Path, data: bytes) -> None:
    assert read(write(tmp_path / "a.log", data)).log_events[0].count >= 1


def test_a_file_under_several_names_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", b"died\n")
    (tmp_path / "soft.log").symlink_to(path)
    (tmp_path / "hard.log").hardlink_to(path)
    assert read(tmp_path).log_events[0].count == 1


def test_a_folder_as_standard_input_is_a_gap(tmp_path: Path) -> None:
    class Folder:
        def read(self, _size: int) -> bytes:
            raise IsADirectoryError(21, "Is a directory")

    readings = LogFiles(["-"], lambda: MOMENT_S, Folder()).read([RULE], EVER)
    assert readings.gaps[0].detail == "<stdin>: Is a directory"


def logs_of_all_sizes(folder: Path) -> Path:
    for number in range(7):
        said = [f"2026-11-30T07:2{number}:{index % 60:02}Z ERROR died {index}" for index in range(number * 40)]
        write(
            folder / f"{number}.log{'.gz' if number % 3 == 0 else ''}",
            packed("x.gz" if number % 3 == 0 else "x", "\n".join(said).encode()),
        )
    write(folder / "core", b"\x7fELF")
    write(folder / "cut.gz", packed("x.gz", b"died\n" + os.urandom(9999))[:5000])
    return folder


@pytest.mark.parametrize("processors", [2, 3, 16])
def test_any_number_of_processes_finds_the_same(tmp_path: Path, processors: int) -> None:
    folder = logs_of_all_sizes(tmp_path)
    told: list[int] = []
    given = [str(folder), str(folder / "none")]
    alone = LogFiles(given, lambda: MOMENT_S, options=LogOptions(processors=1)).read([RULE], EVER)
    several = LogFiles(
        given, lambda: MOMENT_S, options=LogOptions(processors=processors, worth_bytes=0, on_bytes=told.append)
    ).read([RULE], EVER)
    assert several == alone
    assert alone.log_events[0].count > 100
    assert sum(told) > 10_000


def test_a_file_whose_process_is_ended_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = logs_of_all_sizes(tmp_path)
    alone = LogFiles([str(folder)], lambda: MOMENT_S, options=LogOptions(processors=1)).read([RULE], EVER)
    parent, export = os.getpid(), LogReader.export

    def dying(reader: LogReader) -> object:
        if os.getpid() != parent and reader.events() and reader.events()[0].count > 150:
            os.kill(os.getpid(), 9)
        return export(reader)

    monkeypatch.setattr(LogReader, "export", dying)
    options = LogOptions(processors=3, worth_bytes=0)
    assert LogFiles([str(folder)], lambda: MOMENT_S, options=options).read([RULE], EVER) == alone


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


def test_the_home_of_nobody_is_a_gap() -> None:
    for name in ("~nobody-has-this-name/a.log", "~nobody-has-this-name/*.log"):
        gaps = read(name).gaps
        assert [gap.reason for gap in gaps] == [GapReason.UNREACHABLE]
        assert "~nobody-has-this-name" in gaps[0].detail


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


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("hole", [3, 5000, 3 * CHUNK_BYTES])
def test_the_hole_that_cutting_a_log_in_use_leaves_is_no_reason_to_skip_it(
    tmp_path: Path, hole: int, limited: bool
) -> None:
    # logrotate's copytruncate, while the program goes on writing where it was: NULs up to there.
    write(tmp_path / "a.log", b"\0" * hole + b"2026-11-30T07:20:26Z died\n2026-11-30T07:20:27Z died\n")
    ends_s = time.monotonic() + 60 if limited else None
    readings = LogFiles([str(tmp_path)], lambda: MOMENT_S, ends_s=ends_s).read([RULE], EVER)
    assert (readings.log_events[0].count, readings.log_events[0].first_s) == (2, MOMENT_S)
    assert readings.gaps == ()


def test_nothing_but_nul_is_no_log(tmp_path: Path) -> None:
    write(tmp_path / "image.log", b"\0" * 70_000)
    assert read(tmp_path).gaps[0].detail.endswith("skipped: this is nothing but NUL bytes")


@pytest.mark.parametrize("name", ["a.log", "a.log.gz"])
def test_a_byte_order_mark_hides_no_stamp(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, packed(name, b"\xef\xbb\xbf2026-11-30T07:20:26Z died\n"))
    assert read(tmp_path).log_events[0].first_s == MOMENT_S


def test_what_stands_at_the_end_of_hours_of_a_progress_bar_is_seen(tmp_path: Path) -> None:
    states = b"".join(
        b"\r%3d%%|##  | %d/9999 [00:01<00:09, 1.1it/s]" % (number % 100, number) for number in range(60_000)
    )
    assert len(states) > 2 * CHUNK_BYTES
    write(tmp_path / "a.log", states + b"\r2026-11-30T07:20:26Z died\n2026-11-30T07:20:27Z died\n")
    (event,) = read(tmp_path).log_events
    assert (event.count, event.first_s) == (2, MOMENT_S)


def test_a_progress_bar_longer_than_a_line_within_one_chunk(tmp_path: Path) -> None:
    states = b"\r 10%|## | 1/9 [00:01<00:09, 1.1it/s]" * (MAX_LINE_BYTES // 20)
    write(tmp_path / "a.log", b"fine\n" + states + b"\r2026-11-30T07:20:26Z died\nfine\n")
    (event,) = read(tmp_path).log_events
    assert (event.count, event.first_s, event.place) == (1, MOMENT_S, f"{tmp_path.name}/a.log:2")


@pytest.fixture
def closed_to_us() -> Iterator[Path]:
    """A folder with a log, and in it a folder and a file that we may not read: as nobody, if we may do anything."""
    with tempfile.TemporaryDirectory(prefix="closed-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        write(folder / "open.log", b"died\n")
        write(folder / "closed.log", b"died\n").chmod(0)
        write(folder / "inner" / "a.log", b"died\n")
        (folder / "inner").chmod(0)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            (folder / "inner").chmod(0o700)


def test_a_folder_that_may_not_be_read_is_a_gap_and_not_empty(closed_to_us: Path) -> None:
    readings = read(closed_to_us)
    assert readings.log_events[0].count == 1
    assert sorted(gap.detail for gap in readings.gaps) == [
        f"{closed_to_us.name}/closed.log: Permission denied",
        f"{closed_to_us.name}/inner: Permission denied",
    ]


@pytest.mark.parametrize("below", ["inner", "inner/a.log", "inner/*.log"])
def test_what_lies_in_such_a_folder_says_so_in_plain_words(closed_to_us: Path, below: str) -> None:
    (gap,) = read(closed_to_us / below).gaps
    assert gap.detail.endswith(": Permission denied")
    assert str(closed_to_us) not in gap.detail
