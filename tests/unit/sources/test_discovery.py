"""How often a service is scraped, and a discovery that costs the same for many dialects as for one."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.combine import MARK
from latencydoctor.model.evidence import Selection
from latencydoctor.model.rule import Dialect
from latencydoctor.sources.discovery import Finder, slowest
from latencydoctor.sources.transport import Deadline, FailureKind, TransportError


@pytest.mark.parametrize(
    ("intervals_s", "found"),
    [
        ([15.003], 15.0),
        ([5.0, 30.0], 30.0),
        ([0.25], 0.25),
        ([float("nan"), 0.0], None),
        ([], None),
    ],
)
def test_the_cadence_is_that_of_the_slowest_metric(intervals_s: list[float], found: float | None) -> None:
    assert slowest(intervals_s) == found


def dialect(name: str) -> Dialect:
    return Dialect(name, "", "stable", "", (f"{name}_total",), "model", ())


def element(index: int, value: float, **labels: str) -> dict[str, object]:
    return {"metric": {**labels, MARK: str(index)}, "value": [1, str(value)]}


def test_many_dialects_are_asked_about_at_once() -> None:
    asked: list[str] = []

    def instant(query: str, at_s: float, count: int) -> list[object]:
        asked.append(query)
        if len(asked) == 1:
            assert (at_s, count) == (100.0, 33)
            # Of ten servers the first has a model, and the newest sample was at 99.
            found = [element(10, 7, __name__="d0_total", model="m", job="t"), element(11, 7, __name__="d1_total")]
            return [*found, element(0, 1, model="m"), element(20, 99), element(30, 5, prometheus_replica="a")]
        return [element(0, 15.001), element(1, 5.0)]

    finder = Finder(lambda _m, _s, _e: [f"d{at}_total" for at in range(10)], instant, Deadline.after(5))
    found = finder.find([dialect(f"d{at}") for at in range(10)], Selection(""), 100.0)
    assert len(asked) == 2
    assert 'timestamp(d0_total{job="t",model="m"})' in asked[1]
    assert [(one.model, one.model_label) for one in found.candidates] == [("m", "model")]
    assert (found.scrape_interval_s, found.newest_sample_s, found.one_copy) == (15.0, 99.0, "")
    assert len(found.queries) == 1 + 33 + 2


def test_of_several_copies_the_fullest_is_read() -> None:
    def instant(query: str, at_s: float, count: int) -> list[object]:
        del query, at_s, count
        return [element(3, 50, prometheus_replica="b"), element(3, 60, prometheus_replica="c")]

    found = Finder(lambda _m, _s, _e: ["d_total"], instant, Deadline.after(5)).find([dialect("d")], Selection(""), 1.0)
    assert found.one_copy == 'prometheus_replica="c"'


def test_too_many_names_to_list_are_asked_for_by_name() -> None:
    asked: list[str] = []

    def names(matchers: str, start_s: float, end_s: float) -> list[object]:
        raise TransportError(FailureKind.TOO_LARGE, f"{matchers}{start_s}{end_s}")

    def instant(query: str, at_s: float, count: int) -> list[object]:
        del at_s, count
        asked.append(query)
        return [{"metric": {"__name__": "f_total"}, "value": [1, "3"]}]

    finder = Finder(names, instant, Deadline.after(5))
    found = finder.find([dialect("d"), dialect("e")], Selection("", 'ns="p"'), 1.0)
    assert found.names == found.shared_names == {"f_total"}
    assert sorted(asked) == [
        'count by (__name__) (last_over_time({__name__=~"d_total|e_total",ns="p"}[10m]))',
        'count by (__name__) (last_over_time({__name__=~"d_total|e_total"}[10m]))',
    ]


def test_without_names_nothing_is_known() -> None:
    def names(matchers: str, start_s: float, end_s: float) -> list[object]:
        raise TransportError(FailureKind.STATUS, f"{matchers}{start_s}{end_s}", 500)

    def instant(query: str, at_s: float, count: int) -> list[object]:
        raise AssertionError(query, at_s, count)

    with pytest.raises(TransportError):
        Finder(names, instant, Deadline.after(5)).find([dialect("d")], Selection(""), 1.0)
