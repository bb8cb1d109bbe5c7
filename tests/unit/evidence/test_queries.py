"""Choosing and rendering PromQL."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.queries import (
    FEWEST_WINDOWS,
    MOST_WINDOWS,
    Present,
    choose,
    detected,
    matchers,
    render,
    span,
    window_count,
    window_length_s,
)
from latencydoctor.model.evidence import Gap, GapReason, Selection
from latencydoctor.model.rule import Dialect, SignalExpression, SignalName


def expression(signal: str, expr: str, *requires: str, shared: bool = False) -> SignalExpression:
    return SignalExpression(signal, "ms", expr, requires, shared, simulated=False)


FRONT = Dialect("front", "Front", "stable", "", ("front_total",), "", (expression("p99", "front", "front_total"),))
SERVER = Dialect(
    "server",
    "Server",
    "stable",
    "",
    ("server_total",),
    "model",
    (
        expression("p99", "summary", "summary"),
        expression("p99", "histogram", "bucket"),
        expression("queue", "a / b", "a", "b"),
        expression("device", "gpu", "gpu", shared=True),
    ),
)
NAMES = tuple(SignalName(signal, "ms", "", f"needs {signal}", True) for signal in ("p99", "queue", "device", "config"))


def chosen(names: set[str], shared: set[str] | None = None) -> dict[str, list[str]]:
    choices, _ = choose(Present(names, names if shared is None else shared), (FRONT, SERVER), NAMES)
    return {choice.signal: [item.expr for item in choice.expressions] for choice in choices}


def test_the_preferred_dialect_comes_first_and_the_others_stay_as_second_choice() -> None:
    assert chosen({"front_total", "summary", "bucket"}) == {"p99": ["front", "summary", "histogram"]}
    assert chosen({"bucket"}) == {"p99": ["histogram"]}


def test_every_required_metric_must_be_there() -> None:
    assert chosen({"a"}) == {}
    assert chosen({"a", "b"}) == {"queue": ["a / b"]}


def test_shared_metrics_are_looked_for_without_the_selector() -> None:
    assert chosen({"a"}, {"a", "gpu"}) == {"device": ["gpu"]}


def test_signals_without_a_metric_are_gaps_and_those_of_no_dialect_are_left_to_others() -> None:
    _, gaps = choose(Present({"front_total"}, ()), (FRONT, SERVER), NAMES)
    assert gaps == (
        Gap("queue", GapReason.NO_SERIES, "no metric for it was found", "needs queue"),
        Gap("device", GapReason.NO_SERIES, "no metric for it was found", "needs device"),
    )


def test_dialects_are_detected_in_their_order() -> None:
    assert detected(Present({"server_total"}, {"front_total"}), (FRONT, SERVER)) == ("front", "server")
    assert detected(Present((), ()), (FRONT, SERVER)) == ()


@pytest.mark.parametrize(
    ("selection", "query"),
    [
        (Selection("m"), 'x{model="m"}[10s] + y[10s] + z{a="b"}[20s] + w{a="b",model="m"}'),
        (
            Selection("m", 'ns="p",'),
            'x{model="m",ns="p"}[10s] + y{ns="p"}[10s] + z{a="b",ns="p"}[20s] + w{a="b",model="m",ns="p"}',
        ),
        (Selection(""), 'x[10s] + y[10s] + z{a="b"}[20s] + w{a="b"}'),
    ],
)
def test_placeholders_are_filled_in(selection: Selection, query: str) -> None:
    template = 'x{{sel}}[{window}] + y{{front}}[{window}] + z{a="b",{front}}[{twice}] + w{a="b",{sel}}'
    assert render(expression("p99", template, "x"), selection, 10.0, "model") == query


def test_a_hostile_model_name_stays_a_label_value() -> None:
    hostile = 'm"} or vector({window}) \\ {front}\n'
    rendered = render(expression("p99", "x{{sel}}[{window}]", "x"), Selection(hostile, 'ns="p"'), 5.0, "model")
    assert rendered == 'x{model="m\\"} or vector({window}) \\\\ {front}\\n",ns="p"}[5s]'


def test_without_a_model_label_only_the_users_matchers_are_left() -> None:
    assert matchers(Selection("m", ' ns="p" '), "") == 'ns="p"'
    assert matchers(Selection("m"), "model_name") == 'model_name="m"'


@pytest.mark.parametrize(
    ("interval_s", "window_s"), [(1.0, 5.0), (1.25, 5.0), (2.0, 8.0), (15.0, 60.0), (60.0, 240.0), (None, 60.0)]
)
def test_a_window_is_four_scrapes_and_at_least_five_seconds(interval_s: float | None, window_s: float) -> None:
    assert window_length_s(interval_s) == window_s


def test_a_range_has_room_for_a_baseline_and_an_end() -> None:
    assert window_count(1800, 5) == 360
    assert window_count(1800, 240) == FEWEST_WINDOWS
    assert window_count(1e9, 5) == MOST_WINDOWS


def test_durations_are_as_prometheus_reads_them() -> None:
    assert (span(5.0), span(60.0), span(2.5)) == ("5s", "60s", "2500ms")
