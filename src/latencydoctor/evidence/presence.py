"""PromQL that tells what a Prometheus holds: the services, how often they are scraped, whether they are there twice.

Every expression gives a handful of series, however many there are behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from latencydoctor.evidence.queries import quote

_PLAIN = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")

REPLICA_LABELS = (
    "instance", "pod", "pod_name", "pod_ip", "exported_pod", "exported_instance", "gpu_uuid", "gpu", "UUID", "version",
    "node", "nodename", "host", "hostname", "Hostname", "container", "container_id", "endpoint", "replica", "uid",
    "pod_template_hash", "controller_revision_hash", "statefulset_kubernetes_io_pod_name", "prometheus_replica",
    "receive_replica", "engine", "model_version", "service_version", "tp_rank", "pp_rank", "dp_rank", "moe_ep_rank",
)  # fmt: skip
"""Labels that tell copies of one service apart, in the conventions of Kubernetes, its operator and plain scraping."""

PLACE_LABELS = ("cluster", "environment", "env", "namespace", "kubernetes_namespace", "service", "app", "job")
"""Labels by which two front ends of one kind are told apart."""

COPY_LABELS = ("prometheus_replica", "receive_replica", "replica")
"""Labels by which Thanos and the Prometheus operator tell apart two Prometheus servers that scrape the same targets."""

_SPANS = ((300, 0), (60, 0), (10, 0), (300, 300))
"""(seconds looked at, seconds before now): young series have no long history, dead ones only an old one."""


def service_query(metric: str, selector: str) -> str:
    """One series for each service; those that died lately where none is alive, for their death may be the incident."""
    chosen = _chosen(metric, selector)
    without = f"count without ({', '.join(REPLICA_LABELS)})"
    return f"{without} ({chosen}) or ({without} (last_over_time({chosen}[10m])) unless on () count({chosen}))"


def place_query(metric: str, selector: str) -> str:
    """One series for each place a front end is in."""
    return f"count by ({', '.join(PLACE_LABELS)}) ({_chosen(metric, selector)})"


def one_series_query(metric: str, selector: str) -> str:
    """One whole series, whose samples tell for all how often they come."""
    chosen = _chosen(metric, selector)
    return f"topk(1, {chosen}) or (topk(1, last_over_time({chosen}[10m])) unless on () count({chosen}))"


def exactly(labels: Mapping[str, str]) -> str:
    """Matchers for one series; labels that only quotes could name are left out."""
    return ",".join(f"{name}={quote(labels[name])}" for name in sorted(labels) if _PLAIN.fullmatch(name))


def cadence_query(metric: str, matchers: str) -> str:
    """Seconds between a series' samples: the time between two of them over the number of steps there.

    The smallest of several spans counts, because a gap in scraping only ever makes it longer.
    """
    chosen = _chosen(metric, matchers)
    spans = [
        f'label_replace({_cadence(chosen, span_s, before_s)}, "span", "{index}", "", "")'
        for index, (span_s, before_s) in enumerate(_SPANS)
    ]
    return f"min({' or '.join(spans)})"


def _cadence(chosen: str, span_s: int, before_s: int) -> str:
    now = f" offset {before_s}s" if before_s else ""
    # A millisecond less, so that a sample exactly at the span's start is not counted beside those after it.
    steps = f"count_over_time({chosen}[{span_s * 1000 - 1}ms]{now})"
    return f"quantile(0.5, (timestamp({chosen}{now}) - timestamp({chosen} offset {before_s + span_s}s)) / {steps})"


def newest_query(metric: str, selector: str) -> str:
    """The time of the newest sample."""
    return f"max(timestamp({_chosen(metric, selector)}))"


def copies_query(metric: str, selector: str, label: str) -> str:
    """How many samples each copy holds, when the same series are there more than once but for `label`."""
    chosen = _chosen(metric, ",".join(part for part in (f'{label}!=""', selector) if part))
    twice = f"(max(count without ({label}) ({chosen})) > 1)"
    # Ray calls its own workers `replica`; only a Prometheus's copies carry the label on `up` as well.
    also = f' and on () (max(count without ({label}) (up{{{label}!=""}})) > 1)' if label == "replica" else ""
    return f"sum by ({label}) (count_over_time({chosen}[5m])) and on () {twice}{also}"


def names_query(names: Iterable[str], selector: str) -> str:
    """Which of the names are there, for a Prometheus that has too many to list."""
    pattern = f'__name__=~"{"|".join(sorted(set(names)))}"'
    return f"count by (__name__) (last_over_time({{{pattern}{',' + selector if selector else ''}}}[10m]))"


def _chosen(metric: str, selector: str) -> str:
    return f"{metric}{{{selector}}}" if selector else metric
