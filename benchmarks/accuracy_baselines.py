"""Two simple ways to name a cause, to show what the matrix is worth: where they do well, it is too easy."""

from __future__ import annotations

import math

from latencydoctor.model.evidence import INCIDENT_SIGNALS, Evidence, Measure

LITERAL_BUSY_RATIO = 0.85
LITERAL_BATCH = 1.5
LITERAL_HIT_RATIO = 0.30

# The cause that a reader would name who sees nothing but that this signal moved most.
_CAUSE_OF = {
    "accelerator_busy_ratio": "saturation",
    "sm_activity_ratio": "saturation",
    "accelerator_clock_ratio": "accelerator-throttled",
    "accelerator_throttled_ratio": "thermal-throttling",
    "accelerator_power_capped_ratio": "power-capping",
    "accelerator_hw_slowdown_ratio": "hardware-slowdown",
    "accelerator_idle_clock_ratio": "idle-clock-ramp",
    "accelerator_pcie_replay_eps": "pcie-degraded",
    "accelerator_ecc_errors": "accelerator-ecc",
    "accelerator_new_xid": "accelerator-xid",
    "accelerator_xid_code": "accelerator-xid",
    "accelerator_memory_used_bytes": "memory-ratchet",
    "aborted_ratio": "client-timeouts",
    "batch_size_mean": "batching-failed",
    "requests_per_execution": "batching-failed",
    "execution_rate_eps": "batching-failed",
    "cache_hit_ratio": "cache-ineffective",
    "cache_time_ms": "slow-cache",
    "cache_command_time_ms": "slow-cache",
    "cache_eviction_rate_eps": "cache-evicting",
    "cache_entry_count": "cache-flushed",
    "cache_uptime_s": "cache-flushed",
    "cache_error_rate_eps": "cache-inserts-failing",
    "cache_insert_error_rate_eps": "cache-inserts-failing",
    "cache_duplicate_ratio": "cache-stampede",
    "cache_duplicate_write_ratio": "cache-stampede",
    "cache_new_key_ratio": "inputs-unique",
    "compute_time_ms": "execution-slower",
    "compute_time_p99_ms": "execution-slower",
    "compute_input_time_ms": "copy-bound",
    "compute_output_time_ms": "copy-bound",
    "connect_time_ms": "connect-slow",
    "container_oom_kills": "host-oom-kills",
    "container_restarts": "restart-in-progress",
    "cpu_throttled_ratio": "cpu-throttled",
    "dns_time_p99_ms": "dns-slow",
    "dns_failure_ratio": "dns-slow",
    "front_end_time_ms": "front-end-bound",
    "generation_tokens_mean": "longer-outputs",
    "host_cpu_busy_ratio": "host-cpu-saturated",
    "hot_step_share_ratio": "hot-ensemble-step",
    "instance_busy_ratio": "instance-bound",
    "inter_token_latency_mean_ms": "execution-slower",
    "inter_token_latency_p99_ms": "prefill-interference",
    "kv_cache_usage_ratio": "kv-preemption",
    "model_load_time_ms": "model-load-in-progress",
    "model_loads": "model-load-in-progress",
    "network_time_ms": "network-or-front-end",
    "outside_cuda_graph_ratio": "outside-cuda-graph",
    "pinned_memory_used_ratio": "pinned-memory-exhausted",
    "preemption_rate_eps": "kv-preemption",
    "prefix_cache_hit_ratio": "prefix-cache-collapse",
    "preprocess_time_ms": "slow-preprocessing",
    "preprocess_share_ratio": "slow-preprocessing",
    "process_resets": "restart-in-progress",
    "prompt_tokens_mean": "longer-prompts",
    "prefill_time_ms": "longer-prompts",
    "queue_depth": "saturation",
    "queue_time_ms": "saturation",
    "queue_time_p99_ms": "saturation",
    "readiness_changes": "readiness-flapping",
    "replica_count": "restart-in-progress",
    "replica_imbalance_ratio": "replica-imbalance",
    "request_rate_rps": "saturation",
    "requests_waiting": "saturation",
    "requests_running": "saturation",
    "concurrency": "saturation",
    "requests_deferred": "requests-deferred",
    "retry_ratio": "retry-storm",
    "settings_generation": "recent-change",
    "slowest_replica_ratio": "slow-replica",
    "upstream_overflow_eps": "circuit-breaker",
    "upstream_time_ms": "execution-slower",
}


def literal_tree(evidence: Evidence) -> str:
    """The four questions, asked of one number each and in their order."""
    if _above(evidence, "accelerator_busy_ratio", LITERAL_BUSY_RATIO):
        return "saturation"
    if _below(evidence, "batch_size_mean", LITERAL_BATCH):
        return "batching-failed"
    return "cache-ineffective" if _below(evidence, "cache_hit_ratio", LITERAL_HIT_RATIO) else "compute-bound"


def _above(evidence: Evidence, signal: str, bound: float) -> bool:
    seen = evidence.find(signal)
    return isinstance(seen, Measure) and seen.value > bound


def _below(evidence: Evidence, signal: str, bound: float) -> bool:
    seen = evidence.find(signal)
    return isinstance(seen, Measure) and seen.value < bound


def largest_change(evidence: Evidence) -> str | None:
    """The cause that the signal which changed most stands for, up or down; a rise from zero is the largest change."""
    changes = {
        measure.signal: _change(measure.value, measure.baseline)
        for measure in evidence.measures
        if measure.baseline is not None and measure.signal in _CAUSE_OF and measure.signal not in INCIDENT_SIGNALS
    }
    if not changes:
        return None
    return _CAUSE_OF[max(changes, key=lambda signal: (changes[signal], signal))]


def _change(value: float, baseline: float) -> float:
    if value == baseline:
        return 0.0
    if value <= 0 or baseline <= 0:
        return math.inf
    return abs(math.log(value / baseline))
