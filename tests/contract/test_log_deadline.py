"""Logs that take too long: what was read by the deadline counts, and how much that was is said."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from latencydoctor.cli import probing, sources_wiring, wiring
from latencydoctor.cli.sources_wiring import DiagnoseRequest
from latencydoctor.errors import CannotTell
from latencydoctor.model.evidence import GapReason, Severity, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from tests.contract.strangers import drip_head, stranger

# One plain rule, so that a busy machine does not need the whole time to compile them.
LOG_RULES = (LogRule("oom", "t", "stable", Severity.CRITICAL, ("out of memory",), (), (), None, "", (), "", ()),)
EVER = Window(float("-inf"), float("inf"))
OOM = b"2026-11-30 10:00:00 ERROR torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
QUIET = b"2026-11-30 10:00:00 INFO served in 12 ms\n"
WITHIN_S = 1.0


def read(*paths: Path, within_s: float = WITHIN_S) -> Readings:
    """Within a time that must be kept up to what a busy machine needs."""
    ends_s = time.monotonic() + within_s
    readings = sources_wiring.log_source([str(path) for path in paths], ends_s=ends_s).read(LOG_RULES, EVER)
    assert time.monotonic() < ends_s + 1.5
    return readings


def told(readings: Readings) -> str:
    (gap,) = [gap for gap in readings.gaps if gap.reason is GapReason.DEADLINE]
    assert gap.signal == "logs"
    assert "--deadline" in gap.needs
    return gap.detail


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@contextmanager
def dripping(path: Path) -> Iterator[Path]:
    """A pipe into which somebody writes now and then and which never ends."""
    os.mkfifo(path)
    done = threading.Event()

    def drip() -> None:
        with path.open("wb", buffering=0) as pipe:
            while not done.wait(0.1):
                pipe.write(OOM)

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield path
    finally:
        done.set()
        thread.join(5)


def test_a_huge_file_counts_as_far_as_it_was_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.log"
    write(huge, OOM + QUIET * 50_000)
    # A hole reads as 500 GB of zeros and takes no room.
    os.truncate(huge, 500 * 10**9)
    readings = read(write(tmp_path / "small.log", QUIET), huge, tmp_path / "after.log")
    assert [(one.rule, one.count) for one in readings.log_events] == [("oom", 1)]
    detail = told(readings)
    assert "after 1 file and " in detail
    assert "huge.log to " in detail
    assert "MB" in detail or "GB" in detail
    assert [record.outcome.partition(" after")[0] for record in readings.queries] == ["ok", "deadline passed"]


def test_a_pipe_that_nobody_writes_to_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "silent.fifo")
    readings = read(write(tmp_path / "a.log", OOM), tmp_path / "silent.fifo")
    assert [one.rule for one in readings.log_events] == ["oom"]
    assert "after 1 file and 102 bytes" in told(readings)
    assert "nothing of" in told(readings)
    assert "silent.fifo yet" in told(readings)


def test_a_pipe_that_drips_gives_what_came_through(tmp_path: Path) -> None:
    with dripping(tmp_path / "slow.fifo") as pipe:
        readings = read(pipe)
    (event,) = readings.log_events
    assert 1 <= event.count <= 12
    assert "slow.fifo to " in told(readings)


def test_of_many_files_some_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(1500):
        (folder / f"{number:05}.log").write_bytes(OOM * 60)
    readings = read(folder, within_s=0.3)
    assert " files and " in told(readings)
    assert len(readings.queries) < 1500


def test_all_of_it_where_there_is_time(tmp_path: Path) -> None:
    readings = read(write(tmp_path / "a.log", QUIET * 1000 + OOM), within_s=30.0)
    assert readings.gaps == ()
    assert [one.outcome for one in readings.queries] == ["ok"]
    assert readings.log_events[0].place.endswith("a.log:1001")


def test_a_diagnosis_ends_in_time_whatever_its_logs_do(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "silent.fifo")
    logs = (str(write(tmp_path / "a.log", OOM.replace(b"2026-11-30 10:00:00 ", b""))), str(tmp_path / "silent.fifo"))
    began_s = time.monotonic()
    found = wiring.diagnose(wiring.DiagnoseRequest(logs=logs, deadline="4s"))
    assert time.monotonic() - began_s < 4.0 + 2.0
    assert [event.rule for event in found.diagnosis.log_events] == ["gpu_oom"]
    missing = {gap.signal: gap for gap in found.diagnosis.missing}
    assert missing["logs"].reason is GapReason.DEADLINE
    assert "silent.fifo" in missing["logs"].detail


def test_a_prometheus_that_hangs_leaves_the_logs_their_share(tmp_path: Path) -> None:
    with stranger(drip_head) as server:
        request = wiring.DiagnoseRequest(
            prometheus=server.url, logs=(str(write(tmp_path / "a.log", OOM)),), deadline="6s", at="2026-11-30T10:05:00Z"
        )
        found = wiring.diagnose(request)
        with pytest.raises(CannotTell):
            wiring.diagnose(wiring.DiagnoseRequest(prometheus=server.url, deadline="1s"))
    assert [event.rule for event in found.diagnosis.log_events] == ["gpu_oom"]


def test_config_check_calls_large_logs_readable_and_a_silent_pipe_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "_DEADLINE_S", 0.5)
    write(tmp_path / "huge.log", QUIET)
    os.truncate(tmp_path / "huge.log", 500 * 10**9)
    os.mkfifo(tmp_path / "silent.fifo")
    file = tmp_path / "latencydoctor.yaml"
    for name, state in (("huge.log", "ok"), ("silent.fifo", "unreachable"), ("nowhere.log", "unreachable")):
        file.write_text(f"sources:\n  logs: [{name}]\n  nvml: false\n")
        (probed,) = probing.probe(DiagnoseRequest(config=file)).sources
        assert (name, probed.state) == (name, state)


def test_the_logs_command_has_no_deadline(tmp_path: Path) -> None:
    with dripping(tmp_path / "slow.fifo") as pipe:
        source = sources_wiring.log_source([str(pipe)])
        found: list[Readings] = []
        reader = threading.Thread(target=lambda: found.append(source.read(LOG_RULES, EVER)))
        reader.start()
        time.sleep(WITHIN_S + 0.5)
        assert reader.is_alive()
    reader.join(5)
    assert found[0].gaps == ()
