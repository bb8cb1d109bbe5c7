from __future__ import annotations

from pathlib import Path

import yaml

from latencydoctor.stack.endpoints import Ports, endpoints_for
from latencydoctor.stack.monitoring import alertmanager_config, doctor_config, prometheus_config

TRITONS = Path("/s/prometheus/targets/triton.json")
ENDPOINTS = endpoints_for(Path("/s/run"), Ports(1, 2, 3, 4, 5, 6, 7), "sim:small", alertmanager=True)
ALONE = endpoints_for(Path("/s/run"), Ports(1, 2, 3, 4, 5, 6, 7), "sim:small", alertmanager=False)


def test_prometheus_scrapes_every_metrics_page_each_second() -> None:
    config = yaml.safe_load(prometheus_config(ENDPOINTS, "/r/*.yaml", TRITONS))
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    fixed = {name: job["static_configs"][0]["targets"] for name, job in jobs.items() if name != "triton"}
    assert fixed == {"gateway": ["127.0.0.1:1"], "controller": ["127.0.0.1:7"]}
    # Tritons come and go while it runs.
    assert jobs["triton"]["file_sd_configs"][0]["files"] == [str(TRITONS)]
    assert config["global"]["scrape_interval"] == "1s"
    assert config["rule_files"] == ["/r/*.yaml"]


def test_alerts_go_to_the_alertmanager_when_there_is_one() -> None:
    config = yaml.safe_load(prometheus_config(ENDPOINTS, "/r/*.yaml", TRITONS))
    assert config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] == ["127.0.0.1:3"]
    assert "alerting" not in yaml.safe_load(prometheus_config(ALONE, "/r/*.yaml", TRITONS))


def test_alerts_are_sent_to_nobody() -> None:
    config = yaml.safe_load(alertmanager_config())
    assert config["receivers"] == [{"name": config["route"]["receiver"]}]


def test_the_doctor_finds_the_stack_as_it_would_a_strangers() -> None:
    config = yaml.safe_load(doctor_config(ENDPOINTS, Path("/s/logs")))
    assert config["sources"]["prometheus"]["url"] == "http://127.0.0.1:2"
    assert config["sources"]["triton"]["grpc"] == "127.0.0.1:5"
    assert config["sources"]["logs"] == ["/s/logs/*.log"]
    assert config["targets"]["bundled"]["state"] == "/s"
    assert config["slo"] == {"p99_ms": 1000, "error_ratio": 0.005}
