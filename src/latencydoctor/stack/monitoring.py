"""The stack's monitoring: Prometheus's and Alertmanager's configuration, and where the rule files are."""

from __future__ import annotations

from pathlib import Path

import yaml

from latencydoctor.errors import KnownError
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.programs import package_folder
from latencydoctor.stack.replicas import authority

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


def prometheus_config(endpoints: Endpoints, rules: str, tritons: Path) -> str:
    """The text of prometheus.yml; `rules` is the pattern of the rule files, `tritons` the file of Triton targets."""
    fixed = {"gateway": endpoints.gateway, "controller": endpoints.controller_metrics}
    config: dict[str, object] = {
        "global": {
            "scrape_interval": SCRAPE_INTERVAL,
            "scrape_timeout": SCRAPE_INTERVAL,
            "evaluation_interval": SCRAPE_INTERVAL,
        },
        "rule_files": [rules],
        "scrape_configs": [
            *({"job_name": name, "static_configs": [{"targets": [authority(url)]}]} for name, url in fixed.items()),
            # Tritons come and go: Prometheus notices when the file is replaced, within five seconds.
            {"job_name": "triton", "file_sd_configs": [{"files": [str(tritons)], "refresh_interval": "5s"}]},
        ],
    }
    if endpoints.alertmanager:
        target = authority(endpoints.alertmanager)
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


def _text(config: dict[str, object]) -> str:
    return yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=False)
