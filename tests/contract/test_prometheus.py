"""The Prometheus source against a real Prometheus whose history was made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import CannotTell, UsageError
from latencydoctor.evidence.assemble import assemble
from latencydoctor.forecast.histogram import bounds_of
from latencydoctor.model.configuration import PrometheusSource, Slo
from latencydoctor.model.evidence import (
    Collected,
    Evidence,
    Gap,
    GapReason,
    IncidentState,
    Measure,
    Selection,
    Window,
)
from latencydoctor.model.readings import Candidate, RangeQuery
from latencydoctor.sources import bundle
from latencydoctor.sources.prometheus import PrometheusMetrics
from tests.contract.backfill import LATENCY_BOUNDS_S, Load, Page, Place, running_prometheus, serve_phases

SIGNALS, DIALECTS = read_signals(locate())
RULES = Rules(DIALECTS, SIGNALS)
CALM = Load(1200, 60, 110)
CROWD = Load(300, 310, 1800, queue_ms=1700, compute_ms=28, items=8, busy=0.29, error_ratio=0.002)
ANY = Selection("")
START_S = float(int(time.time()) - 1900)


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, float]]:
    """A Prometheus holding the scene: 20 calm minutes, then 5 of a crowd; its URL and the time of the last scrape."""
    page = Page()
    end_s = serve_phases(page, START_S, [CALM, CROWD], Place())
    with running_prometheus(tmp_path_factory.mktemp("incident") / "it", page) as url:
        yield url, end_s


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, float]]:
    """A company's Prometheus: two models, one of them in two namespaces with several pods, and 15 s between scrapes."""
    page = Page()
    end_s = 0.0
    for model, namespace, pod in (
        ("bert", "prod", "a"),
        ("bert", "prod", "b"),
        ("bert", "staging", "c"),
        ("ranker", "prod", "a"),
    ):
        server = (("job", "triton"), ("namespace", namespace), ("pod", pod), ("instance", f"{pod}:8002"))
        place = Place(model, server, None, simulated=False)
        phase = Load(1500, 10 if namespace == "staging" else 20, 40, queue_ms=3.0, compute_ms=20.0)
        end_s = serve_phases(page, START_S, [phase], place, scrape_s=15.0)
    with running_prometheus(tmp_path_factory.mktemp("shared") / "it", page) as url:
        yield url, end_s


def read(url: str, at_s: float, selection: Selection = ANY, since_s: float = 1400.0) -> tuple[Collected, Evidence]:
    metrics = PrometheusMetrics(PrometheusSource(url))
    collected = collect(Sources(metrics), RULES, CollectRequest(selection, at_s, since_s))
    return collected, assemble(collected, Slo(), SIGNALS)


def value(evidence: Evidence, signal: str) -> Measure:
    found = evidence.find(signal)
    assert isinstance(found, Measure), found
    return found


def test_the_incident_is_found_with_its_onset_and_its_numbers(incident: tuple[str, float]) -> None:
    url, end_s = incident
    collected, evidence = read(url, end_s)
    assert collected.scrape_interval_s == 5.0
    assert collected.window_s == 20.0
    assert collected.selection == Selection("faq-encoder")
    assert collected.dialects == ("gateway", "sim", "triton")
    assert evidence.incident.state is IncidentState.INCIDENT
    assert evidence.incident.since_s == pytest.approx(end_s - 300, abs=20)
    assert evidence.baseline_window is not None
    assert evidence.baseline_window.length_s == pytest.approx(300, abs=20)
    queue = value(evidence, "queue_time_ms")
    assert queue.value == pytest.approx(1700, rel=0.01)
    assert queue.baseline == pytest.approx(2)
    assert value(evidence, "batch_size_mean").value == pytest.approx(8)
    assert value(evidence, "queue_depth").value == pytest.approx(310 * 0.88 * 1.7, rel=0.01)
    assert value(evidence, "request_rate_rps").value == pytest.approx(310)
    assert value(evidence, "error_ratio").value == pytest.approx(0.002)
    assert value(evidence, "cache_hit_ratio").value == pytest.approx(0.12)
    # One instance: its executions of 8 requests, 29 ms each, one after another.
    assert value(evidence, "instance_busy_ratio").value == pytest.approx(310 * 0.88 / 8 * 0.029, rel=0.01)
    busy = value(evidence, "accelerator_busy_ratio")
    assert busy.value == pytest.approx(0.29)
    assert busy.simulated
    assert "queue_depth" in [signal for signal, _ in evidence.first_movers]


def test_the_bounds_of_the_histogram_behind_p99_are_read_with_it(incident: tuple[str, float], tmp_path: Path) -> None:
    url, end_s = incident
    collected, evidence = read(url, end_s)
    assert "histogram_quantile(0.99" in value(evidence, "e2e_p99_ms").proof.query
    assert bounds_of(collected.facts) == tuple(bound * 1000 for bound in LATENCY_BOUNDS_S)
    bundle.write(tmp_path / "it.json.gz", collected)
    assert bounds_of(bundle.read(tmp_path / "it.json.gz").facts) == bounds_of(collected.facts)
    assert not [gap for gap in evidence.gaps if "bound" in gap.signal]


def test_the_bounds_of_a_fine_histogram_are_all_read(tmp_path: Path) -> None:
    bounds_s = [round(0.001 * 1.07**number, 6) for number in range(150)]
    page, end_s = Page(), START_S + 600
    for step in range(121):
        for bound in (*(f"{bound:g}" for bound in bounds_s), "+Inf"):
            count = 1_234_567.0 + 817 * step * (bound == "+Inf" or float(bound) > 0.1)
            labels = {"job": "gateway", "instance": "a:2", "le": bound}
            page.observe(START_S + 5 * step, "gateway_request_duration_seconds_bucket", count, **labels)
        page.observe(START_S + 5 * step, "gateway_requests_total", 817.0 * step, job="gateway", instance="a:2")
    with running_prometheus(tmp_path / "it", page) as url:
        collected, _ = read(url, end_s, since_s=400.0)
    assert bounds_of(collected.facts) == pytest.approx([float(f"{bound:g}") * 1000 for bound in bounds_s])


def test_without_a_histogram_there_are_no_bounds(shared: tuple[str, float]) -> None:
    url, end_s = shared
    collected, _ = read(url, end_s, Selection("ranker"))
    assert bounds_of(collected.facts) == ()


def test_every_query_of_the_evidence_can_be_asked_by_hand(incident: tuple[str, float]) -> None:
    url, end_s = incident
    _, evidence = read(url, end_s)
    for measure in evidence.measures:
        if measure.proof.source == "derived":
            # A formula over others, whose queries stand in it.
            asked = {other.proof.query for other in evidence.measures if other.proof.source != "derived"}
            assert any(query in measure.proof.query for query in asked), measure.signal
            continue
        window = Window(end_s - 20, end_s)
        metrics = PrometheusMetrics(PrometheusSource(url))
        readings = metrics.collect([RangeQuery(measure.signal, measure.unit, measure.proof.query, window, 20.0)])
        assert [series.signal for series in readings.series] == [measure.signal]


def test_the_same_moment_before_the_crowd_is_healthy(incident: tuple[str, float]) -> None:
    url, end_s = incident
    _, evidence = read(url, end_s - 310)
    assert evidence.incident.state is IncidentState.HEALTHY


def test_a_replayed_bundle_gives_the_same_evidence(incident: tuple[str, float], tmp_path: Path) -> None:
    url, end_s = incident
    collected, evidence = read(url, end_s)
    bundle.write(tmp_path / "it.json.gz", collected)
    bundle.write(tmp_path / "again.json.gz", bundle.read(tmp_path / "it.json.gz"))
    assert (tmp_path / "it.json.gz").read_bytes() == (tmp_path / "again.json.gz").read_bytes()
    assert assemble(bundle.read(tmp_path / "it.json.gz"), Slo(), SIGNALS) == evidence
    assert url.encode() not in bundle.dump(collected).encode()


def test_a_time_without_samples_cannot_be_told(incident: tuple[str, float]) -> None:
    url, end_s = incident
    _, evidence = read(url, end_s + 120)
    assert evidence.incident.state is IncidentState.CANNOT_TELL
    stale = evidence.find("samples")
    assert isinstance(stale, Gap)
    assert stale.detail == "the newest sample is 120 s old, and one is expected every 5 s"


def test_several_services_are_listed_and_never_merged(shared: tuple[str, float]) -> None:
    url, end_s = shared
    with pytest.raises(UsageError) as caught:
        read(url, end_s)
    assert caught.value.hint == (
        "Choose one:\n"
        "  --model bert --selector 'namespace=\"prod\"'\n"
        "  --model bert --selector 'namespace=\"staging\"'\n"
        "  --model ranker --selector 'namespace=\"prod\"'"
    )


def test_a_selector_and_a_model_pick_one_service_over_all_its_replicas(shared: tuple[str, float]) -> None:
    url, end_s = shared
    collected, evidence = read(url, end_s, Selection("bert", 'namespace="prod"'))
    assert collected.window_s == 60.0
    # Two pods of 20 requests/s each; staging is not counted.
    assert value(evidence, "request_rate_rps").value == pytest.approx(40)
    assert evidence.incident.state is IncidentState.HEALTHY
    assert evidence.incident.signal == "e2e_mean_ms"
    assert "no percentile is measured here" in evidence.incident.reason
    assert isinstance(evidence.find("e2e_p99_ms"), Gap)


def test_a_model_that_is_not_there_names_those_that_are(shared: tuple[str, float]) -> None:
    url, end_s = shared
    with pytest.raises(UsageError, match="no model 'gpt'") as caught:
        read(url, end_s, Selection("gpt"))
    assert "--model ranker" in caught.value.hint


def test_a_broken_selector_is_a_usage_error(shared: tuple[str, float]) -> None:
    url, end_s = shared
    with pytest.raises(UsageError, match="refuses the selector"):
        read(url, end_s, Selection("bert", "namespace=prod"))


def test_a_selector_that_fits_nothing_cannot_be_told(shared: tuple[str, float]) -> None:
    url, end_s = shared
    _, evidence = read(url, end_s, Selection("bert", 'namespace="nowhere"'))
    assert evidence.incident.state is IncidentState.CANNOT_TELL


def test_two_front_ends_of_one_model_are_two_services(tmp_path: Path) -> None:
    page = Page()
    end_s = 0.0
    for name in ("blue", "green"):
        front = (("job", "gateway"), ("env", name), ("instance", f"{name}:1"))
        end_s = serve_phases(page, START_S, [Load(600, 40, 100)], Place(front=front))
    with running_prometheus(tmp_path / "it", page) as url:
        with pytest.raises(UsageError) as caught:
            read(url, end_s)
        assert "--model faq-encoder --selector 'env=\"blue\"'" in caught.value.hint


def test_a_restarted_server_is_seen_as_a_reset_not_as_negative_traffic(tmp_path: Path) -> None:
    page = Page()
    middle_s = serve_phases(page, START_S, [Load(900, 60, 110)], Place(front=None))
    # A second call starts all counters anew at the same labels.
    end_s = serve_phases(page, middle_s, [Load(100, 60, 110)], Place(front=None))
    with running_prometheus(tmp_path / "it", page) as url:
        _, evidence = read(url, end_s)
    assert value(evidence, "process_resets").value == 1.0
    assert value(evidence, "request_rate_rps").worst >= 0


def test_an_empty_prometheus_cannot_be_told(tmp_path: Path) -> None:
    with running_prometheus(tmp_path / "it") as url:
        collected, evidence = read(url, time.time())
    assert collected.series == ()
    assert evidence.incident.state is IncidentState.CANNOT_TELL
    gap = evidence.find("queue_time_ms")
    assert isinstance(gap, Gap)
    assert gap.reason is GapReason.NO_SERIES
    assert gap.needs == "the server's queue duration counter"


def test_nan_several_series_and_refused_queries_are_gaps(incident: tuple[str, float]) -> None:
    url, end_s = incident
    window = Window(end_s - 60, end_s)
    queries = {
        "nan": "vector(NaN)",
        "infinite": "vector(1) / 0",
        "several": "gateway_requests_total",
        "nothing": "no_such_metric",
        "refused": "sum(",
        "good": "vector(1)",
    }
    metrics = PrometheusMetrics(PrometheusSource(url + "/"))
    readings = metrics.collect([RangeQuery(name, "", query, window, 20.0) for name, query in queries.items()])
    assert {gap.signal: gap.reason for gap in readings.gaps} == {
        "nan": GapReason.NOT_A_NUMBER,
        "infinite": GapReason.NOT_A_NUMBER,
        "several": GapReason.BAD_ANSWER,
        "nothing": GapReason.NO_SERIES,
        "refused": GapReason.BAD_ANSWER,
    }
    assert [series.signal for series in readings.series] == ["good"]
    assert [record.outcome for record in readings.queries].count("ok") == 1
    refused = next(gap for gap in readings.gaps if gap.signal == "refused")
    assert "HTTP 400" in refused.detail
    assert "parse error" in refused.detail


def test_points_fall_on_the_grid_asked_for(incident: tuple[str, float]) -> None:
    url, end_s = incident
    window = Window(end_s - 60.25, end_s - 0.25)
    readings = PrometheusMetrics(PrometheusSource(url)).collect([RangeQuery("x", "", "vector(1)", window, 20.0)])
    assert readings.series[0].times_s == (end_s - 60.25, end_s - 40.25, end_s - 20.25, end_s - 0.25)


def test_discovery_tells_candidates_and_cadence(shared: tuple[str, float]) -> None:
    url, end_s = shared
    found = PrometheusMetrics(PrometheusSource(url)).discover(DIALECTS, Selection("", 'pod="a"'), end_s)
    assert found.candidates == (Candidate("bert", ""), Candidate("ranker", ""))
    assert found.scrape_interval_s == 15.0
    assert found.newest_sample_s == end_s
    assert "nv_inference_request_success" in found.names
    assert found.names <= found.shared_names


def test_no_source_at_all_cannot_be_told() -> None:
    with pytest.raises(CannotTell, match="no source"):
        collect(Sources(), RULES, CollectRequest(Selection(""), time.time()))


def test_a_named_baseline_is_read_where_the_range_holds_only_the_incident(incident: tuple[str, float]) -> None:
    url, end_s = incident
    metrics = PrometheusMetrics(PrometheusSource(url))
    before = Window(end_s - 900, end_s - 600)
    collected = collect(Sources(metrics), RULES, CollectRequest(ANY, end_s, 240.0, baseline=before))
    evidence = assemble(collected, Slo(), SIGNALS)
    assert evidence.baseline_window == before
    queue = value(evidence, "queue_time_ms")
    assert queue.value == pytest.approx(1700, rel=0.01)
    assert queue.baseline == pytest.approx(2)
    assert bundle.load(bundle.dump(collected).encode(), Path("it")) == collected
