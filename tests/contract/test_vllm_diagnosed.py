"""A Prometheus that scrapes nothing but vLLM, diagnosed as its user would.

Its history is derived from the recorded pages: between two of them every counter grows evenly, and the growth of the
calm pages is followed by that of the overload.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from benchmarks.vllm_pages import Page as Scrape
from benchmarks.vllm_pages import read_page
from latencydoctor.cli import wiring
from latencydoctor.errors import UsageError
from tests.contract.backfill import Page, running_prometheus

FOLDER = next((Path(__file__).parent / "pages" / "vllm").glob("vllm-*"))
TIMES = yaml.safe_load((FOLDER / "recording.yaml").read_text())["pages"]
SCRAPE_S, CALM_S, LOAD_S = 5.0, 900.0, 240.0
GAUGES = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")


def scrape(name: str) -> Scrape:
    return read_page(TIMES[name], (FOLDER / f"{name}.prom").read_text())


def write_phase(history: Page, start_s: float, seconds: float, phase: str, **changed: str) -> None:
    """Scrapes every five seconds, as between the phase's two pages; `changed` are labels given another value."""
    first, last = scrape(f"{phase}-1"), scrape(f"{phase}-2")
    for name, series in last.values.items():
        if not name.startswith(("vllm:", "http_requests_total")) or name.endswith("_created"):
            continue
        for labels, end in series.items():
            begin = first.values.get(name, {}).get(labels, 0.0)
            told = dict(labels) | ({} if name.startswith("http") else changed) | {"job": "llm", "instance": "a:8000"}
            a_second = 0.0 if name in GAUGES else (end - begin) / (last.at_s - first.at_s)
            base = end if name in GAUGES else begin
            for turn in range(round(seconds / SCRAPE_S)):
                history.observe(start_s + turn * SCRAPE_S, name, base + a_second * turn * SCRAPE_S, **told)


def history_of(end_s: float, *variants: dict[str, str]) -> Page:
    """A quarter of an hour of calm and four minutes of overload for each variant of the labels."""
    history = Page()
    for changed in variants:
        write_phase(history, end_s - CALM_S - LOAD_S, CALM_S, "calm", **changed)
        write_phase(history, end_s - LOAD_S, LOAD_S, "load", **changed)
    return history


@pytest.fixture(scope="module")
def end_s() -> float:
    return float(int(time.time()) - 60)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, end_s: float) -> Iterator[str]:
    """One server, two engines."""
    with running_prometheus(tmp_path_factory.mktemp("vllm") / "it", history_of(end_s, {}, {"engine": "1"})) as url:
        yield url


def ask(url: str, end_s: float, model: str = "") -> wiring.Diagnosed:
    at = str(end_s - SCRAPE_S)
    return wiring.diagnose(wiring.DiagnoseRequest(prometheus=url, at=at, since="18m", model=model))


def test_the_overload_is_an_incident_by_p99(alone: str, end_s: float) -> None:
    found = ask(alone, end_s)
    incident = found.evidence.incident
    assert incident.state.value == "incident"
    assert incident.signal == "e2e_p99_ms"
    assert incident.value is not None
    assert incident.value > 1000
    assert incident.since_s == pytest.approx(end_s - LOAD_S, abs=45)
    assert found.collected.dialects == ("vllm",)
    assert found.collected.selection.model == "tiny-llama"


def test_engines_of_one_server_are_one_service(alone: str, end_s: float) -> None:
    measures = {measure.signal: measure for measure in ask(alone, end_s).evidence.measures}
    assert measures["replica_count"].value == 2
    assert measures["requests_waiting"].value == 2 * scrape("load-2").total("vllm:num_requests_waiting")
    baseline = measures["queue_time_ms"].baseline
    assert measures["queue_time_ms"].value > 500
    assert baseline is not None
    assert baseline < 5


def test_two_models_are_listed_and_told_apart(tmp_path: Path, end_s: float) -> None:
    with running_prometheus(tmp_path / "it", history_of(end_s, {}, {"model_name": "other"})) as url:
        with pytest.raises(UsageError) as refused:
            ask(url, end_s)
        assert "--model other" in str(refused.value.hint)
        assert "--model tiny-llama" in str(refused.value.hint)
        measures = {measure.signal: measure for measure in ask(url, end_s, "other").evidence.measures}
    assert measures["requests_waiting"].value == scrape("load-2").total("vllm:num_requests_waiting")
