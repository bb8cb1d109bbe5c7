"""Recordings: what becomes of series, times and repeated samples from page to page."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.promql import (
    PageError,
    PromqlError,
    Recording,
    UnsupportedError,
    evaluate,
    evaluate_at,
    parse,
    samples_at,
)
from latencydoctor.evidence.promql.syntax import RangeSelector


def values(recording: Recording, query: str, at_s: float) -> dict[str, float]:
    return {element.get("m"): element.value for element in evaluate_at(recording, parse(query), at_s)}


def test_a_series_that_vanishes_ends() -> None:
    recording = Recording()
    recording.add_page(10, "h:1", 'a{m="x"} 1\na{m="y"} 2\n')
    recording.add_page(12, "h:1", 'a{m="x"} 3\n')
    assert values(recording, "a", 11.999) == {"x": 1.0, "y": 2.0}
    assert values(recording, "a", 12) == {"x": 3.0}
    assert values(recording, "count_over_time(a[5s])", 12) == {"x": 2.0, "y": 1.0}


def test_a_failed_scrape_ends_its_instance_alone() -> None:
    recording = Recording()
    recording.add_page(10, "h:1", 'a{m="x"} 1\n')
    recording.add_page(10, "h:2", 'a{m="y"} 2\n')
    recording.add_failure(12, "h:1")
    assert values(recording, "a", 13) == {"y": 2.0}
    assert [element.value for element in evaluate_at(recording, parse('up{instance="h:1"}'), 13)] == [0.0]


def test_a_broken_page_adds_nothing_and_counts_as_failed() -> None:
    recording = Recording()
    recording.add_page(10, "h:1", 'a{m="x"} 1\n')
    with pytest.raises(PageError):
        recording.add_page(12, "h:1", 'a{m="x"} 5\nbroken\n')
    assert values(recording, "a", 12) == {}
    assert values(recording, "last_over_time(a[9s])", 12) == {"x": 1.0}


def test_samples_are_forgotten_after_five_minutes() -> None:
    recording = Recording()
    recording.add_page(10, "h:1", "a 1\n")
    assert values(recording, "a", 310) == {"": 1.0}
    assert values(recording, "a", 310.001) == {}


def test_labels_of_the_scraper_win() -> None:
    (element,) = evaluate([(10, "h:1", 'a{instance="x",job="y"} 1\n')], "a", 10)
    assert dict(element.labels) == {
        "__name__": "a",
        "instance": "h:1",
        "job": "page",
        "exported_instance": "x",
        "exported_job": "y",
    }


def test_own_times_count_and_do_not_run_backwards() -> None:
    recording = Recording()
    recording.add_page(10, "h:1", "a 1 9000\n")
    recording.add_page(12, "h:1", "a 1 9000\n")
    count = recording.add_page(90, "h:1", "a 2 8000\n")
    assert (count.repeated, count.off_clock) == (0, 1)
    (held,) = samples_at(recording, _range("a[1h]"), 90)
    assert (held.times_ms, held.values) == ((9000,), (1.0,))


def test_of_two_samples_of_a_series_the_first_counts() -> None:
    recording = Recording()
    count = recording.add_page(10, "h:1", 'a{b="1",c="2"} 1\na{c="2",b="1"} 2\n')
    assert (count.samples, count.repeated) == (2, 1)
    assert values(recording, "a", 10) == {"": 1.0}


def test_only_wanted_metrics_are_kept_but_all_are_named() -> None:
    recording = Recording(wanted=("a",))
    recording.add_page(10, "h:1", 'a 1\nb{c="1"} 2\n')
    assert recording.names == {"a", "b", "up"}
    assert values(recording, "b", 10) == {}


def test_pages_may_come_in_any_order() -> None:
    pages = [(12.0, "h:1", "a 30\n"), (10.0, "h:1", "a 10\n")]
    (element,) = evaluate(pages, "rate(a[2s])", 12)
    assert element.value == 10.0


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("a[5m:1m]", "subqueries"),
        ("a @ 5", "@"),
        ("deriv(a[1m])", "deriv"),
        ("sort(a)", "sort"),
        ('count_values("v", a)', "count_values"),
        ("a atan2 a", "atan2"),
        ('a{b="1" or c="2"}', "or between matchers"),
        ('a{b=~"[[:alpha:]]"}', "[[:alpha:]]"),
        ("a + fill(0) a", "fill"),
        ("a" + " + a" * 8000, "characters"),
    ],
)
def test_what_is_not_evaluated_is_named_never_guessed(query: str, named: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        evaluate([(10, "h:1", 'a{b="x",c="2"} 1\n')], query, 10)
    assert named in str(error.value)


@pytest.mark.parametrize(
    "query",
    ["sum(", "nope(a)", "a and 1", "rate(a)", "a * on (c) group_left () a", 'label_replace(a, "1x", "y", "", "")'],
)
def test_what_prometheus_refuses_is_refused(query: str) -> None:
    with pytest.raises(PromqlError) as error:
        evaluate([(10, "h:1", 'a{b="x",c="2"} 1\na{b="y",c="2"} 1\n')], query, 10)
    assert not isinstance(error.value, UnsupportedError)


def _range(query: str) -> RangeSelector:
    tree = parse(query)
    assert isinstance(tree, RangeSelector)
    return tree
