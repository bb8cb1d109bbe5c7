"""Conditions that only other lines decide; each at its border."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.told import At
from latencydoctor.evidence.logs.verdicts import Verdicts
from latencydoctor.model.rule import Burst, Sequel
from tests.unit.log_builders import START_S, counts, read, rule, stamped, told

READY = rule("late", "odd", only_after=("ready",))
STOPPED = rule("lost", "odd", not_after=Sequel(("stopping",), 30.0))
RETRIED = rule("retry", "odd", recovered_by=Sequel(("fine again",), 30.0))
REAL = rule("real", "odd", real_when=Sequel(("no tokens",), 30.0))
BURST = rule("burst", "odd", burst=Burst(3, 60.0))
CLIMBS = rule("climbs", "odd", numbers=(r"odd (?P<total>\d{1,9})",), climbs="total")


def test_only_what_comes_after_a_line_counts() -> None:
    assert counts([READY], stamped((0, "odd"), (1, "ready"), (2, "odd"), (3, "odd x"))) == {"late": 2}
    assert counts([READY], stamped((1, "ready")), stamped((2, "odd"))) == {}


@pytest.mark.parametrize(("second", "expected"), [(30, {}), (31, {"lost": 1}), (-1, {"lost": 1})])
def test_what_comes_soon_after_a_line_does_not_count(second: float, expected: dict[str, int]) -> None:
    lines = sorted([(0.0, "stopping"), (second, "odd")])
    assert counts([STOPPED], stamped(*lines)) == expected


def test_stop_of_another_source_explains_what_the_kernel_says() -> None:
    verdicts = Verdicts()
    way = told(STOPPED, 0).way
    verdicts.mark(way, way.not_after, "unit", At(START_S, 1))
    assert verdicts.judge(told(STOPPED, 5, source="host", anywhere=True)) == []
    assert len(verdicts.judge(told(STOPPED, 5, source="host"))) == 1


@pytest.mark.parametrize(("second", "expected"), [(31, {}), (32, {"retry": 1})])
def test_retries_are_one_event_and_none_when_something_takes_them_back(second: float, expected: dict[str, int]) -> None:
    lines = [(0.0, "odd try 1"), (1.0, "odd try 2"), (second, "fine again")]
    assert counts([RETRIED], stamped(*lines)) == expected


def test_retry_burst_ends_after_a_pause_and_with_other_words() -> None:
    lines = [
        (0.0, "odd try 1"),
        (20.0, "odd try 2"),
        (21.0, "odd otherwise"),
        (90.0, "odd try 3"),
        (95.0, "fine again"),
    ]
    (found,) = read([RETRIED], stamped(*lines))
    assert (found.count, found.first_s, found.last_s) == (2, START_S, START_S + 21)


def test_many_different_retries_are_held_in_bounded_memory_and_all_count() -> None:
    words = [f"odd {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(200)]
    assert counts([RETRIED], stamped(*[(n / 100, text) for n, text in enumerate(words)])) == {"retry": 200}


@pytest.mark.parametrize("other", [-30, 0, 30])
def test_event_counts_with_a_line_beside_it(other: float) -> None:
    lines = sorted([(40.0, "odd"), (40.0 + other, "no tokens")])
    assert counts([REAL], stamped(*lines)) == {"real": 1}


@pytest.mark.parametrize("other", [-31, 31])
def test_event_without_a_line_beside_it_does_not_count(other: float) -> None:
    assert counts([REAL], stamped(*sorted([(40.0, "odd"), (40.0 + other, "no tokens")]))) == {}


def test_line_may_be_the_event_and_what_makes_it_real() -> None:
    assert counts([REAL], stamped((0, "odd, no tokens"))) == {"real": 1}


def test_more_events_than_are_kept_wait_together() -> None:
    lines = [(n / 10, f"odd {'abcdefghij'[n % 10]}{n}") for n in range(100)]
    assert counts([REAL], stamped(*lines, (12.0, "no tokens"))) == {"real": 100}


def test_fewer_than_a_burst_are_no_news() -> None:
    assert counts([BURST], stamped((0, "odd"), (30, "odd"), (61, "odd"))) == {}
    assert counts([BURST], stamped((0, "odd"), (30, "odd"), (60, "odd"), (119, "odd"), (181, "odd"))) == {"burst": 4}


def test_burst_of_lines_without_times_is_told_by_their_distance() -> None:
    assert counts([BURST], "odd 1\nodd 2\nodd 3\n") == {"burst": 3}
    assert counts([BURST], "odd 1\nodd 2\n" + "fine\n" * 300 + "odd 3\n") == {}


def test_number_must_grow_and_a_restart_begins_anew() -> None:
    assert counts([CLIMBS], stamped((0, "odd 1"), (9, "odd 1"))) == {}
    assert counts([CLIMBS], stamped((0, "odd 1"), (9, "odd 51"), (19, "odd 101"))) == {"climbs": 3}
    assert counts([CLIMBS], stamped((0, "odd 90"), (9, "odd 1"), (19, "odd"), (29, "odd 2"))) == {"climbs": 2}


def test_sources_do_not_decide_for_each_other() -> None:
    lines = "[pod/a/c] odd one\n[pod/b/c] fine again\n"
    assert counts([RETRIED], lines) == {"retry": 1}
    assert counts([RETRIED], lines.replace("pod/b", "pod/a")) == {}


def test_more_sources_than_are_kept_forget_the_oldest() -> None:
    verdicts = Verdicts()
    for number in range(5000):
        verdicts.judge(told(RETRIED, 0, source=f"pod-{number}"))
    assert len(verdicts.finish()) == len(verdicts.retrying) + 2048
