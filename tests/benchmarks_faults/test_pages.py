"""Made pages look like the recorded pages of the real servers, and their counters behave like counters."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.faults import END_S, Run, load_cases, simulate
from benchmarks.faults.pages.tally import Spread, Tally
from benchmarks.faults.simulator.knobs import Engine
from benchmarks.faults.simulator.log import Floats
from benchmarks.faults.simulator.timeline import RANGE_S

RECORDED = Path(__file__).parents[1] / "contract" / "pages"
PAGES = {
    "triton": RECORDED / "triton" / "tritonserver-2.51.0-everything" / "equal.prom",
    "vllm": RECORDED / "vllm" / "vllm-0.32.0" / "load-2.prom",
    "torchserve": RECORDED / "torchserve" / "torchserve-0.12.0" / "load-2.prom",
}
SCRAPED = {"job", "instance", "namespace", "pod"}
# Recorded without a GPU, or by an older server; cache_config_info has a label for every setting, of which we keep four.
UNRECORDED = {"nv_gpu_", "nv_model_load_duration_secs", "GPU", "up", "vllm:cache_config_info"}
NOT_THERE_WITHOUT_GPU = {"gpu_uuid"}
CASES = {case.id: case for case in load_cases()}


@pytest.fixture(scope="module")
def runs() -> dict[Engine, Run]:
    """The same loss of a process on every engine."""
    engines: tuple[Engine, ...] = ("triton", "vllm", "torchserve")
    return {engine: simulate(CASES["oom-loop"], engine, 0) for engine in engines}


def labels_of(text: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="([^"]*)"', text))


def recorded(engine: str) -> dict[str, set[str]]:
    """Names and label names on the recorded page."""
    found: dict[str, set[str]] = {}
    for line in PAGES[engine].read_text().splitlines():
        if parsed := re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ", line):
            found.setdefault(parsed[1], set()).update(labels_of(parsed[2] or ""))
    return found


@pytest.mark.parametrize("engine", PAGES)
def test_names_and_labels_are_those_of_the_real_server(runs: dict[str, Run], engine: str) -> None:
    known = recorded(engine)
    made = [series for series in runs[engine].series if f'job="{engine}"' in series.labels]

    assert len(made) >= 30
    for series in made:
        if not series.name.startswith(tuple(UNRECORDED)):
            assert series.name in known
            assert set(labels_of(series.labels)) - SCRAPED - NOT_THERE_WITHOUT_GPU == known[series.name]


def test_vllm_has_the_real_buckets(runs: dict[str, Run]) -> None:
    text = PAGES["vllm"].read_text()
    for name in ("e2e_request_latency", "time_to_first_token", "inter_token_latency", "request_queue_time"):
        real = re.findall(rf'^vllm:{name}_seconds_bucket{{.*le="([^"]*)"', text, re.MULTILINE)
        made = [series for series in runs["vllm"].series if series.name == f"vllm:{name}_seconds_bucket"]

        assert [labels_of(series.labels)["le"] for series in made][: len(real)] == real


@pytest.mark.parametrize("engine", PAGES)
def test_series_are_told_apart_and_in_the_range(runs: dict[str, Run], engine: str) -> None:
    run = runs[engine]

    assert len({(series.name, series.labels) for series in run.series}) == len(run.series)
    assert run.end_s == END_S
    for series in run.series:
        assert f'namespace="{run.namespace}"' in series.labels
        assert np.all(np.diff(series.times) > 0)
        assert series.times[0] >= 0
        assert series.times[-1] <= RANGE_S
        assert not np.isnan(series.values).any()


@pytest.mark.parametrize("engine", PAGES)
def test_counters_fall_only_when_the_process_starts_anew(runs: dict[str, Run], engine: str) -> None:
    ends = ("_total", "_count", "_sum", "_bucket", "_success", "_duration_us", "_microseconds")
    counters = [series for series in runs[engine].series if series.name.endswith(ends)]
    falls = [(series, int((np.diff(series.values) < 0).sum())) for series in counters]

    assert len(counters) > 60
    for series, count in falls:
        assert count == 0 or f'job="{engine}"' in series.labels
    assert max(count for _, count in falls) >= 3
    # Days of past are in them.
    assert max(series.values[0] for series in counters if series.name.endswith("_count")) > 10_000


@pytest.mark.parametrize("engine", PAGES)
def test_buckets_hold_what_is_below_their_bound(runs: dict[str, Run], engine: str) -> None:
    rows: dict[str, list[tuple[float, Floats]]] = {}
    for series in runs[engine].series:
        if series.name.endswith("_bucket"):
            labels = labels_of(series.labels)
            bound = float(labels.pop("le").replace("+Inf", "inf"))
            rows.setdefault(f"{series.name}{sorted(labels.items())}", []).append((bound, series.values))

    assert rows
    for buckets in rows.values():
        ordered = [values for _, values in sorted(buckets, key=lambda row: row[0])]
        assert all(np.all(low <= high) for low, high in pairwise(ordered))


def test_a_killed_process_is_seen_by_kubernetes(runs: dict[str, Run]) -> None:
    by_name = {series.name: series for series in runs["triton"].series}

    assert 'reason="OOMKilled"' in by_name["kube_pod_container_status_last_terminated_reason"].labels
    assert by_name["kube_pod_container_status_restarts_total"].values[-1] >= 3
    assert by_name["container_oom_events_total"].values[-1] >= 3


def test_equal_arguments_give_an_equal_run() -> None:
    first, again, other = (simulate(CASES["healthy-idle"], "triton", seed).openmetrics() for seed in (1, 1, 2))

    assert first == again
    assert first.replace("-s1", "-s2") != other


def test_a_tally_counts_up_to_each_moment() -> None:
    tally = Tally(np.asarray([3.0, 1.0, 2.0]), np.asarray([30.0, 10.0, 20.0]))

    assert tally.at(np.asarray([0.5, 1.0, 2.5, 9.0])).tolist() == [0, 10, 30, 60]


def test_a_spread_is_cumulative_over_time_and_bounds() -> None:
    spread = Spread(np.asarray([1.0, 2.0, 2.0]), np.asarray([0.1, 0.5, 7.0]), (0.1, 1))

    assert spread.shown == ("0.1", "1")
    assert spread.at(np.asarray([1.0, 3.0])).tolist() == [[1, 1, 1], [1, 2, 3]]


def test_facts_are_those_of_the_servers_own_api() -> None:
    triton, torchserve = (simulate(CASES["batching-off"], engine, 0).facts for engine in ("triton", "torchserve"))

    assert triton["config_dynamic_batching"] == torchserve["config_dynamic_batching"] == 0
    assert (triton["config_max_batch_size"], torchserve["config_max_batch_size"]) == (8, 1)
    assert "config_preferred_batch_size" in triton
    assert "config_preferred_batch_size" not in torchserve
