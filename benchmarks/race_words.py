"""What the words of the other tools mean in the fault matrix's own terms. Published, and generous on purpose.

Neither tool has a word for most causes of the matrix, so a word of theirs is right for every cause that is named by the
finding's own title, summary, list of likely causes or recommendation at the pinned version, as if it had named that
one alone. What only says that something is slow, without a word for why, is right for nothing but slowness itself.
The program under test gets no such help: its answer is right when it is the case's cause by name.
"""

from __future__ import annotations

from collections.abc import Mapping

OURS, VLLM_DOCTOR, INFERPILOT = "latencydoctor", "vllm-doctor", "inferpilot"

LOAD = ("saturation", "autoscaler-at-limit", "pods-unschedulable")
LONG_CONTEXT = ("longer-prompts", "prefill-interference", "longer-outputs")
LIMITS = ("concurrency-cap", "requests-deferred")

VLLM_DOCTOR_WORDS: Mapping[str, tuple[str, ...]] = {
    # "Insufficient replica capacity", "Autoscaling has not reacted yet", "Long-context requests consuming
    # disproportionate compute"; "increase concurrency limits".
    "queue_pressure": (*LOAD, *LONG_CONTEXT, *LIMITS),
    # As above, and "KV cache exhaustion limiting sequence admission".
    "queue_latency": (*LOAD, *LONG_CONTEXT, *LIMITS, "kv-preemption"),
    # "Long-context requests holding large KV cache allocations", "Sudden spike in concurrent requests".
    "kv_cache_pressure": ("kv-preemption", *LONG_CONTEXT, "saturation"),
    # "KV cache too small", "Long-context requests exhausting cache".
    "preemption_pressure": ("kv-preemption", *LONG_CONTEXT),
    # "Server is idle", "Poor batching", "Suboptimal max_num_seqs".
    "low_throughput": ("idle-clock-ramp", "batching-failed", "concurrency-cap"),
    # "Server is returning errors or clients are aborting"; "Server-side OOM", "client timeout settings".
    "error_rate": ("server-errors", "client-timeouts", "host-oom-kills"),
    # "Long input prompts", "Chunked prefill not enabled", "Insufficient capacity for current prompt load".
    "ttft_bottleneck": ("longer-prompts", "prefill-interference", "saturation"),
    # "Each output token is taking too long"; "Large model size", "Too many concurrent sequences".
    "tpot_bottleneck": ("execution-slower", "compute-bound", "saturation"),
    "prefix_cache_efficiency": ("prefix-cache-collapse",),
    # "Load balancer not distributing evenly", "A replica is not Ready or recently restarted"; "Compare per-replica
    # latency and restart any unhealthy replica".
    "replica_imbalance": ("replica-imbalance", "readiness-flapping", "restart-in-progress", "slow-replica"),
}

INFERPILOT_WORDS: Mapping[str, tuple[str, ...]] = {
    # "The KV cache is full and the scheduler is preempting."
    "kv_capacity_bound_preempting": ("kv-preemption",),
    # "KV is full but not preempting yet."
    "near_capacity": ("kv-preemption", "saturation"),
    # "Requests are queuing while the KV cache has headroom"; "look at scaling or compute-side levers".
    "not_kv_bound": ("saturation", "compute-bound", "instance-bound", "execution-slower"),
}

INFERPILOT_NOTHING = frozenset({"healthy_or_underutilized", "need_second_snapshot", "insufficient_metrics"})
"""Its verdicts that find nothing, or say that more would have to be read."""

MEANT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    VLLM_DOCTOR: VLLM_DOCTOR_WORDS,
    INFERPILOT: INFERPILOT_WORDS,
}


def meant(tool: str, word: str) -> frozenset[str]:
    """The causes of the matrix that a tool's word is right for."""
    return frozenset({word}) if tool == OURS else frozenset(MEANT[tool].get(word, ()))


def has_a_word(tool: str, causes: frozenset[str]) -> bool:
    """Whether a tool could name one of these causes at all."""
    return tool == OURS or any(causes.intersection(named) for named in MEANT[tool].values())
