"""The physical quantities that a case can set, with their units and what they act on.

A value is a number; switches are 0 or 1. `DEFAULTS` holds what differs between the engines, so that each is a plausible
healthy service: about half loaded, p99 well below one second.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

Engine = Literal["triton", "vllm", "torchserve"]
ENGINES: tuple[Engine, ...] = ("triton", "vllm", "torchserve")


def _knob(default: float, unit: str, acts_on: str) -> float:
    """A field with its unit and what it acts on, which the README's table repeats."""
    made: float = field(default=default, metadata={"unit": unit, "acts_on": acts_on})
    return made


@dataclass(slots=True)
class Knobs:
    """The values in force at one moment for one replica."""

    # ---- traffic -----------------------------------------------------------------------------------------------
    load_rps: float = _knob(9, "requests/s", "requests that clients send, all replicas together (Poisson)")
    load_diurnal_ratio: float = _knob(0.1, "ratio", "slow swing of the rate around its mean")
    load_burst_size: float = _knob(1, "requests", "mean requests that arrive together; 1 is Poisson")
    load_max_open: float = _knob(160, "requests", "requests the clients hold open at most; more are not sent")
    load_unique_share: float = _knob(0.4, "ratio", "share of requests whose input nobody sends twice")
    load_key_count: float = _knob(2000, "keys", "different inputs among the others, the popular ones more often")
    load_hot_share: float = _knob(0, "ratio", "share of requests that ask for the one hot input")
    load_hot_rotation_s: float = _knob(600, "s", "how long an input stays the hot one")
    load_input_scale: float = _knob(1, "times", "size of an input: computing and copies per item grow with it")
    load_shape_kinds: float = _knob(1, "shapes", "different input shapes; a batch holds one shape (triton)")
    load_invalid_ratio: float = _knob(0, "ratio", "requests that the server refuses as wrong (4xx)")
    load_cancel_after_s: float = _knob(0, "s", "clients cancel a request after so long; 0: never")
    load_prompt_tokens: float = _knob(300, "tokens", "mean prompt (vllm)")
    load_output_tokens: float = _knob(40, "tokens", "mean answer (vllm)")
    load_long_prompt_share: float = _knob(0, "ratio", "share of prompts that are long (vllm)")
    load_long_prompt_tokens: float = _knob(8000, "tokens", "length of those")
    load_shared_prefix_share: float = _knob(0.6, "ratio", "share of a prompt that is a prefix others have too (vllm)")
    load_adapters: float = _knob(1, "adapters", "different LoRA adapters that are asked for (vllm)")
    # ---- in front of the server --------------------------------------------------------------------------------
    front_imbalance: float = _knob(0, "ratio", "share of the traffic that is pinned to replica 0 beside an even split")
    front_retries: float = _knob(0, "retries", "times the proxy sends a request again after front_try_timeout_s")
    front_try_timeout_s: float = _knob(0, "s", "how long the proxy waits for one try; 0: for ever")
    front_timeout_s: float = _knob(30, "s", "how long the proxy waits in all before it answers 504")
    front_max_requests: float = _knob(0, "requests", "the proxy's circuit breaker: more open ones get 503; 0: none")
    front_cpu_ms: float = _knob(1, "ms", "the proxy's own work on a request")
    connect_ms: float = _knob(0.5, "ms", "setting up a connection from the proxy to the server")
    connect_reuse_ratio: float = _knob(0.9, "ratio", "share of requests on a connection that is open already")
    network_ms: float = _knob(0.4, "ms", "network time to the server and back")
    network_loss_ratio: float = _knob(0, "ratio", "requests with a lost packet, which is sent again 200 ms later")
    network_client_ms: float = _knob(0, "ms", "network time between client and proxy, which only the client waits for")
    dns_ms: float = _knob(1, "ms", "a DNS answer; asked for every new connection")
    dns_fail_ratio: float = _knob(0, "ratio", "DNS answers that are SERVFAIL; the proxy asks again after one second")
    # ---- the server process ------------------------------------------------------------------------------------
    cpu_request_ms: float = _knob(60, "core-ms", "CPU work on a request before it is queued (HTTP, decoding)")
    cpu_threads: float = _knob(8, "threads", "threads that share this work")
    cpu_quota_cores: float = _knob(6, "cores", "CPU limit of the container (CFS quota)")
    cpu_other_share: float = _knob(0.25, "ratio", "share of the host's 32 cores that other programs use")
    http_threads: float = _knob(8, "threads", "front-end threads, which a model load can block (triton)")
    instances: float = _knob(1, "instances", "model instances on the GPU, or TorchServe workers")
    batching: float = _knob(1, "switch", "whether requests are batched")
    max_batch: float = _knob(8, "items", "largest batch")
    preferred_batch: float = _knob(0, "items", "preferred batch size, 0 for none (triton)")
    queue_delay_ms: float = _knob(0, "ms", "longest wait for a fuller batch")
    queue_timeout_ms: float = _knob(0, "ms", "queue policy: requests that waited longer are rejected; 0: none")
    queue_size: float = _knob(0, "requests", "queue policy: more are turned away at once; 0: no limit")
    server_fault_ratio: float = _knob(0, "ratio", "executions that the model ends with an error")
    server_overhead_ms: float = _knob(0.3, "ms", "core time outside queue, copies and computing")
    server_stall_ms: float = _knob(0, "ms", "more of it: a lock, tracing, a slow logger")
    # ---- a pipeline's CPU step (triton ensemble) ---------------------------------------------------------------
    pipeline: float = _knob(0, "switch", "whether a CPU model prepares the input: an ensemble (triton)")
    pre_ms: float = _knob(20, "ms", "its time for a request")
    pre_instances: float = _knob(2, "instances", "its instances")
    # ---- one execution -----------------------------------------------------------------------------------------
    exec_host_ms: float = _knob(6, "ms", "launching on the host; the GPU idles then")
    exec_fixed_ms: float = _knob(130, "ms", "GPU time of an execution whatever the batch, at full clock")
    exec_item_ms: float = _knob(33, "ms", "GPU time for each item, at full clock")
    exec_full_batch: float = _knob(8, "items", "batch that fills the GPU's SMs")
    exec_noise_ratio: float = _knob(0.04, "ratio", "random spread of an execution's time")
    copy_item_ms: float = _knob(0.4, "ms", "copying an item to the GPU, with pinned memory and a good link")
    copy_item_mb: float = _knob(2, "MB", "pinned memory an item needs while it is in the server")
    pinned_pool_mb: float = _knob(
        1024, "MB", "pinned memory pool; beyond it copies go through pageable memory, 8x slower"
    )
    shape_switch_ms: float = _knob(0, "ms", "time lost when the batch size differs from the last (engine profiles)")
    # ---- response cache (triton) -------------------------------------------------------------------------------
    cache: float = _knob(0, "kind", "0 none, 1 the server's local cache, 2 Redis")
    cache_entries: float = _knob(1e6, "entries", "room for so many answers")
    cache_evicts: float = _knob(1, "switch", "when full: 1 pushes out the least used, 0 refuses new ones")
    cache_command_ms: float = _knob(0.2, "ms", "the cache server's work on a command, one at a time")
    cache_network_ms: float = _knob(0.5, "ms", "network time to the cache server and back")
    cache_pool: float = _knob(4, "connections", "connections of a replica to the cache server")
    cache_down: float = _knob(0, "switch", "1: the cache server is gone, lookups fail at once")
    cache_flush_every_s: float = _knob(0, "s", "all entries are lost again and again; 0: never")
    cache_restarts: float = _knob(0, "switch", "whether a flush is a restart of the cache server (uptime starts anew)")
    cache_fork_ms: float = _knob(0, "ms", "the cache server stands still so long once in 2 s (fork, AOF, slow command)")
    # ---- life of the process -----------------------------------------------------------------------------------
    load_model_every_s: float = _knob(0, "s", "a model is loaded again and again; 0: never")
    load_model_s: float = _knob(20, "s", "how long a load takes")
    load_model_slowdown: float = _knob(2, "times", "executions are slower so much during a load")
    load_model_blocks: float = _knob(0, "threads", "front-end threads that a load blocks")
    restart_every_s: float = _knob(0, "s", "the process is restarted again and again; 0: never")
    restart_down_s: float = _knob(25, "s", "until it is ready again")
    cold_executions: float = _knob(60, "executions", "executions until it is warm after a start")
    cold_slowdown: float = _knob(3, "times", "how much slower the first execution is")
    memory_used_mb: float = _knob(9000, "MB", "host memory of the container")
    memory_limit_mb: float = _knob(16000, "MB", "its limit: beyond it the kernel kills the process")
    memory_leak_mb_s: float = _knob(0, "MB/s", "growth; a restart gives it back")
    unready_every_s: float = _knob(0, "s", "the readiness probe fails again and again; 0: never")
    unready_for_s: float = _knob(20, "s", "for so long each time; the other replicas get the traffic")
    hpa_max: float = _knob(6, "replicas", "the autoscaler's upper limit")
    hpa_desired: float = _knob(0, "replicas", "what the autoscaler asks for; 0: as many as there are")
    unschedulable: float = _knob(0, "pods", "pods that find no node")
    # ---- the GPU -----------------------------------------------------------------------------------------------
    gpu_clock_lock: float = _knob(1, "ratio", "application clock as a share of the maximum")
    gpu_power_limit_w: float = _knob(600, "W", "power limit: the clock falls until it is kept")
    gpu_cooling: float = _knob(1, "ratio", "how well heat is carried off; the clock falls above 87 C")
    gpu_brake: float = _knob(0, "switch", "external power brake: clocks at 35 %")
    gpu_idle_drop: float = _knob(0, "switch", "whether an idle GPU falls to its lowest clock (no persistence)")
    gpu_ramp_ms: float = _knob(450, "ms", "how long it takes from there to full clock")
    gpu_link_ratio: float = _knob(1, "ratio", "PCIe speed as a share of the usual")
    gpu_replays_s: float = _knob(0, "1/s", "PCIe replays; each costs time in copies")
    gpu_ecc_per_min: float = _knob(0, "1/min", "uncorrectable memory errors: each fails a batch and stalls the GPU")
    gpu_xid: float = _knob(0, "code", "last XID the driver logged, 0 for none")
    gpu_xid_fail_ratio: float = _knob(0, "ratio", "executions that fail or hang since then")
    gpu_lost: float = _knob(0, "switch", "1: the GPU fell off the bus; executions fail, its exporter is down")
    gpu_neighbour: float = _knob(0, "ratio", "share of the GPU that another process takes")
    gpu_neighbour_mb: float = _knob(0, "MiB", "device memory of that process")
    gpu_spin: float = _knob(0, "switch", "a resident kernel keeps GPU_UTIL at 100 without work")
    gpu_memory_mb: float = _knob(30000, "MiB", "device memory in use, of 81000")
    gpu_leak_mb_s: float = _knob(0, "MiB/s", "growth of it; beyond 80000 allocations fail and are tried again")
    # ---- continuous batching (vllm) ----------------------------------------------------------------------------
    llm_max_seqs: float = _knob(32, "requests", "requests that may run at once")
    llm_kv_tokens: float = _knob(8000, "tokens", "room of the KV cache")
    llm_step_tokens: float = _knob(2048, "tokens", "prompt tokens worked on in one step at most")
    llm_step_ms: float = _knob(11, "ms", "GPU time of a step whatever is in it, at full clock")
    llm_host_ms: float = _knob(1, "ms", "host time of a step")
    llm_seq_ms: float = _knob(1.5, "ms", "GPU time of a step for each running request")
    llm_prefill_ms: float = _knob(0.3, "ms", "GPU time for a prompt token")
    llm_prefix_cache: float = _knob(1, "switch", "whether shared prefixes are found again")
    llm_api_request_ms: float = _knob(4, "ms", "API process (one thread): work on a request")
    llm_api_token_ms: float = _knob(0.05, "ms", "API process: work on a generated token")
    llm_lora_slots: float = _knob(8, "adapters", "adapters that may run at once")


KNOBS = {knob.name: knob for knob in fields(Knobs)}

DEFAULTS: dict[Engine, dict[str, float]] = {
    "triton": {},
    "torchserve": {"queue_delay_ms": 20, "queue_size": 100, "max_batch": 8},
    "vllm": {"load_rps": 4, "cpu_request_ms": 40, "load_output_tokens": 20},
}
