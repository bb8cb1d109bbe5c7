"""What one diagnosis costs a real Prometheus, counted by a proxy in front: at most 20 requests and 5 MB."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.queries import Present, choose
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.model.evidence import Collected, GapReason, Selection, Window
from latencydoctor.model.readings import RangeQuery
from latencydoctor.model.rule import Dialect, SignalExpression, SignalName
from latencydoctor.sources.allowance import MOST_BYTES, MOST_REQUESTS
from latencydoctor.sources.prometheus import PrometheusMetrics
from tests.contract.backfill import Page, running_prometheus
from tests.contract.counting_proxy import Counted, counting_proxy

SIGNALS, DIALECTS = read_signals(locate())
END_S = float(int(time.time()) - 60)
WINDOW = Window(END_S - 580, END_S)


def every_metric() -> Page:
    """Every metric of every dialect, as two replicas of one model would have them: a counter that climbs."""
    page = Page()
    names = {name for dialect in DIALECTS for name in dialect.detect}
    names |= {name for dialect in DIALECTS for item in dialect.signals for name in item.requires}
    models = {dialect.model_label: "m" for dialect in DIALECTS if dialect.model_label}
    for name in sorted(names):
        for step in range(41):
            for pod in ("a", "b"):
                page.observe(END_S - 600 + 15 * step, name, 100.0 + step, instance=pod, gpu_uuid="", **models)
    return page


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus in which every dialect is spoken."""
    with running_prometheus(tmp_path_factory.mktemp("cost") / "it", every_metric()) as url:
        yield url


@pytest.fixture
def counted(prometheus: str) -> Iterator[Counted]:
    with counting_proxy(prometheus) as proxy:
        yield proxy


def run(url: str, rules: Rules, **more: object) -> Collected:
    request = CollectRequest(Selection("m"), END_S, 540.0, **more)  # type: ignore[arg-type]  # test shorthand
    return collect(Sources(PrometheusMetrics(PrometheusSource(url))), rules, request)


def test_every_dialect_at_once_stays_within_the_cost(counted: Counted) -> None:
    rules = Rules(DIALECTS, SIGNALS)
    found = run(counted.url, rules, baseline=Window(END_S - 600, END_S - 300))
    assert set(found.dialects) == {dialect.id for dialect in DIALECTS}
    assert len(counted.requests) <= MOST_REQUESTS
    assert 0 < counted.bytes <= MOST_BYTES
    present = Present({name for dialect in DIALECTS for item in dialect.signals for name in item.requires}, ())
    choices, _ = choose(Present(present.names, present.names), DIALECTS, SIGNALS)
    asked = {series.signal for series in found.series} | {gap.signal for gap in found.gaps}
    assert {choice.signal for choice in choices} <= asked
    assert not [gap for gap in found.gaps if gap.reason in (GapReason.BAD_ANSWER, GapReason.DEADLINE)]
    assert len(found.series) > 20
    assert found.scrape_interval_s == 15.0


def test_three_times_as_many_dialects_cost_no_more_requests(counted: Counted) -> None:
    run(counted.url, Rules(DIALECTS, SIGNALS))
    once = len(counted.requests)
    counted.clear()
    run(counted.url, Rules(DIALECTS * 3, SIGNALS))
    assert len(counted.requests) <= once
    assert counted.bytes <= MOST_BYTES


def test_names_are_probed_once_and_the_rest_is_posted(counted: Counted) -> None:
    run(counted.url, Rules(DIALECTS, SIGNALS))
    paths = [(method, path.partition("?")[0]) for method, path, _, _ in counted.requests]
    assert paths.count(("GET", "/api/v1/label/__name__/values")) == 1
    assert {method for method, path in paths if "query" in path} == {"POST"}


@pytest.mark.parametrize("status", [403, 405])
def test_where_posting_is_refused_it_is_asked_the_other_way(prometheus: str, status: int) -> None:
    with counting_proxy(prometheus, refuse_post=status) as proxy:
        few = Rules(tuple(dialect for dialect in DIALECTS if dialect.id == "triton"), SIGNALS)
        found = run(proxy.url, few)
        assert [method for method, *_ in proxy.requests].count("POST") == 1
        assert len(proxy.requests) <= MOST_REQUESTS
    assert len(found.series) > 10


def own(*expressions: tuple[str, str]) -> Rules:
    """Rules with a dialect that is there and these signals."""
    signals = tuple(SignalName(name, "", "", "", True) for name, _ in expressions)
    items = tuple(SignalExpression(name, "", text, (), shared=False, simulated=False) for name, text in expressions)
    return Rules((Dialect("own", "", "stable", "", ("nv_inference_count",), "model", items),), signals)


GOOD = [(f"good{at}", f"sum(rate(nv_inference_count{{{{sel}}}}[{{window}}])) + {at}") for at in range(18)]


@pytest.mark.parametrize(
    ("bad", "detail"),
    [
        ("sum(", "parse error"),
        ("1 +* 2", "parse error"),
        ("nv_inference_count * on (model) nv_inference_count", "found duplicate series"),
        ("1) or vector(2", "parse error"),
        ('label_replace(nv_inference_count, "instance", "x", "", "")', "same labelset"),
    ],
)
def test_a_failing_expression_is_found_and_the_others_keep_their_answers(
    counted: Counted, bad: str, detail: str
) -> None:
    found = run(counted.url, own(*GOOD[:9], ("bad", bad), *GOOD[9:]))
    assert {series.signal for series in found.series} == {name for name, _ in GOOD}
    (gap,) = (gap for gap in found.gaps if gap.signal == "bad")
    assert gap.reason is GapReason.BAD_ANSWER
    assert detail in gap.detail
    assert len(counted.requests) <= MOST_REQUESTS


def test_several_failing_expressions_too(counted: Counted) -> None:
    found = run(counted.url, own(("bad1", "sum("), *GOOD[:9], ("bad2", "avg("), *GOOD[9:]))
    assert {series.signal for series in found.series} == {name for name, _ in GOOD}
    assert len(counted.requests) <= MOST_REQUESTS


def test_expressions_of_every_kind_are_told_apart(counted: Counted) -> None:
    found = run(
        counted.url,
        own(
            ("number", "vector(3) # three"), ("many", "nv_inference_count"), ("none", "nothing"), ("same", "vector(3)")
        ),
    )
    assert {series.signal: set(series.values) for series in found.series} == {"number": {3.0}, "same": {3.0}}
    assert {series.signal: series.proof.query for series in found.series}["number"] == "vector(3) # three"
    gaps = {gap.signal: (gap.reason, gap.detail) for gap in found.gaps}
    assert gaps["many"] == (GapReason.BAD_ANSWER, "the query gave 2 series instead of one")
    assert gaps["none"][0] is GapReason.NO_SERIES


def test_an_expression_that_gives_far_too_much_is_cut_off(counted: Counted) -> None:
    # Each of all these series holds 28 points; together they are several times what one signal may be.
    flood = 'label_join({__name__=~".+"}, "from", "", "__name__")'
    found = run(counted.url, own(*GOOD[:5], ("flood", flood)))
    assert {series.signal for series in found.series} == {name for name, _ in GOOD[:5]}
    assert [gap.signal for gap in found.gaps if gap.reason is GapReason.BAD_ANSWER] == ["flood"]
    assert counted.bytes <= MOST_BYTES


def test_when_the_requests_are_used_up_the_rest_are_gaps(counted: Counted) -> None:
    metrics = PrometheusMetrics(PrometheusSource(counted.url))
    queries = [RangeQuery(f"bad{at}", "", f"sum({at}", WINDOW, 20.0) for at in range(40)]
    readings = metrics.collect(queries)
    assert len(counted.requests) == MOST_REQUESTS
    assert len(readings.gaps) == 40
    assert any("cost limit reached: the requests" in gap.detail for gap in readings.gaps)


def test_the_text_asked_holds_the_expressions_as_they_are_shown(counted: Counted) -> None:
    found = run(counted.url, own(*GOOD[:6]))
    sent = "\n".join(parse_qs(body).get("query", [""])[0] for _, _, body, _ in counted.requests)
    for series in found.series:
        assert f"label_replace(\n{series.proof.query}\n, " in sent
