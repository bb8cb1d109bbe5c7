"""How often pages are read within a deadline, and which windows that makes."""

from __future__ import annotations

import pytest

from latencydoctor.errors import UsageError
from latencydoctor.sources.pages_schedule import Schedule, make_schedule


def test_as_many_as_the_default_deadline_allows() -> None:
    schedule = make_schedule(None, None, 20.0)
    assert schedule == Schedule(10, 2.0)
    assert schedule.span_s == 18.0
    assert schedule.window_s == 4.0


@pytest.mark.parametrize(("scrapes", "window_s"), [(2, 2.0), (3, 2.0), (6, 2.0), (11, 4.0), (16, 6.0), (51, 20.0)])
def test_windows_are_about_a_fifth_in_whole_steps(scrapes: int, window_s: float) -> None:
    assert Schedule(scrapes, 2.0).window_s == window_s


@pytest.mark.parametrize(
    ("scrapes", "every_s", "deadline_s"),
    [(1, None, 20.0), (1001, None, 20.0), (None, 0.1, 20.0), (20, 2.0, 20.0), (None, 30.0, 20.0), (None, None, 1.0)],
)
def test_refused_with_what_to_do(scrapes: int | None, every_s: float | None, deadline_s: float) -> None:
    with pytest.raises(UsageError) as error:
        make_schedule(scrapes, every_s, deadline_s)
    assert error.value.hint


def test_the_deadline_that_is_asked_for_is_enough() -> None:
    with pytest.raises(UsageError) as error:
        make_schedule(30, 10.0, 20.0)
    needed_s = float(error.value.hint.split("--deadline ")[1].split("s")[0])
    assert make_schedule(30, 10.0, needed_s - 2.0).scrapes == 30


def test_small_delays_count_as_on_time() -> None:
    schedule = Schedule(10, 2.0)
    assert schedule.aligned_s(3, 6.015) == 6.0
    assert schedule.aligned_s(3, 6.1) == 6.1
    assert schedule.scrape_timeout_s == 2.0
    assert Schedule(10, 30.0).scrape_timeout_s == 27.0


def test_a_slow_server_makes_its_own_rhythm_and_windows_of_two_readings_at_least() -> None:
    schedule = Schedule(10, 2.0)
    assert schedule.kept([]) is schedule
    assert schedule.kept([0.0, 2.0, 4.1, 10.0, 12.0]) is schedule, "one reading that failed is no other rhythm"
    kept = schedule.kept([6.0, 9.1, 12.2, 15.3])
    assert (kept.scrapes, kept.every_s, kept.window_s) == (4, 4.0, 8.0)
    assert kept.span_s >= 9.3


def test_a_hint_names_the_whole_deadline_where_pages_have_a_share_of_it() -> None:
    with pytest.raises(UsageError) as error:
        make_schedule(None, None, 0.65 * 5.0, share_ratio=0.65)
    asked_s = float(error.value.hint.split("--deadline ")[1].split("s")[0])
    assert make_schedule(None, None, 0.65 * asked_s, share_ratio=0.65).scrapes >= 2
