"""What blocks is waited for only as long as there is time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from latencydoctor.sources.timely import AHEAD, Timely


def test_everything_in_order_where_there_is_time() -> None:
    timely = Timely(lambda: range(5 * AHEAD), time.monotonic() + 20)
    assert list(timely) == list(range(5 * AHEAD))
    assert not timely.is_over


def test_what_had_come_by_then_where_the_next_never_comes() -> None:
    never = threading.Event()

    def stuck() -> Iterator[int]:
        yield 1
        yield 2
        never.wait(30)
        yield 3

    began_s = time.monotonic()
    timely = Timely(stuck, began_s + 1)
    assert list(timely) == [1, 2]
    assert timely.is_over
    assert time.monotonic() - began_s < 10
    never.set()


def test_what_breaks_on_the_way_does_not_pass_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _thread: told.set())

    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("odd")

    found: list[int] = []
    with pytest.raises(RuntimeError, match="that is not its end"):
        found.extend(Timely(broken, time.monotonic() + 20))
    assert found == [1]
    assert told.wait(5)


def test_nothing_is_fetched_any_more_once_it_is_over() -> None:
    fetched: list[int] = []
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                fetched.append(len(fetched))
                yield fetched[-1]
        finally:
            closed.set()

    timely = Timely(endless, time.monotonic() + 0.1)
    for _ in timely:
        time.sleep(0.02)
    assert timely.is_over
    assert closed.wait(5), "the thread has ended, and what it had open is closed"
    assert len(fetched) < 100


def test_no_time_at_all() -> None:
    timely = Timely(lambda: [1], time.monotonic() - 1)
    assert list(timely) == []
    assert timely.is_over


def test_whoever_stops_early_stops_the_thread_too() -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    items = iter(Timely(endless, time.monotonic() + 60))
    assert next(items) == 1
    assert isinstance(items, Iterator)
    del items
    assert closed.wait(5)
