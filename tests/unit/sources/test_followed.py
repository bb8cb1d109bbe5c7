"""Files that grow, are renamed or cut, and pipes: every byte once, in order."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.evidence.logs.blocks import MAX_LINE_BYTES
from latencydoctor.model.evidence import LogEvent, Severity, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import LogRule
from latencydoctor.sources import followed
from latencydoctor.sources.followed import FollowedFile, FollowedPipe, lines_as_they_come
from latencydoctor.sources.log_follow import Follower

RULE = LogRule("dead", "t", "stable", Severity.CRITICAL, ("died",), (), (), None, "", (), "", ())
EVER = Window(float("-inf"), float("inf"))


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "LOOK_AGAIN_S", 0.01)


class Watched:
    """A follower in a thread, with what it told so far."""

    def __init__(self, *sources: followed.Followed, levels: bool = False) -> None:
        self.told: list[LogEvent] = []
        self.follower = Follower(sources, [RULE], EVER, self.told.append, levels=levels)
        self._readings: list[Readings] = []
        self._thread = threading.Thread(target=lambda: self._readings.append(self.follower.run()), daemon=True)
        self._thread.start()

    def lines(self) -> list[str]:
        return [event.line for event in self.told]

    def end(self) -> Readings:
        self.follower.stop.set()
        self._thread.join(5)
        return self._readings[0]

    def until(self, true: Callable[[], bool]) -> None:
        ends_s = time.monotonic() + 10
        while not true():
            assert time.monotonic() < ends_s, self.lines()
            time.sleep(0.005)

    def wait(self) -> Readings:
        self._thread.join(10)
        return self._readings[0]


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_file_is_followed_through_renaming_and_cutting(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    append(path, "died 1\nfine\n")
    watched = Watched(FollowedFile(path, "a.log"), levels=True)
    watched.until(lambda: len(watched.told) == 1)
    append(path, "died 2")
    time.sleep(0.1)
    assert watched.lines() == ["died 1"], "half a line says nothing yet"
    append(path, " really\n")
    watched.until(lambda: len(watched.told) == 2)
    path.rename(tmp_path / "a.log.1")
    time.sleep(0.05)
    append(tmp_path / "a.log.1", "died 3\n")
    append(path, "died 4\n")
    watched.until(lambda: len(watched.told) == 4)
    os.truncate(path, 0)
    time.sleep(0.1)
    append(path, "died 5\n")
    watched.until(lambda: len(watched.told) == 5)
    readings = watched.end()
    assert watched.lines() == ["died 1", "died 2 really", "died 3", "died 4", "died 5"]
    assert [event.place for event in watched.told] == ["a.log:1", "a.log:3", "a.log:4", "a.log:1", "a.log:1"]
    assert readings.log_events[0].count == 5
    assert dict(readings.levels)["none"] == 6
    assert [(one.query, one.outcome, one.series_count) for one in readings.queries] == [("a.log", "ok", 5)]


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    watched = Watched(
        FollowedFile(tmp_path / "late.log", "late.log"), FollowedFile(tmp_path / "never.log", "never.log")
    )
    time.sleep(0.05)
    append(tmp_path / "late.log", "died\n")
    watched.until(lambda: len(watched.told) == 1)
    readings = watched.end()
    assert [one.outcome for one in readings.queries] == ["ok", "empty"]
    assert readings.levels == ()


def test_several_sources_are_told_of_as_they_write_and_summed_up_in_order(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    watched = Watched(FollowedPipe(ours, "<stdin>", time.time()), FollowedFile(tmp_path / "a.log", "a.log"))
    append(tmp_path / "a.log", "died in the file\n")
    watched.until(lambda: len(watched.told) == 1)
    os.write(theirs, b"died in the pipe\ndied without an end")
    watched.until(lambda: len(watched.told) == 2)
    os.close(theirs)
    watched.until(lambda: len(watched.told) == 3)
    readings = watched.end()
    os.close(ours)
    assert readings.log_events[0].count == 3
    assert [one.query for one in readings.queries] == ["<stdin>", "a.log"]


def test_it_ends_with_its_source(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    watched = Watched(FollowedPipe(ours, "<stdin>", time.time()))
    os.write(theirs, b"died\n")
    os.close(theirs)
    assert watched.wait().log_events[0].count == 1
    os.close(ours)


def test_a_source_that_breaks_leaves_a_gap(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.close(theirs)
    watched = Watched(FollowedPipe(os.open(tmp_path, os.O_RDONLY), "folder", time.time()))
    readings = watched.wait()
    os.close(ours)
    assert readings.gaps[0].detail == "folder: Is a directory"


def test_a_named_pipe_is_followed_until_its_writer_leaves(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    watched = Watched(FollowedFile(tmp_path / "pipe", "pipe"))
    time.sleep(0.05)
    with (tmp_path / "pipe").open("wb", buffering=0) as writer:
        writer.write(b"died 1\n")
        watched.until(lambda: len(watched.told) == 1)
        time.sleep(0.05)
        writer.write(b"died 2\n")
    readings = watched.wait()
    assert (watched.lines(), readings.gaps) == (["died 1", "died 2"], ())


@pytest.mark.parametrize("opened", [False, True])
def test_a_named_pipe_into_which_nobody_writes_holds_nobody(tmp_path: Path, opened: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR) if opened else -1
    watched = Watched(FollowedFile(tmp_path / "pipe", "pipe"))
    time.sleep(0.05)
    assert [one.outcome for one in watched.end().queries] == ["empty"]
    if opened:
        os.close(writer)


def test_a_teller_that_fails_ends_it_and_is_heard(tmp_path: Path) -> None:
    """Who is told of events may have nowhere to write: that is not the end of a source, and not to be lost."""
    append(tmp_path / "a.log", "died\n")
    append(tmp_path / "b.log", "fine\n")

    def full(_event: LogEvent) -> None:
        raise KnownError("the output cannot be written: No space left on device")

    sources = [FollowedFile(tmp_path / name, name) for name in ("b.log", "a.log")]
    with pytest.raises(KnownError, match="No space left"):
        Follower(sources, [RULE], EVER, full).run()


def test_an_endless_line_takes_no_memory() -> None:
    pieces = list(lines_as_they_come(iter([b"x" * MAX_LINE_BYTES] * 5 + [b"", b"end\nnext"])))
    assert [None if piece is None else len(piece.data) for piece in pieces] == [None, MAX_LINE_BYTES + 4, 4]
