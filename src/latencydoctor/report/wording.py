"""Signals and comparisons in the words of the field; one word for one thing on every screen."""

from __future__ import annotations

import re

from latencydoctor.model.diagnosis import Answer, Candidate, Finding, Forecasted
from latencydoctor.report.units import amount, told_apart

_NAMES = {
    "e2e_p99_ms": "p99 latency",
    "e2e_mean_ms": "mean latency",
    "e2e_p50_ms": "p50 latency",
    "e2e_p95_ms": "p95 latency",
    "low_load_p50_ms": "p50 latency at low load",
    "load_ratio": "load",
    "capacity_rps": "capacity",
    "queue_time_ms": "queue time",
    "queue_depth": "queue depth",
    "batch_size_mean": "mean batch size",
    "accelerator_busy_ratio": "accelerator busy",
    "accelerator_clock_ratio": "accelerator clock",
    "accelerator_throttled_ratio": "accelerator throttled",
    "accelerator_memory_used_bytes": "accelerator memory",
    "cache_hit_ratio": "cache hit ratio",
    "cache_lookup_rate_rps": "cache lookups",
    "config_max_batch_size": "maximum batch size",
    "config_preferred_batch_size": "preferred batch size",
    "config_queue_delay_ms": "batch queue delay",
    "config_dynamic_batching": "dynamic batching",
    "config_instance_count": "instances configured",
    "instance_busy_ratio": "instances busy",
    "config_queue_size": "queue size",
    "preprocess_share_ratio": "preprocessing share",
    "preprocess_time_ms": "preprocessing time",
    "network_time_ms": "time outside the server",
    "server_time_ms": "server time",
    "compute_time_ms": "compute time",
    "request_rate_rps": "request rate",
    "error_ratio": "error ratio",
    "vip_p99_ms": "VIP p99 latency",
    "vip_error_ratio": "VIP error ratio",
    "vip_share_ratio": "VIP share",
    "standard_p99_ms": "standard p99 latency",
    "shed_ratio": "share turned away",
    "arrival_rate_rps": "arrival rate",
    "process_resets": "server restarts",
    "settings_generation": "settings generation",
    "settings_error": "failed settings",
}
PARTS_OVERLAP = "some requests skip parts"
"""Why parts of the mean time can make up more than the whole: each is a mean of those that meet it."""

_UNIT = re.compile(r"_(ms|ratio|eps|rps|ips|bytes|s|c|w)$")
"""The value beside the name says its unit."""

_WORDS = {"above": ">", "below": "<", "at_least": "≥", "at_most": "≤"}
_REFUTED = {"above": "≤", "below": "≥", "at_least": "<", "at_most": ">"}


def name(signal: str) -> str:
    """The signal's name for people."""
    if signal.startswith("log:"):
        return f"log events {signal[4:]}"
    return _NAMES.get(signal, _UNIT.sub("", signal.removeprefix("config_")).replace("_", " "))


def compared(finding: Finding) -> str:
    """`412 ms > 50 ms`, told as it is true: a comparison answered no is shown with the opposite sign."""
    if finding.gap is not None:
        return f"not known: {finding.gap.reason.value}"
    value = amount(finding.value, finding.unit)
    if finding.comparison == "measured":
        return f"{value}: not that kind of server"
    if finding.threshold is None:
        return value
    signs = _REFUTED if finding.answer is Answer.NO else _WORDS
    sign = signs.get(finding.comparison, finding.comparison)
    if finding.value is None:
        return f"{value} {sign} {amount(finding.threshold, finding.unit)}"
    value, threshold = told_apart(finding.value, finding.threshold, finding.unit)
    return f"{value} {sign} {threshold}"


def before(finding: Finding) -> str:
    """The baseline's value, empty when there is none."""
    return amount(finding.baseline, finding.unit) if finding.baseline is not None else ""


def held_back(candidate: Candidate) -> str:
    """What keeps a candidate from being the cause: the number that speaks against it, or what was not seen."""
    if candidate.against:
        return f"but {'; '.join(f'{name(one.signal)} {compared(one)}' for one in candidate.against)}"
    return f"not seen: {', '.join(name(gap.signal) for gap in candidate.needs)}"


def undone(forecast: Forecasted) -> str:
    """Whether setting the cause back would be enough, by a simulated queue, or why it cannot say."""
    words = {Answer.YES: "enough", Answer.NO: "not enough", Answer.UNKNOWN: "not known whether enough"}
    return f"{words[forecast.answer]}: {forecast.reason} (simulated queue)"
