"""Files of one rotated set are one stream: what crosses their border is one event, and each line keeps its file."""

from __future__ import annotations

import gzip
import os
import threading
import time
from pathlib import Path

import pytest

from latencydoctor.model.evidence import GapReason, Window
from latencydoctor.model.readings import Readings
from latencydoctor.model.rule import Burst, LogRule, Sequel
from latencydoctor.sources import followed
from latencydoctor.sources.followed import FollowedFile
from latencydoctor.sources.log_follow import Follower
from latencydoctor.sources.log_targets import Absent, Target, after, side_by_side
from latencydoctor.sources.logfiles import LogFiles, LogOptions
from tests.unit.log_builders import START_S, at, rule, stamped

EVER = Window(float("-inf"), float("inf"))
DEAD = rule("dead", "died")
OFTEN = rule("often", "slow", burst=Burst(3, 60.0))
TRACEBACK = (
    f"{at(1)} ERROR it failed\n"
    "Traceback (most recent call last):\n"
    '  File "serve.py", line 3, in predict\n'
    "    model()\n"
    "RuntimeError: died of it\n"
)


def write(path: Path, text: str, age_s: float = 0.0) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    os.utime(path, (START_S + 3600 - age_s,) * 2)
    return path


def read(rules: list[LogRule], *paths: Path, **options: object) -> Readings:
    # The options have types of their own, which keywords of any name cannot tell.
    chosen = LogOptions(**options)  # type: ignore[arg-type]  # any option, by name
    return LogFiles([str(path) for path in paths], time.time, options=chosen).read(rules, EVER)


@pytest.mark.parametrize("split", range(1, 5))
@pytest.mark.parametrize("older", ["x.log.1", "x.log.1.gz", "x.log-20261129", "x.log.2026-11-29.gz"])
def test_a_record_that_crosses_the_border_is_one_event_with_its_heads_time(
    tmp_path: Path, older: str, split: int
) -> None:
    lines = TRACEBACK.splitlines(keepends=True)
    write(tmp_path / older, f"{at(0)} INFO fine\n" + "".join(lines[:split]), age_s=60)
    write(tmp_path / "x.log", "".join(lines[split:]) + f"{at(2)} INFO fine\n")
    (event,) = read([DEAD], tmp_path).log_events
    assert (event.count, event.first_s) == (1, START_S + 1)
    assert event.place == f"{tmp_path.name}/x.log:{5 - split}"


def test_a_burst_may_be_spread_over_a_set_and_is_counted_where_it_was_told(tmp_path: Path) -> None:
    write(tmp_path / "x.log.2", stamped((0, "WARN slow")), age_s=9)
    write(tmp_path / "x.log.1", stamped((20, "WARN slow"), (21, "INFO fine")), age_s=8)
    write(tmp_path / "x.log", stamped((40, "WARN slow"), (50, "WARN slow")))
    readings = read([OFTEN], tmp_path)
    (event,) = readings.log_events
    assert (event.count, event.first_s, event.last_s) == (4, START_S, START_S + 50)
    assert [(one.query.split("/")[1], one.outcome, one.series_count) for one in readings.queries] == [
        ("x.log.2", "ok", 1),
        ("x.log.1", "ok", 1),
        ("x.log", "ok", 2),
    ]


def test_a_retry_is_taken_back_by_what_the_next_file_says(tmp_path: Path) -> None:
    retry = rule("lost", "refused", recovered_by=Sequel(("connected",), 60.0))
    write(tmp_path / "x.log.1", stamped((0, "WARN refused, trying again")), age_s=9)
    write(tmp_path / "x.log", stamped((2, "INFO connected")))
    assert read([retry], tmp_path).log_events == ()


def test_arguments_of_a_shell_are_put_in_order(tmp_path: Path) -> None:
    write(tmp_path / "x.log.1", stamped((0, "WARN slow")), age_s=9)
    write(tmp_path / "x.log", stamped((20, "WARN slow"), (30, "WARN slow")))
    write(tmp_path / "a.txt", "nothing\n")
    readings = read([OFTEN], tmp_path / "x.log", tmp_path / "a.txt", tmp_path / "x.log.1")
    assert [one.query.split("/")[1] for one in readings.queries] == ["x.log.1", "x.log", "a.txt"]
    assert readings.log_events[0].count == 3


def test_a_last_line_without_an_end_does_not_swallow_the_next_files_first(tmp_path: Path) -> None:
    write(tmp_path / "x.log.1", f"{at(0)} ERROR died on", age_s=9)
    write(tmp_path / "x.log", f"{at(9)} ERROR died again\n")
    (event,) = read([DEAD], tmp_path).log_events
    assert (event.count, event.first_s, event.last_s) == (2, START_S, START_S + 9)


def test_a_hole_in_a_set_ends_what_was_open(tmp_path: Path) -> None:
    head, rest = TRACEBACK.splitlines(keepends=True)[:2], TRACEBACK.splitlines(keepends=True)[2:]
    write(tmp_path / "x.log.3", "".join(head), age_s=9)
    write(tmp_path / "x.log.1", "".join(rest), age_s=5)
    write(tmp_path / "x.log", "")
    (event,) = read([DEAD], tmp_path).log_events
    assert event.first_s is None, "x.log.2 is not there: nobody knows what these lines belong to"


def test_what_is_broken_off_goes_on_nowhere(tmp_path: Path) -> None:
    whole = gzip.compress(("".join(f"{at(0)} INFO {os.urandom(20).hex()}\n" for _ in range(2000)) + TRACEBACK).encode())
    (tmp_path / "x.log.1.gz").write_bytes(whole[: len(whole) // 2])
    write(tmp_path / "x.log", "RuntimeError: died of it\n")
    readings = read([DEAD], tmp_path)
    assert [one.reason for one in readings.gaps] == [GapReason.BAD_ANSWER]
    assert readings.log_events[0].first_s is None


def test_the_same_with_any_number_of_processes(tmp_path: Path) -> None:
    for name in ("x", "y", "z"):
        write(tmp_path / f"{name}.log.2.gz", stamped(*((index, "WARN slow") for index in range(2))), age_s=9)
        write(tmp_path / f"{name}.log.1", stamped((20, "WARN slow")), age_s=8)
        write(tmp_path / f"{name}.log", stamped((30, "WARN fine"), (40, "ERROR died")))
    alone = read([OFTEN, DEAD], tmp_path, processors=1)
    assert {one.rule: one.count for one in alone.log_events} == {"often": 9, "dead": 3}
    assert read([OFTEN, DEAD], tmp_path, processors=3, worth_bytes=0) == alone


def test_a_limited_time_reads_sets_alike(tmp_path: Path) -> None:
    write(tmp_path / "x.log.1", "".join(TRACEBACK.splitlines(keepends=True)[:3]), age_s=9)
    write(tmp_path / "x.log", "".join(TRACEBACK.splitlines(keepends=True)[3:]))
    files = LogFiles([str(tmp_path)], time.time, ends_s=time.monotonic() + 60)
    readings = files.read([DEAD], EVER)
    assert readings.log_events[0].first_s == START_S + 1
    assert [one.outcome for one in readings.queries] == ["ok", "ok"]


def test_a_year_apart_each_file_dates_its_own_stamps(tmp_path: Path) -> None:
    write(tmp_path / "x.log.1", "ERROR 11-30 07:20:00 [core.py:7] died\n", age_s=365 * 86_400)
    write(tmp_path / "x.log", "ERROR 11-30 07:20:00 [core.py:7] died\n")
    (event,) = read([DEAD], tmp_path).log_events
    assert event.last_s == START_S
    assert event.first_s == START_S - 365 * 86_400


def target(name: str) -> Target:
    return Target(Path("/nowhere") / name, name)


@pytest.mark.parametrize(
    ("last", "here", "goes_on"),
    [
        ("x.log.1", "x.log", True),
        ("x.log.0", "x.log", True),
        ("x.log.2", "x.log", False),
        ("x.log.1", "y.log", False),
        ("x.log", "x.log.1", False),
        ("x.log-20261129", "x.log", True),
    ],
)
def test_what_goes_on_is_told_by_the_names(last: str, here: str, goes_on: bool) -> None:
    found = after(target(last), target(here))
    assert isinstance(found, Target)
    assert found.continues == goes_on


def test_files_numbered_for_another_reason_are_not_joined(tmp_path: Path) -> None:
    # One log a rank: nothing is called "rank", so these numbers are no ages.
    ranks = [write(tmp_path / f"rank.{number}", stamped((0, "WARN slow"))) for number in range(3)]
    assert read([OFTEN], *ranks).log_events == ()


def test_nothing_goes_on_from_what_is_absent() -> None:
    found = after(Absent("x.log.1", GapReason.UNREACHABLE, "no"), target("x.log"))
    assert isinstance(found, Target)
    assert not found.continues
    assert after(None, Absent("x", GapReason.UNREACHABLE, "no")) == Absent("x", GapReason.UNREACHABLE, "no")


def test_only_files_of_one_set_change_places() -> None:
    assert side_by_side(["b/x.log", "a/x.log.2", "-", "b/x.log.1.gz", "a/x.log"]) == [
        "b/x.log.1.gz",
        "b/x.log",
        "a/x.log.2",
        "a/x.log",
        "-",
    ]


def test_a_followed_file_goes_on_in_its_successor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "LOOK_AGAIN_S", 0.01)
    path = write(tmp_path / "x.log", "".join(TRACEBACK.splitlines(keepends=True)[:3]))
    told: list[tuple[str, float | None]] = []
    follower = Follower([FollowedFile(path, "x.log")], [DEAD], EVER, lambda one: told.append((one.place, one.first_s)))
    thread = threading.Thread(target=follower.run, daemon=True)
    thread.start()
    time.sleep(0.2)
    path.rename(tmp_path / "x.log.1")
    write(path, "".join(TRACEBACK.splitlines(keepends=True)[3:]))
    ends_s = time.monotonic() + 10
    while not told and time.monotonic() < ends_s:
        time.sleep(0.01)
    follower.stop.set()
    thread.join(10)
    assert told == [("x.log:2", START_S + 1)]
