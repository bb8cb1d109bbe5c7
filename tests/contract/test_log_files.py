"""Hostile log files through the real command: it reads what can be read, ends, and leaves nothing behind."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latencydoctor.content.locate import locate
from latencydoctor.content.rules import load_log_rules
from latencydoctor.model.evidence import Window
from latencydoctor.sources.logfiles import LogFiles

OUT_OF_MEMORY = b"Out of memory: Killed process 4242 (python3) total-vm:9000000kB, anon-rss:8000000kB, file-rss:4kB"
KILLED = b"Nov 30 07:20:26 node-a kernel: " + OUT_OF_MEMORY + b"\n"
KILLED_S = datetime(2026, 11, 30, 7, 20, 26, tzinfo=UTC).timestamp()
WRITTEN_S = KILLED_S + 3600
FINE = b"2026-11-30T07:20:25.000Z INFO served one more request in 12 ms\n"
LONGEST_S = 60.0
INTERRUPTED = (130, -signal.SIGINT)
"""A shell makes 130 of both."""

MARK = "LOG_FILES_TEST_MARK"

needs_proc = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc to look at processes")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "latencydoctor", "logs", *arguments]


def logs(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(command(*arguments), cwd=folder, input=stdin, capture_output=True, timeout=LONGEST_S)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def pyramid(folder: Path, *arguments: str, stdin: bytes = b"") -> dict[str, Any]:
    done = logs(folder, *arguments, "--format", "json", "--exit-zero", stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def keep(path: Path, data: bytes, written_s: float = WRITTEN_S) -> None:
    path.write_bytes(data)
    os.utime(path, (written_s, written_s))


def counts(document: dict[str, Any]) -> dict[str, int]:
    return {event["rule"]: event["count"] for event in document["events"] if event["severity"] != "INFO"}


def test_damaged_bytes_hide_nothing(tmp_path: Path) -> None:
    odd = [
        b"\xff\xfe broken \xe2\x94 text\n",
        b"a\x00b\x00c\n",
        b"\r 10%|#\r 20%|##\r100%|###\n",
        b"\x1b[31mred\x1b[0m\r\n",
    ]
    keep(tmp_path / "a.log", FINE * 80 + b"".join(odd) + KILLED + b"".join(odd))
    document = pyramid(tmp_path, "a.log")
    assert counts(document) == {"host_oom": 1}
    assert document["events"][0]["first_s"] == KILLED_S
    assert document["events"][0]["place"] == "a.log:85"


def test_a_line_of_ten_megabytes_costs_neither_the_rest_nor_the_memory(tmp_path: Path) -> None:
    keep(tmp_path / "a.log", FINE + b"x" * 10_000_000 + b"\n" + KILLED)
    assert counts(pyramid(tmp_path, "a.log")) == {"host_oom": 1}
    assert _peak_kb(tmp_path, "a.log") < 400_000


def _peak_kb(folder: Path, *arguments: str) -> int:
    """The most memory that the command takes, measured by a small process: a child of a large one inherits its peak."""
    program = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    argv = [sys.executable, "-c", program, *command(*arguments, "--exit-zero")]
    return int(subprocess.run(argv, cwd=folder, capture_output=True, check=True, timeout=LONGEST_S).stdout)


def test_a_line_without_an_end_takes_linear_time(tmp_path: Path) -> None:
    keep(tmp_path / "a.log", FINE + b'{"log":"' * 1_500_000)
    began_s = time.monotonic()
    assert counts(pyramid(tmp_path, "a.log")) == {}
    assert time.monotonic() - began_s < 30.0


def test_what_a_cut_archive_still_holds_is_read(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(200_000).hex().encode()
    packed = gzip.compress(KILLED + noise)
    keep(tmp_path / "a.log.gz", packed[: len(packed) // 2])
    document = pyramid(tmp_path, "a.log.gz")
    assert counts(document) == {"host_oom": 1}
    (gap,) = document["gaps"]
    assert "a.log.gz" in gap["detail"]


def test_all_members_of_an_archive_are_read(tmp_path: Path) -> None:
    keep(tmp_path / "a.log.gz", gzip.compress(FINE) + gzip.compress(KILLED))
    assert counts(pyramid(tmp_path, "a.log.gz")) == {"host_oom": 1}


@pytest.mark.slow
def test_an_archive_made_to_burst_is_given_up_and_the_rest_is_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.log.gz", "wb", compresslevel=9) as stream:
        stream.write(KILLED)
        for _ in range(400):
            stream.write(bytes(1024 * 1024))
    keep(tmp_path / "other.log", FINE + KILLED)
    began_s = time.monotonic()
    document = pyramid(tmp_path, "bomb.log.gz", "other.log")
    assert time.monotonic() - began_s < 30.0
    assert counts(document) == {"host_oom": 2}
    (gap,) = document["gaps"]
    assert "bomb.log.gz" in gap["detail"]


def test_cut_zstd_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    library = "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd"
    zstd = pytest.importorskip(library, reason="this Python was built without zstd")
    noise = random.Random(2).randbytes(600_000).hex().encode()
    packed: bytes = zstd.compress(KILLED + noise)
    keep(tmp_path / "a.log.zst", packed[: len(packed) - 1000])
    document = pyramid(tmp_path, "a.log.zst")
    assert counts(document) == {"host_oom": 1}
    assert len(document["gaps"]) == 1


def test_a_clock_set_back_loses_no_event(tmp_path: Path) -> None:
    later = KILLED.replace(b"07:20:26", b"09:20:26").replace(b"4242", b"4243")
    keep(tmp_path / "a.log", later + KILLED, KILLED_S + 10_000)
    (event,) = pyramid(tmp_path, "a.log")["events"]
    assert (event["count"], event["first_s"], event["last_s"]) == (2, KILLED_S, KILLED_S + 7200)


def test_the_turn_of_the_year_dates_stamps_without_one(tmp_path: Path) -> None:
    old, new = KILLED.replace(b"Nov 30 07", b"Dec 31 23"), KILLED.replace(b"Nov 30 07", b"Jan  1 00")
    written_s = datetime(2027, 1, 2, tzinfo=UTC).timestamp()
    keep(tmp_path / "a.log", old + new.replace(b"4242", b"4243"), written_s)
    (event,) = pyramid(tmp_path, "a.log")["events"]
    assert event["first_s"] == datetime(2026, 12, 31, 23, 20, 26, tzinfo=UTC).timestamp()
    assert event["last_s"] == datetime(2027, 1, 1, 0, 20, 26, tzinfo=UTC).timestamp()


def test_local_time_follows_summer_time_where_a_wrapper_tells(tmp_path: Path) -> None:
    sizes = "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 20.25 MiB is free."
    said = f" [core.py:9] torch.OutOfMemoryError: CUDA out of memory. {sizes}"
    lines = [
        f"2026-11-01T05:30:00.000000000Z ERROR 11-01 01:30:00{said}",
        "2026-11-01T05:59:00.000000000Z INFO 11-01 01:59:00 [core.py:9] fine",
        "2026-11-01T06:05:00.000000000Z INFO 11-01 01:05:00 [core.py:9] fine",
        f"2026-11-01T06:30:00.000000000Z ERROR 11-01 01:30:00{said}",
    ]
    keep(tmp_path / "a.log", "".join(f"{line}\n" for line in lines).encode())
    (event,) = pyramid(tmp_path, "a.log")["events"]
    first_s = datetime(2026, 11, 1, 5, 30, tzinfo=UTC).timestamp()
    assert (event["count"], event["first_s"], event["last_s"]) == (2, first_s, first_s + 3600)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    keep(tmp_path / "a.log", KILLED)
    done = logs(tmp_path, "a.log", "-o", "/dev/full")
    assert done.returncode == 1
    assert b"/dev/full" in done.stderr
    assert b"No space left" in done.stderr
    assert b"Make room" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("form", ["text", "json"])
def test_standard_output_that_is_full_is_no_crash(tmp_path: Path, form: str) -> None:
    keep(tmp_path / "a.log", KILLED)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("a.log", "--format", form), cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, timeout=LONGEST_S
        )
    assert done.returncode not in (0, 3)
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to the superuser")
def test_a_file_that_may_not_be_read_is_a_gap(tmp_path: Path) -> None:
    keep(tmp_path / "secret.log", KILLED)
    keep(tmp_path / "open.log", KILLED)
    (tmp_path / "secret.log").chmod(0)
    document = pyramid(tmp_path, ".")
    assert counts(document) == {"host_oom": 1}
    assert "secret.log" in document["gaps"][0]["detail"]


def test_links_in_a_circle_and_missing_files_are_gaps(tmp_path: Path) -> None:
    (tmp_path / "a.log").symlink_to("b.log")
    (tmp_path / "b.log").symlink_to("a.log")
    keep(tmp_path / "c.log", KILLED)
    document = pyramid(tmp_path, "a.log", "no-such.log", "c.log")
    assert counts(document) == {"host_oom": 1}
    assert len(document["gaps"]) == 2


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    keep(tmp_path / "a.log", KILLED)
    assert counts(pyramid(tmp_path, ".")) == {"host_oom": 1}


@contextmanager
def started(
    folder: Path, *arguments: str, stdin: IO[bytes] | None = None, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The command, as soon as it has what it needs to read."""
    child = subprocess.Popen(
        command(*arguments),
        cwd=folder,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    try:
        _wait_until_ready(child)
        yield child
    finally:
        child.kill()
        child.communicate()


def _wait_until_ready(child: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + 30.0
    maps = Path(f"/proc/{child.pid}/maps")
    while child.poll() is None and time.monotonic() < until_s:
        # The matcher is the last thing that it loads before it reads.
        if any(name in maps.read_text() for name in ("hyperscan", "_re2")):
            break
        time.sleep(0.05)
    time.sleep(1.0)


def interrupted(child: subprocess.Popen[bytes], within_s: float = 10.0) -> None:
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=within_s)
    assert b"Traceback" not in errors, errors.decode()
    assert child.returncode in INTERRUPTED


@needs_proc
def test_a_pipe_named_by_hand_can_be_interrupted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with started(tmp_path, "pipe") as child:
        assert child.poll() is None
        interrupted(child)


@needs_proc
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_an_endless_device_ends_or_can_be_ended(tmp_path: Path, device: str) -> None:
    with started(tmp_path, device, "--since", "1m") as child:
        if child.poll() is None:
            interrupted(child)
        assert child.wait(1.0) in (4, *INTERRUPTED)


@needs_proc
def test_an_endless_stream_can_be_interrupted(tmp_path: Path) -> None:
    with (
        subprocess.Popen(["yes", FINE.decode().rstrip()], stdout=subprocess.PIPE) as endless,
        started(tmp_path, "-", "--since", "1m", stdin=endless.stdout) as child,
    ):
        assert child.poll() is None
        interrupted(child)
        endless.kill()


def _while(act: Callable[[], object], stop: threading.Event) -> threading.Thread:
    def again() -> None:
        while not stop.is_set():
            act()
            time.sleep(0.001)

    thread = threading.Thread(target=again)
    thread.start()
    return thread


def test_a_file_that_grows_while_it_is_read_is_read_to_some_end(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    keep(path, KILLED + FINE * 100_000)
    stop = threading.Event()
    with path.open("ab") as stream:
        thread = _while(lambda: stream.write(FINE * 50), stop)
        try:
            assert counts(pyramid(tmp_path, "a.log")) == {"host_oom": 1}
        finally:
            stop.set()
            thread.join()


def test_a_file_that_is_cut_off_while_it_is_read_is_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    keep(path, KILLED + FINE * 200_000)
    stop = threading.Event()

    def cut() -> None:
        os.truncate(path, 0)
        with path.open("ab") as stream:
            stream.write(FINE * 20_000)

    thread = _while(cut, stop)
    try:
        assert set(counts(pyramid(tmp_path, "a.log"))) <= {"host_oom"}
    finally:
        stop.set()
        thread.join()


def _marked(mark: str) -> list[int]:
    """Processes that carry the mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@needs_proc
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ended_in_the_middle_it_leaves_nothing_behind(tmp_path: Path, how: signal.Signals) -> None:
    logs_folder, temporary = tmp_path / "logs", tmp_path / "temporary"
    logs_folder.mkdir()
    temporary.mkdir()
    for number in range(4):
        # Lines that all have to be looked at, so that the command is still busy when the signal comes.
        keep(logs_folder / f"{number}.log", KILLED * 300_000)
    mark = f"{MARK}-{os.getpid()}-{how.value}"
    more = {MARK: mark, "TMPDIR": str(temporary)}
    with started(tmp_path, "logs", "-o", "out.json", "--format", "json", env=more) as child:
        assert child.poll() is None
        child.send_signal(how)
        child.wait(10.0)
        patient_s = time.monotonic() + 5.0
        while _marked(mark) and time.monotonic() < patient_s:
            time.sleep(0.05)
        assert _marked(mark) == []
    assert not (tmp_path / "out.json").exists()
    assert list(temporary.iterdir()) == []


RULES = load_log_rules(locate())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.one_of(st.binary(max_size=300), st.just(KILLED), st.just(FINE)), max_size=6).map(b"".join),
    st.sampled_from(["a.log", "a.log.1", "a.log.gz", "a.log.zst", "ts_log.30-Nov.log.gz", "a.xz", "a"]),
    st.sampled_from([b"", b"\x1f\x8b", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"BZh9", b"\xfd7zXZ\x00"]),
)
def test_any_file_is_read_or_named_as_a_gap(tmp_path: Path, data: bytes, name: str, head: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(head + data)
    try:
        readings = LogFiles([str(path)], now_s=lambda: WRITTEN_S).read(RULES[:3], Window(float("-inf"), float("inf")))
    finally:
        path.unlink()
    assert readings.queries
    assert all(event.count > 0 for event in readings.log_events)
