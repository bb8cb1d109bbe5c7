"""PromQL over pages against a real Prometheus with the same samples: value by value, for all that dialects ask."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.promql import Recording, parse
from latencydoctor.evidence.queries import render
from latencydoctor.model.evidence import Selection
from tests.contract.backfill import running_prometheus
from tests.contract.promql_scene import (
    BOUNDS,
    Scene,
    Steps,
    Walk,
    asked,
    computed,
    differences,
    fitting_labels,
    selectors,
)

START_MS = (int(time.time()) - 3000) * 1000
SCRAPES, EVERY_MS = 40, 2000
AGO_MS = (1_810_000, 1_790_000, 1_740_000)
"""Some scrapes half an hour before, for what looks that far back."""

STEPS = Steps(START_MS - 4000, 3500, 30)
"""Some moments fall on a scrape, the first before all of them, the last after all of them."""

_, DIALECTS = read_signals(locate())
WANTED = Selection("m", 'zone="here"')
EXPRESSIONS = [
    pytest.param(render(signal, WANTED, window_s, dialect.model_label), id=f"{dialect.id}-{signal.signal}-{window_s:g}")
    for dialect in DIALECTS
    for signal in dialect.signals
    for window_s in (4.0, 9.5)
]


class Both:
    """The URL of a Prometheus, and a recording with the same samples; no record, as hypothesis prints those whole."""

    def __init__(self, url: str, recording: Recording) -> None:
        self.url, self.recording = url, recording


def _series() -> dict[tuple[str, tuple[tuple[str, str], ...]], bool]:
    """Name and labels of every series in the scene, and whether it counts upwards."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], bool] = {}
    for parameter in EXPRESSIONS:
        for selector in selectors(parse(str(parameter.values[0]))):
            for zone, number in (("here", "1"), ("here", "2"), ("there", "1")):
                base = {"zone": zone, "version": number, "replica": number}
                base |= {"gpu_uuid": f"GPU-{number}", "UUID": f"GPU-{number}"}
                labels = fitting_labels(selector, base)
                assert labels is not None, f"no labels fit {selector}"
                labels["zone"] = zone
                for bound in BOUNDS if selector.name.endswith("_bucket") else ("",):
                    with_bound = {**labels, "le": bound} if bound else labels
                    found[selector.name, tuple(sorted(with_bound.items()))] = True
    for name in ("c1", "c2", "g1", "g2"):
        for a in ("x", "y"):
            for b in ("1", "2", "3"):
                found[name, (("a", a), ("b", b))] = name.startswith("c")
    for a in ("x", "y"):
        for bound in BOUNDS:
            found["h_bucket", (("a", a), ("le", bound))] = True
    found["g3", (("a", "x"),)] = False
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A Prometheus and a recording with the same samples: two instances, jitter, missed scrapes, resets, NaN."""
    chance = random.Random(7)
    scene = Scene()
    series = _series()
    # A walk of its own for each series: a dialect that gains one must not move all the others.
    walks = {
        instance: {key: Walk(random.Random(f"7 {instance} {key}"), is_counter) for key, is_counter in series.items()}
        for instance in ("p:1", "q:1")
    }
    for at_ms in [*(START_MS - ago_ms for ago_ms in AGO_MS), *range(START_MS, START_MS + SCRAPES * EVERY_MS, EVERY_MS)]:
        for instance, walk in walks.items():
            values = {key: one.step() for key, one in walk.items()}
            missed = chance.random() < 0.08
            # The first instance keeps its schedule to the millisecond, the other one does not.
            jitter_ms = 0 if instance == "p:1" else chance.randrange(-300, 300)
            if not missed:
                scene.scrape((at_ms + jitter_ms) / 1000, instance, values)
    with running_prometheus(tmp_path_factory.mktemp("promql") / "it", scene.backfill) as url:
        yield Both(url, scene.record())


def test_the_samples_are_the_same(both: Both) -> None:
    url, recording = both.url, both.recording
    at_ms = START_MS + SCRAPES * EVERY_MS
    held = {
        query: asked(url, f"count_over_time({query}[2m])", Steps(at_ms, 1000, 1)) for query in ("c1", "g1", "h_bucket")
    }
    for query, theirs in held.items():
        assert theirs
        assert differences(computed(recording, f"count_over_time({query}[2m])", Steps(at_ms, 1000, 1)), theirs) == ""


@pytest.mark.parametrize("query", EXPRESSIONS)
def test_every_expression_of_every_dialect(both: Both, query: str) -> None:
    url, recording = both.url, both.recording
    theirs = asked(url, query, STEPS)
    assert differences(computed(recording, query, STEPS), theirs) == ""
    if not theirs and (bare := _unguarded(query)) != query:
        # The made samples never meet its conditions: what they guard is compared at least.
        theirs = asked(url, bare, STEPS)
        assert differences(computed(recording, bare, STEPS), theirs) == ""
    assert theirs, "Prometheus finds nothing, so nothing is compared"


def _unguarded(query: str) -> str:
    """The query without the conditions (`and on ()`, `unless on ()`) that it ends in."""
    depth = 0
    for place, character in enumerate(query):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and query[place:].startswith((" and on () ", " unless on () ")):
            return query[:place]
    return query


CASES = [
    "c1", 'c1{a!="x",b=~"1|2"}', 'c1{a!~"x.*"}', 'c1{nope=""}', '{__name__=~"c.",a="x"}', "nope",
    "absent(nope)", 'absent(nope{a="1",b=~"2"})', "absent(c1)", "absent_over_time(nope[5s])", "rate(c1[5s])",
    "irate(c1[9s])", "idelta(g1[9s])", "increase(c1[20s])", "delta(g1[20s])", "resets(c1[30s])", "changes(g1[30s])",
    "rate(c1[1500ms])", "rate(c1[2s])", "rate(c1[4s])", "rate(c1[6s])", 'rate({__name__=~"c1|c2"}[5s])',
    "avg_over_time(g1[10s])", "sum_over_time(g1[10s])", "min_over_time(g1[10s])", "max_over_time(g1[10s])",
    "last_over_time(g1[3s])", "present_over_time(g1[3s])", "stddev_over_time(c1[10s])", "stdvar_over_time(c1[10s])",
    "quantile_over_time(0.3, c1[20s])", "quantile_over_time(2, c1[20s])", "sum(c1)", "sum by (a) (c1)",
    "sum without (a, instance) (c1)", "avg(g1)", "min by (a) (g1)", "max by (b) (g1)", "count(c1)",
    "group by (a) (c1)", "stddev(c1)", "stdvar by (a) (c1)", "quantile(0.9, c1)", "quantile by (a) (-1, c1)",
    'topk(2, c1{instance="p:1"} + 0.001 * c2{instance="p:1"})', "topk(0, c1)", "bottomk by (a) (1, rate(c1[9s]))",
    "histogram_quantile(0.9, sum by (le) (rate(h_bucket[10s])))", "histogram_quantile(0.5, h_bucket)",
    "histogram_quantile(1.5, h_bucket)", "histogram_quantile(-1, h_bucket)", "histogram_quantile(0, h_bucket)",
    "histogram_quantile(1, h_bucket)", "histogram_quantile(0.9, c1)", 'histogram_quantile(0.9, h_bucket{le!="+Inf"})',
    "histogram_quantile(scalar(g3), h_bucket)", "c1 + c2", "c1 - on (a, b) c2", "c1 - on (a, b, instance) c2",
    "c1 / c2", "c1 % 3", "c1 ^ 0.5", "-g1 ^ 2", "g1 / 0", "g1 % 0", "0 / g1", "c1 > c2",
    "c1 > bool c2", "g1 > 1", "1 < g1", "g1 != g1", "g1 == bool 1", "2 > bool 1", "c1 > on (a, b, instance) c2",
    'c1{instance="p:1"} > on (a, b) c2{instance="p:1"}',
    'c1{instance="p:1"} * ignoring (instance) c2{instance="q:1"}',
    "c1 * on (a, instance) group_left () sum by (a, instance) (c2)", 'c1 * on (a) group_left (b) g3{instance="p:1"}',
    'g3{instance="p:1"} < on (a) group_right (instance) c1', "sum by (a) (c2) / on (a) group_right () c1",
    "c1 * on (a) c2", "c1 * on (a) group_left () c2", 'c1 and on (a) g3', "c1 and c2", 'c1 unless on (a) c2{a="x"}',
    'c1{a="x"} or c2', "c1 or on (a) g1", "g1 or vector(0)", "nope or vector(0)", "clamp(g1, 0, 3)",
    "clamp(g1, 3, 0)", "clamp_min(g1, 1)", "clamp_max(g1, 1)", "round(g1)", "round(g1, 0.4)", "abs(g1)", "ceil(g1)",
    "floor(g1)", "sqrt(g1)", "exp(g1)", "ln(g1)", "log2(g1)", "log10(g1)", "sgn(g1)", "scalar(g3)",
    'scalar(g3{instance="p:1"})', "time()", "vector(time())",
    'label_replace(c1, "z", "$1-${2}$$x$nope", "b", "(.)(.?)")', 'label_replace(c1, "a", "", "a", "x")',
    'label_replace(c1, "b", "same", "a", ".*")', 'label_replace(c1, "z", "v", "a", "nomatch")',
    'label_join(c1, "z", "-", "a", "b")', "-c1", "1", "1 + 2 * 3 ^ 2", "NaN", "Inf - Inf", "-c1 + 1 > 3", "c1 == c1",
    "c1 unless c1",
]  # fmt: skip


@pytest.mark.parametrize("query", CASES)
def test_every_part_of_the_language(both: Both, query: str) -> None:
    url, recording = both.url, both.recording
    assert differences(computed(recording, query, STEPS), asked(url, query, STEPS)) == ""


_LABELS = st.lists(st.sampled_from(["a", "b", "instance", "nope"]), unique=True, max_size=3).map(", ".join)
_MATCHERS = st.sampled_from(["", '{a="x"}', '{b=~"1|3"}', '{instance="p:1",a!="y"}', '{a!~"z|",nope=""}'])
_INSTANT = st.builds(str.__add__, st.sampled_from(["c1", "c2", "g1", "g2", "g3", "h_bucket"]), _MATCHERS)
_OVER = st.sampled_from(
    [
        "rate",
        "increase",
        "delta",
        "irate",
        "idelta",
        "resets",
        "changes",
        "sum_over_time",
        "avg_over_time",
        "min_over_time",
        "max_over_time",
        "count_over_time",
        "last_over_time",
        "stddev_over_time",
    ]
)
_RANGE = st.builds(lambda f, x, s: f"{f}({x}[{s}])", _OVER, _INSTANT, st.sampled_from(["3s", "4s", "7500ms", "20s"]))
_NUMBER = st.sampled_from(["0", "1", "2.5", "-3", "scalar(g3)", "1e3"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    modifier = st.one_of(
        st.just(""), st.builds(lambda m, x: f" {m} ({x})", st.sampled_from(["by", "without"]), _LABELS)
    )
    aggregated = st.builds(
        lambda f, m, x: f"{f}{m} ({x})",
        st.sampled_from(["sum", "avg", "min", "max", "count", "stddev"]),
        modifier,
        inner,
    )
    matching = st.one_of(
        st.just(""), st.builds(lambda m, x: f" {m} ({x})", st.sampled_from(["on", "ignoring"]), _LABELS)
    )
    operators = st.sampled_from(["+", "-", "*", "/", ">", "<=", "> bool", "and", "or", "unless"])
    combined = st.builds(lambda x, o, m, y: f"({x}) {o}{m} ({y})", inner, operators, matching, inner)
    grouped = st.builds(
        lambda x, m, g, c, y: f"({x}) *{m} {g} ({c}) ({y})",
        inner,
        matching.filter(bool),
        st.sampled_from(["group_left", "group_right"]),
        st.sampled_from(["", "b", "a"]),
        inner,
    )
    with_number = st.builds(
        lambda x, o, n: f"({x}) {o} {n}", inner, st.sampled_from(["+", "*", "/", "^", ">", "< bool"]), _NUMBER
    )
    called = st.builds(
        lambda t, x: t.format(x),
        st.sampled_from(
            [
                "clamp_min({}, 1)",
                "abs({})",
                "-({})",
                "histogram_quantile(0.9, {})",
                "absent({})",
                "vector(scalar({}))",
                'label_replace({}, "b", "$1", "a", "(x)")',
                "({}) or vector(0)",
                "sum(topk(2, {}))",
            ]
        ),
        inner,
    )
    return st.one_of(aggregated, combined, grouped, with_number, called)


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(query=st.recursive(st.one_of(_INSTANT, _RANGE), _grown, max_leaves=4))
def test_expressions_nobody_thought_of(both: Both, query: str) -> None:
    url, recording = both.url, both.recording
    note(query)
    steps = STEPS.only(18)
    assert differences(computed(recording, query, steps), asked(url, query, steps)) == ""
