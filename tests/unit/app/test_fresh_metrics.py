"""Readings from a metrics source, and every reason not to believe one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from latencydoctor.app.fresh_metrics import MetricsArms, MetricsVerifier
from latencydoctor.errors import CannotTell, LatencyDoctorError, SourceError, UsageError
from latencydoctor.model.evidence import Proof, Selection, Series, Window
from latencydoctor.model.readings import Discovery, RangeQuery, Readings
from latencydoctor.model.remedy import Reading
from latencydoctor.model.rule import Arms, Dialect, SignalExpression

WINDOW = Window(1000.0, 1020.0)
UNITS = {
    "request_rate_rps": "requests/s", "e2e_p99_ms": "ms", "error_ratio": "ratio",
    "accelerator_memory_used_bytes": "bytes", "process_resets": "", "batch_size_mean": "items", "vip_p99_ms": "ms",
    "shed_ratio": "ratio", "vip_request_rate_rps": "requests/s",
}  # fmt: skip
VALUES = {"request_rate_rps": 300.0, "e2e_p99_ms": 140.0, "error_ratio": 0.0, "accelerator_memory_used_bytes": 2e9}


def dialect(name: str, *signals: str) -> Dialect:
    made = [
        SignalExpression(
            signal, UNITS[signal], f"{name}_{signal}{{{{sel}}}}[{{window}}]", (f"{name}_{signal}",), False, False
        )
        for signal in signals
    ]
    return Dialect(name, name, "stable", "", (f"{name}_{signals[0]}",), "model", tuple(made))


class Metrics:
    """A source that answers each query with a value by signal; `absent` queries, by a part of their text, are gaps."""

    def __init__(
        self, values: dict[str, float], absent: Sequence[str] = (), error: LatencyDoctorError | None = None
    ) -> None:
        self.values, self.absent, self.error = values, absent, error
        self.asked: list[RangeQuery] = []

    def discover(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        if self.error:
            raise self.error
        names = frozenset(name for each in dialects for item in each.signals for name in item.requires)
        return Discovery(names, (), 1.0, at_s, (), (), names)

    def collect(self, queries: Sequence[RangeQuery]) -> Readings:
        self.asked += queries
        series = [
            Series(
                q.signal, q.unit, (q.window.start_s, q.window.end_s), (-1.0, self.values[q.signal]), Proof("p", q.query)
            )
            for q in queries
            if q.signal in self.values and not any(part in q.query for part in self.absent)
        ]
        return Readings(series=tuple(series))


def verifier(metrics: Metrics) -> MetricsVerifier:
    front = dialect("front", "request_rate_rps", "e2e_p99_ms", "error_ratio")
    server = dialect("server", "request_rate_rps", "accelerator_memory_used_bytes", "process_resets")
    return MetricsVerifier(metrics, (front, server), Selection("faq"))


def test_a_window_is_read_at_its_end_over_its_whole_length() -> None:
    metrics = Metrics(VALUES)
    reading = verifier(metrics).read(WINDOW)
    assert (reading.p99_ms, reading.error_ratio, reading.memory_bytes) == (140.0, 0.0, 2e9)
    assert (reading.requests, reading.note) == (6000.0, "")
    assert [query.query for query in metrics.asked] == [
        'front_e2e_p99_ms{model="faq"}[20s]',
        'front_error_ratio{model="faq"}[20s]',
        'front_request_rate_rps{model="faq"}[20s]',
        'server_accelerator_memory_used_bytes{model="faq"}[20s]',
        'server_process_resets{model="faq"}[20s]',
        'front_request_rate_rps{model="faq"}[5s]',
    ]
    assert all(query.window.end_s == WINDOW.end_s for query in metrics.asked)


def test_a_source_that_stopped_scraping_is_stale() -> None:
    assert "stale" in verifier(Metrics(VALUES, absent=["[5s]"])).read(WINDOW).note


def test_a_restarted_server_is_told() -> None:
    assert "restarted" in verifier(Metrics({**VALUES, "process_resets": 1.0})).read(WINDOW).note
    assert verifier(Metrics({**VALUES, "process_resets": 0.0})).read(WINDOW).note == ""


def test_what_may_have_been_predicted_is_read_as_well_where_it_is_there() -> None:
    more = dialect("more", "batch_size_mean")
    held = verifier(Metrics({**VALUES, "batch_size_mean": 17.5}))
    reading = MetricsVerifier(held.source, (*held.dialects, more), held.selection).read(WINDOW)
    assert reading.also == (("batch_size_mean", 17.5), ("request_rate_rps", 300.0))
    assert verifier(Metrics(VALUES)).read(WINDOW).also == (("request_rate_rps", 300.0),)


@pytest.mark.parametrize("signal", ["e2e_p99_ms", "error_ratio", "request_rate_rps"])
def test_an_absent_value_is_none_and_never_zero(signal: str) -> None:
    reading = verifier(Metrics({name: value for name, value in VALUES.items() if name != signal})).read(WINDOW)
    values = {"e2e_p99_ms": reading.p99_ms, "error_ratio": reading.error_ratio, "request_rate_rps": reading.requests}
    assert values[signal] is None


def test_metrics_that_lack_a_needed_signal_are_named() -> None:
    metrics = Metrics(VALUES)
    lacking = MetricsVerifier(metrics, (dialect("server", "request_rate_rps"),), Selection("faq"))
    assert lacking.read(WINDOW).note == "the metrics have no e2e_p99_ms, error_ratio"
    assert metrics.asked == []


@pytest.mark.parametrize("error", [CannotTell("no answer"), SourceError("refused"), UsageError("bad selector")])
def test_a_source_that_fails_is_no_data(error: LatencyDoctorError) -> None:
    reading = verifier(Metrics(VALUES, error=error)).read(WINDOW)
    assert (reading.requests, reading.note) == (None, error.message)


def test_an_arm_is_read_through_its_own_label_and_what_the_servers_say_of_all() -> None:
    metrics = Metrics(VALUES)
    whole = verifier(metrics)
    front, server = whole.dialects
    armed = replace(front, arms=Arms('arm="c"', 'arm="s"'))
    canary, baseline = MetricsArms.over(replace(whole, dialects=(server, armed))).read(WINDOW)
    assert canary == baseline == Reading(140.0, 0.0, 2e9, 6000.0)
    assert [query.query for query in metrics.asked][:6] == [
        'front_e2e_p99_ms{model="faq",arm="c"}[20s]',
        'front_error_ratio{model="faq",arm="c"}[20s]',
        'front_request_rate_rps{model="faq",arm="c"}[20s]',
        'server_accelerator_memory_used_bytes{model="faq"}[20s]',
        'server_process_resets{model="faq"}[20s]',
        'front_request_rate_rps{model="faq",arm="c"}[5s]',
    ]
    assert canary.also == baseline.also == ()
    assert metrics.asked[6].query == 'front_e2e_p99_ms{model="faq",arm="s"}[20s]'


def test_metrics_that_do_not_tell_the_arms_apart_are_no_data() -> None:
    canary, baseline = MetricsArms.over(verifier(Metrics(VALUES))).read(WINDOW)
    assert canary == baseline
    assert canary.requests is None
    assert canary.note == "the metrics have no label that tells a canary's requests from the others'"


def test_what_each_priority_sees_is_read_where_the_metrics_tell_it() -> None:
    known = dialect("front", *VALUES, "vip_p99_ms", "shed_ratio", "vip_request_rate_rps")
    source = Metrics({**VALUES, "vip_p99_ms": 180.0, "shed_ratio": 0.4, "vip_request_rate_rps": 20.0})
    found = MetricsVerifier(source, (known,), Selection("faq")).read(WINDOW)
    assert dict(found.also) == {
        "vip_p99_ms": 180.0,
        "shed_ratio": 0.4,
        "vip_requests": 400.0,
        "request_rate_rps": 300.0,
    }
    plain = MetricsVerifier(Metrics(VALUES), (dialect("front", *VALUES),), Selection("faq")).read(WINDOW)
    assert plain.also == (("request_rate_rps", 300.0),)
