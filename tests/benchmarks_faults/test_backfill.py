"""Runs end up in a real Prometheus, several side by side."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from dataclasses import replace

import pytest

from benchmarks.faults import load_cases, serve, serve_jobs, simulate
from benchmarks.faults.backfill import MissingProgram, program

CASES = {case.id: case for case in load_cases()}


@pytest.fixture(autouse=True)
def _programs() -> None:
    try:
        program("promtool"), program("prometheus")
    except MissingProgram as error:
        pytest.skip(str(error))


def ask(url: str, expression: str, time_s: float) -> dict[str, float]:
    """An instant query's values by namespace."""
    parameters = urllib.parse.urlencode({"query": expression, "time": time_s})
    with urllib.request.urlopen(f"{url}/api/v1/query?{parameters}", timeout=10) as answer:
        result = json.load(answer)["data"]["result"]
    return {each["metric"].get("namespace", ""): float(each["value"][1]) for each in result}


def test_one_prometheus_holds_several_runs() -> None:
    runs = [simulate(CASES["healthy-batch-one"], engine, 0) for engine in ("triton", "torchserve")]

    with serve(runs) as url:
        rates = ask(url, "sum by (namespace) (rate(nginx_ingress_controller_requests[10m]))", runs[0].end_s)
        before = ask(url, "count({__name__=~'.+'})", runs[0].start_s - 60)

    assert set(rates) == {run.namespace for run in runs}
    assert all(rate == pytest.approx(2.5, rel=0.2) for rate in rates.values())
    assert before == {}


def test_jobs_are_simulated_and_loaded_elsewhere() -> None:
    with serve_jobs([(CASES["healthy-idle"], "triton", 3)], processes=1) as (url, runs):
        held = ask(url, "count by (namespace) (up)", runs[0].end_s)

    assert [(run.namespace, run.series) for run in runs] == [("healthy-idle-triton-s3", ())]
    assert held == {"healthy-idle-triton-s3": 7}


def test_what_promtool_refuses_is_told() -> None:
    run = simulate(CASES["healthy-idle"], "triton", 0)
    broken = replace(run, series=(replace(run.series[0], name="no name"),))

    with pytest.raises(RuntimeError, match="promtool refused"), serve([broken]):
        pass
