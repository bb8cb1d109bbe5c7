"""A diagnosis straight from metrics pages of a real HTTP server, without a Prometheus."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.cli import probing, wiring
from latencydoctor.cli.sources_wiring import DiagnoseRequest
from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import CannotTell, ContentErrors, UsageError
from latencydoctor.evidence.assemble import assemble
from latencydoctor.forecast.histogram import bounds_of, shown_ms
from latencydoctor.model.configuration import MetricsPage, Slo
from latencydoctor.model.evidence import Collected, Evidence, Gap, IncidentState, Measure, Selection
from latencydoctor.model.readings import Candidate
from latencydoctor.sources import bundle
from latencydoctor.sources.pages import PageMetrics
from latencydoctor.stack.gateway.series import REQUEST_BOUNDS_S, GatewaySeries

SIGNALS, DIALECTS = read_signals(locate())
EVERY_S = 0.4
RPS = 200


def triton(model: str, latency_ms: float, seconds: float) -> str:
    """A server's counters after so many seconds of steady load."""
    labels = f'model="{model}",version="1"'
    done = 1000 + RPS * seconds
    return (
        f"# TYPE nv_inference_request_success counter\nnv_inference_request_success{{{labels}}} {done}\n"
        f'nv_inference_request_failure{{{labels},reason="OTHER"}} 0\n'
        f"nv_inference_count{{{labels}}} {4 * done}\nnv_inference_exec_count{{{labels}}} {done}\n"
        f"nv_inference_request_duration_us{{{labels}}} {done * latency_ms * 1000}\n"
        f"nv_inference_queue_duration_us{{{labels}}} {done * latency_ms * 900}\n"
    )


@contextlib.contextmanager
def served(page: Callable[[float, int], str | None]) -> Iterator[str]:
    """A server of one page, made from the seconds since it began and the requests so far; None is an error status."""
    began_s, requests = time.monotonic(), itertools.count()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = page(time.monotonic() - began_s, next(requests))
            body = (text or "").encode()
            self.send_response(500 if text is None else 200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}/metrics"
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def read(*urls: str, scrapes: int = 11, selection: Selection | None = None) -> Collected:
    pages = PageMetrics([MetricsPage(url) for url in urls], scrapes, EVERY_S, deadline_s=30.0)
    at_s = pages.record(DIALECTS, lambda _ratio, _text: None)
    request = CollectRequest(selection or Selection(""), at_s, pages.schedule.span_s, pages.schedule.window_s)
    return collect(Sources(pages), Rules(DIALECTS, SIGNALS), request)


def evidence_of(collected: Collected) -> Evidence:
    return assemble(collected, Slo(), SIGNALS)


def measure(evidence: Evidence, signal: str) -> Measure:
    found = evidence.find(signal)
    assert isinstance(found, Measure), found
    return found


def gap(evidence: Evidence, signal: str) -> Gap:
    found = evidence.find(signal)
    assert isinstance(found, Gap)
    return found


def test_an_incident_without_a_past(tmp_path: Path) -> None:
    with served(lambda seconds, _count: triton("bert", 1500.0, seconds)) as url:
        collected = read(url)
    evidence = evidence_of(collected)
    assert evidence.incident.state is IncidentState.INCIDENT
    assert evidence.incident.windows_judged >= 3
    # What it was like before was not seen, so neither a beginning nor a baseline is made up.
    assert evidence.incident.since_s is None
    assert "had begun before" in evidence.incident.reason
    assert evidence.baseline_window is None
    assert "no known beginning" in gap(evidence, "history").detail
    assert measure(evidence, "request_rate_rps").value == pytest.approx(RPS, rel=0.5)
    mean = measure(evidence, "e2e_mean_ms")
    assert mean.value == pytest.approx(1500, rel=0.01)
    assert mean.baseline is None
    assert mean.proof.source == "page"
    assert {record.source for record in collected.queries} == {"page"}
    bundle.write(tmp_path / "b.json.gz", collected)
    assert evidence_of(bundle.read(tmp_path / "b.json.gz")) == evidence


def test_the_bounds_of_the_histogram_behind_p99_are_read_with_it() -> None:
    series = GatewaySeries()

    def page(seconds: float, _: int) -> str:
        answered = series.request(200, "standard", "stable", cached=False)
        while answered.value < RPS * seconds:
            answered.add()
            series.durations["stable", "standard"].observe(0.163)
        return series.registry.page().decode()

    with served(page) as url:
        collected = read(url)
    assert bounds_of(collected.facts) == tuple(round(bound * 1000, 6) for bound in REQUEST_BOUNDS_S)
    evidence = assemble(collected, Slo(), SIGNALS)
    p99 = evidence.find("e2e_p99_ms")
    assert isinstance(p99, Measure)
    assert p99.value == pytest.approx(shown_ms([163.0] * 100, 0.99, bounds_of(collected.facts)))


def test_healthy_over_two_replicas() -> None:
    with (
        served(lambda seconds, _count: triton("bert", 20.0, seconds)) as one,
        served(lambda seconds, _count: triton("bert", 40.0, seconds)) as other,
    ):
        evidence = evidence_of(read(one, other))
    assert evidence.incident.state is IncidentState.HEALTHY
    assert measure(evidence, "e2e_mean_ms").value == pytest.approx(30, rel=0.1)
    assert measure(evidence, "request_rate_rps").value == pytest.approx(2 * RPS, rel=0.5)


def test_several_services_are_listed_never_merged() -> None:
    with served(lambda seconds, _count: triton("bert", 20.0, seconds) + triton('r\\"an\\\\k', 900.0, seconds)) as url:
        with pytest.raises(UsageError) as refused:
            read(url, scrapes=2)
        assert "--model bert" in refused.value.hint
        pages = PageMetrics([MetricsPage(url)], 5, EVERY_S, 30.0)
        at_s = pages.record(DIALECTS, lambda _ratio, _text: None)
        found = pages.discover(DIALECTS, Selection(""), at_s)
        assert found.candidates == (Candidate("bert", ""), Candidate('r"an\\k', ""))
        evidence = evidence_of(read(url, selection=Selection('r"an\\k')))
    assert measure(evidence, "e2e_mean_ms").value == pytest.approx(900, rel=0.01)


def test_two_scrapes_are_too_few_to_judge_but_not_to_measure() -> None:
    with served(lambda seconds, _count: triton("bert", 1500.0, seconds)) as url:
        evidence = evidence_of(read(url, scrapes=2))
    assert evidence.incident.state is IncidentState.CANNOT_TELL
    assert measure(evidence, "e2e_mean_ms").value == pytest.approx(1500, rel=0.01)


def test_a_server_that_falls_silent_is_said_to_have() -> None:
    with (
        served(lambda seconds, _count: triton("bert", 20.0, seconds)) as steady,
        served(lambda seconds, count: triton("bert", 20.0, seconds) if count < 5 else None) as failing,
    ):
        evidence = evidence_of(read(steady, failing))
    assert (
        f"6 of 11 readings of {failing.split('/')[2]} failed: error status: HTTP 500" in gap(evidence, "pages").detail
    )


def test_a_restart_in_between_is_seen_and_does_not_bend_the_rates() -> None:
    with served(lambda seconds, count: triton("bert", 30.0, seconds + 5 if count < 6 else seconds)) as url:
        evidence = evidence_of(read(url))
    assert measure(evidence, "process_resets").value >= 1
    assert measure(evidence, "e2e_mean_ms").value == pytest.approx(30, rel=0.05)


def test_a_selector_that_is_none() -> None:
    with served(lambda seconds, _count: triton("bert", 20.0, seconds)) as url, pytest.raises(UsageError):
        read(url, scrapes=2, selection=Selection("", 'zone=="here"'))


def test_the_command_line_reads_pages_and_says_how_far_it_is() -> None:
    told: list[str] = []
    with served(lambda seconds, _count: triton("bert", 20.0, seconds)) as url:
        request = wiring.DiagnoseRequest(metrics_urls=(url,), scrapes=6, every="400ms")
        found = wiring.diagnose(request, lambda progress: told.append(progress.text))
        with pytest.raises(UsageError):
            wiring.diagnose(wiring.DiagnoseRequest(metrics_urls=(url,), prometheus="http://localhost:1"))
        with pytest.raises(UsageError):
            wiring.diagnose(wiring.DiagnoseRequest(metrics_urls=(url,), at="2026-11-30T07:00Z"))
        with pytest.raises(UsageError) as late:
            wiring.diagnose(wiring.DiagnoseRequest(metrics_urls=(url,), scrapes=30, deadline="10s"))
    assert found.diagnosis.incident.state is IncidentState.HEALTHY
    assert told[-1] == "read the metrics pages 6 of 6 times"
    assert len(told) == 6
    assert "--deadline" in late.value.hint


def test_config_check_looks_at_pages(tmp_path: Path) -> None:
    file = tmp_path / "latencydoctor.yaml"
    with (
        served(lambda seconds, _count: triton("bert", 20.0, seconds)) as url,
        served(lambda _seconds, _count: "<html></html>\n") as strange,
    ):
        file.write_text(f"sources:\n  metrics: [{url}, {strange}, 'http://127.0.0.1:1']\n  nvml: false\n")
        probed = probing.probe(DiagnoseRequest(config=file))
    assert [one.state for one in probed.sources] == ["ok", "wrong", "unreachable"]
    assert probed.sources[0].detail == "6 samples; dialects: triton"


def test_a_file_names_either_pages_or_a_prometheus(tmp_path: Path) -> None:
    file = tmp_path / "latencydoctor.yaml"
    file.write_text("sources:\n  metrics: ['http://a/metrics']\n  prometheus: {url: 'http://b'}\n")
    with pytest.raises(ContentErrors, match="only one is read"):
        wiring.load_configuration(wiring.DiagnoseRequest(config=file))


def test_flags_beat_the_file(tmp_path: Path) -> None:
    file = tmp_path / "latencydoctor.yaml"
    file.write_text("sources:\n  metrics: ['http://a/metrics']\n")
    plain = wiring.load_configuration(wiring.DiagnoseRequest(config=file))
    assert plain.metrics_pages == (MetricsPage("http://a/metrics"),)
    flagged = wiring.load_configuration(wiring.DiagnoseRequest(config=file, prometheus="http://b"))
    assert flagged.metrics_pages == ()
    pages = wiring.load_configuration(wiring.DiagnoseRequest(config=file, metrics_urls=("http://c",)))
    assert pages.metrics_pages == (MetricsPage("http://c"),)
    assert pages.prometheus is None


def test_no_page_at_all_is_not_told_from_health() -> None:
    began_s = time.monotonic()
    with pytest.raises(CannotTell) as error:
        read("http://127.0.0.1:1/metrics", scrapes=60)
    assert time.monotonic() - began_s < 12, "waiting on would be of no use"
    assert "127.0.0.1:1" in error.value.message
