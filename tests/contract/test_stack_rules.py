"""The rules for Prometheus, checked and run by its own tool."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from latencydoctor.stack import binaries, monitoring, prepare

BUCKETS = ("0.1", "0.5", "1", "2", "+Inf")


@pytest.fixture(scope="module")
def promtool() -> Path:
    """Prometheus's tool, from wherever the stack would take it."""
    found = binaries.tools(os.environ, prepare.user_cache()).find("promtool")
    if found is None:
        pytest.skip("promtool was not found; `make tools` fetches it")
    return found


def test_the_rules_are_well_formed(promtool: Path) -> None:
    done = subprocess.run([promtool, "check", "rules", *monitoring.rule_files()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def latency(slow_per_second: int) -> list[dict[str, str]]:
    """Histogram series of 100 requests a second, some of them between one and two seconds long."""
    counts = {"0.1": 100 - slow_per_second, "0.5": 100 - slow_per_second, "1": 100 - slow_per_second}
    return [
        {
            "series": f'gateway_request_duration_seconds_bucket{{job="gateway",arm="stable",le="{bound}"}}',
            "values": f"0+{counts.get(bound, 100)}x60",
        }
        for bound in BUCKETS
    ]


def requests(failed_per_second: int) -> list[dict[str, str]]:
    name = 'gateway_requests_total{{job="gateway",status="{status}"}}'
    return [
        {"series": name.format(status="200"), "values": f"0+{100 - failed_per_second}x60"},
        {"series": name.format(status="503"), "values": f"0+{failed_per_second}x60"},
    ]


def firing(alert: str, at: str, labels: dict[str, str] | None) -> dict[str, object]:
    """That at `at` the alert fires with these labels, or with None that it does not."""
    selector = ",".join(f'{key}="{value}"' for key, value in sorted((labels or {}).items()))
    fires = f'ALERTS{{alertname="{alert}",alertstate="firing"'
    expected = [] if labels is None else [{"labels": f"{fires},{selector}}}", "value": 1}]
    return {"eval_time": at, "expr": f"{fires}}}", "exp_samples": expected}


PAGE = {"severity": "page", "job": "gateway"}

Case = tuple[list[dict[str, str]], list[tuple[str, str, dict[str, str] | None]]]

CASES: dict[str, Case] = {
    "slow answers page after three seconds": (latency(2), [("InferenceLatencyHigh", "30s", PAGE)]),
    "a slow answer in two hundred is below the 99th percentile": (latency(0), [("InferenceLatencyHigh", "30s", None)]),
    "one failure in a hundred pages": (requests(1), [("InferenceErrorsHigh", "30s", PAGE)]),
    "no failure pages nobody": (requests(0), [("InferenceErrorsHigh", "30s", None)]),
    "no request at all pages nobody": (
        [{"series": 'gateway_requests_total{job="gateway",status="200"}', "values": "5x60"}],
        [("InferenceErrorsHigh", "30s", None), ("InferenceLatencyHigh", "30s", None)],
    ),
    "a part that answers no scrape pages": (
        [{"series": 'up{job="triton",instance="a"}', "values": "0x60"}],
        [("PartDown", "8s", None), ("PartDown", "15s", {"severity": "page", "job": "triton", "instance": "a"})],
    ),
    "refused settings warn": (
        [{"series": 'stack_settings_last_error{job="controller"}', "values": "0x5 1x50"}],
        [
            ("SettingsNotInEffect", "4s", None),
            ("SettingsNotInEffect", "20s", {"severity": "warning", "job": "controller"}),
        ],
    ),
    "an overrun warns": (
        [{"series": 'sim_accelerator_overruns_total{job="triton",profile="small"}', "values": "0x20 3x40"}],
        [
            ("SimulationTooSlow", "15s", None),
            ("SimulationTooSlow", "25s", {"severity": "warning", "job": "triton", "profile": "small"}),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_alert_fires_when_it_should_and_only_then(promtool: Path, tmp_path: Path, case: str) -> None:
    series, alerts = CASES[case]
    document = {
        "rule_files": [str(path) for path in monitoring.rule_files()],
        "evaluation_interval": "1s",
        "tests": [
            {
                "interval": "1s",
                "input_series": series,
                "promql_expr_test": [firing(*alert) for alert in alerts],
            }
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    done = subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
