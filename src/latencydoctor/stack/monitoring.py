"""The stack's monitoring: Prometheus's and Alertmanager's configuration, and where the rule files are."""

from __future__ import annotations

from pathlib import Path

import yaml

from latencydoctor.errors import KnownError
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.programs import package_folder

SCRAPE_INTERVAL = "1s"
"""Short, so that a rehearsal of minutes has windows worth judging; other people's stacks scrape every 15 to 60 s."""


def rule_files() -> tuple[Path, ...]:
    """The recording and alerting rules: of a checkout, else those inside the installed package."""
    package = package_folder()
    for folder in (
        package.parent / "rules" / "prometheus",
        package / "latencydoctor" / "_bundled" / "rules" / "prometheus",
    ):
        found = sorted(folder.glob("*.yaml"))
        if found:
            return tuple(found)
    raise KnownError("the rules for Prometheus were not found", hint="Install the package again.")


def prometheus_config(endpoints: Endpoints, rules: str) -> str:
    """The text of prometheus.yml; `rules` is the pattern of the rule files."""
    targets = {
        "gateway": (endpoints.gateway,),
        "triton": (endpoints.triton_metrics, endpoints.replica_metrics),
        "controller": (endpoints.controller_metrics,),
    }
    config: dict[str, object] = {
        "global": {
            "scrape_interval": SCRAPE_INTERVAL,
            "scrape_timeout": SCRAPE_INTERVAL,
            "evaluation_interval": SCRAPE_INTERVAL,
        },
        "rule_files": [rules],
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": [_authority(url) for url in urls if url]}]}
            for name, urls in targets.items()
        ],
    }
    if endpoints.alertmanager:
        target = _authority(endpoints.alertmanager)
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [target]}]}]}
    return _text(config)


def alertmanager_config() -> str:
    """The text of alertmanager.yml: alerts are grouped and shown, and sent to nobody."""
    return _text({"route": {"receiver": "nobody", "group_wait": "0s"}, "receivers": [{"name": "nobody"}]})


def doctor_config(endpoints: Endpoints, logs: Path) -> str:
    """The text of latencydoctor.yaml for this stack; limits are those of the scene (p99 1 s, errors 0.5 %)."""
    return _text(
        {
            "sources": {
                "prometheus": {"url": endpoints.prometheus},
                "triton": {"grpc": endpoints.triton_grpc},
                "logs": [str(logs / "*.log")],
            },
            "slo": {"p99_ms": 1000, "error_ratio": 0.005},
            "targets": {"bundled": {"state": str(logs.parent)}},
        }
    )


def _authority(url: str) -> str:
    return url.split("://", 1)[-1].split("/", 1)[0]


def _text(config: dict[str, object]) -> str:
    return yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=False)
