"""Every signal the dialects promise for the bundled stack is really there, with values that fit the load."""

from __future__ import annotations

import json
import threading
import time
import urllib.request

import pytest

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.evidence.assemble import assemble
from latencydoctor.model.configuration import PrometheusSource, Slo
from latencydoctor.model.evidence import IncidentState, Measure, Selection
from latencydoctor.sources.prometheus import PrometheusMetrics
from latencydoctor.sources.triton_stats import TritonStatistics
from latencydoctor.stack.endpoints import Endpoints

SIGNALS, DIALECTS = read_signals(locate())

PROMISED = (
    "request_rate_rps",
    "error_ratio",
    "e2e_p99_ms",
    "e2e_mean_ms",
    "server_time_ms",
    "queue_time_ms",
    "compute_time_ms",
    "compute_input_time_ms",
    "compute_output_time_ms",
    "preprocess_time_ms",
    "response_time_ms",
    "cache_time_ms",
    "network_time_ms",
    "preprocess_share_ratio",
    "queue_depth",
    "batch_size_mean",
    "requests_per_execution",
    "execution_rate_eps",
    "instance_busy_ratio",
    "accelerator_busy_ratio",
    "accelerator_memory_used_bytes",
    "accelerator_memory_total_bytes",
    "accelerator_clock_ratio",
    "accelerator_throttled_ratio",
    "cache_hit_ratio",
    "cache_lookup_rate_rps",
    "settings_generation",
    "settings_error",
    "process_resets",
    "executed_batch_size_p50",
    "config_max_batch_size",
    "config_preferred_batch_size",
    "config_queue_delay_ms",
    "config_dynamic_batching",
    "config_instance_count",
)
"""What a diagnosis of the bundled stack can count on; other signals need a GPU, a proxy or another server."""

SECONDS = 28.0
THREADS = 4
PAUSE_S = 0.05


def ask_for(url: str, seconds: float, name: int, failures: list[str]) -> None:
    """Ask a new question every `PAUSE_S`, and one in four a second time so that the cache has something to do."""
    ends_s = time.monotonic() + seconds
    count = 0
    while time.monotonic() < ends_s:
        count += 1
        number = count if count % 4 else count - 1
        body = json.dumps({"question": f"Where is my order {name}{number:06d}?", "session": f"s{name}"}).encode()
        request = urllib.request.Request(f"{url}/v1/answer", body, {"Content-Type": "application/json"})
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except OSError as error:
            failures.append(str(error))
        time.sleep(PAUSE_S)


@pytest.mark.stack
@pytest.mark.slow
def test_the_bundled_stack_gives_every_signal(live_stack: Endpoints) -> None:
    failures: list[str] = []
    threads = [
        threading.Thread(target=ask_for, args=(live_stack.gateway, SECONDS, name, failures)) for name in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    sources = Sources(
        PrometheusMetrics(PrometheusSource(live_stack.prometheus)), (TritonStatistics(live_stack.triton_grpc),)
    )
    found = collect(sources, Rules(DIALECTS, SIGNALS), CollectRequest(Selection(""), time.time(), 60.0))
    evidence = assemble(found, Slo(), SIGNALS)
    assert found.scrape_interval_s == 1.0
    assert found.selection.model == "faq-encoder"
    assert found.dialects == ("gateway", "sim", "triton", "controller")
    promised = {name: evidence.find(name) for name in PROMISED}
    absent = {name: gap for name, gap in promised.items() if not isinstance(gap, Measure)}
    assert absent == {}
    assert evidence.incident.state is IncidentState.HEALTHY, evidence.incident
    values = {measure.signal: measure.value for measure in evidence.measures}
    assert 10 < values["request_rate_rps"] < THREADS / PAUSE_S
    assert values["error_ratio"] == 0.0
    assert 0.1 < values["cache_hit_ratio"] < 0.4
    # The small profile: 20 ms on the host and 1 ms on the device for each item.
    assert 20 < values["compute_time_ms"] < 60
    assert 0 < values["accelerator_busy_ratio"] < 0.5
    assert values["accelerator_clock_ratio"] == 1.0
    assert values["accelerator_throttled_ratio"] == 0.0
    assert 1 <= values["batch_size_mean"] <= THREADS
    assert values["batch_size_mean"] == pytest.approx(values["requests_per_execution"], rel=0.05)
    assert values["e2e_p99_ms"] >= values["e2e_mean_ms"] > values["server_time_ms"] * 0.5
    assert values["process_resets"] == 0.0
    assert values["settings_error"] == 0.0
    assert evidence.simulated
