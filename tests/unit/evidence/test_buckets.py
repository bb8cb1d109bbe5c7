"""The query for the bounds of the histogram behind p99."""

from __future__ import annotations

import pytest

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.buckets import bounds_in_ms, bounds_query
from latencydoctor.evidence.queries import render
from latencydoctor.model.evidence import Fact, Proof, Selection, Series, Window
from latencydoctor.model.readings import RangeQuery

_, DIALECTS = read_signals(locate())


def p99(query: str, signal: str = "e2e_p99_ms") -> tuple[Series, ...]:
    return (Series(signal, "ms", (400.0,), (120.0,), Proof("prometheus", query)),)


def asked(query: str) -> RangeQuery | None:
    return bounds_query(p99(query), 400.0, 20.0)


def test_it_asks_for_the_bounds_of_what_p99_was_read_from() -> None:
    found = asked("1000 * histogram_quantile(0.99, sum by (le) (rate(t_seconds_bucket[20s])))")
    assert found == RangeQuery(
        "e2e_bound", "s", "sum by (le) (rate(t_seconds_bucket[20s]))", Window(400.0, 400.0), 20.0, by="le"
    )
    in_ms = asked("histogram_quantile(0.99, sum by (le) (rate(t_bucket[20s])))")
    assert in_ms is not None
    assert in_ms.unit == "ms"


@pytest.mark.parametrize(
    "query",
    [
        'max(nv_inference_request_summary_us{quantile="0.99"} >= 0) / 1000',
        "histogram_quantile(0.99, sum by (le) (rate(a[20s]))) + 5",
        "histogram_quantile(0.99, sum by (le) (rate(a[20s])) + sum by (le) (rate(b[20s])))",
        "histogram_quantile(0.5, sum by (le) (rate(a[20s])))",
    ],
)
def test_what_is_no_plain_quantile_of_one_histogram_has_no_bounds(query: str) -> None:
    assert asked(query) is None


def test_a_condition_changes_nothing_of_the_histogram() -> None:
    found = asked("histogram_quantile(0.99, sum by (le) (rate(a[20s]))) and on () (count(b) == 1)")
    assert found is not None
    assert found.query == "sum by (le) (rate(a[20s]))"


def test_parentheses_in_a_label_value_are_text() -> None:
    text = 'sum by (le) (rate(t_bucket{pod="a(b\\"(",job=~"x|y"}[20s]))'
    found = asked(f"histogram_quantile(0.99, {text})")
    assert found is not None
    assert found.query == text


def test_without_a_p99_nothing_is_asked() -> None:
    assert bounds_query((), 400.0, 20.0) is None
    query = "histogram_quantile(0.99, sum by (le) (rate(a[20s])))"
    assert bounds_query(p99(query, "vip_p99_ms"), 400.0, 20.0) is None


def test_the_dialects_that_read_p99_from_a_histogram_are_understood() -> None:
    """Triton's own p99 is a summary, which has no bounds, or a histogram of first responses, which has."""
    read_from = {
        dialect.id
        for dialect in DIALECTS
        for item in dialect.signals
        if item.signal == "e2e_p99_ms" and asked(render(item, Selection("m", 'ns="p"'), 20.0, dialect.model_label))
    }
    assert read_from >= {"gateway", "vllm", "sglang", "tgi", "bentoml", "envoy", "nginx_ingress", "ray_serve", "kserve"}
    assert not read_from & {"torchserve", "nginx"}


def test_bounds_are_told_in_ms_smallest_first() -> None:
    proof = Proof("prometheus", "q")
    found = bounds_in_ms([Fact("e2e_bound", "s", value, proof) for value in (0.15, 10.0, 0.055)])
    assert [(one.signal, one.unit, one.value) for one in found] == [
        ("e2e_bound_1_ms", "ms", 55.0),
        ("e2e_bound_2_ms", "ms", 150.0),
        ("e2e_bound_3_ms", "ms", 10_000.0),
    ]
    assert bounds_in_ms([Fact("e2e_bound", "ms", 5.0, proof)])[0].value == 5.0
