"""vLLM's page: names, labels and buckets as recorded (0.32), counters of its API server included."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.pages.scene import Scene
from benchmarks.faults.pages.tally import Spread, Tally
from benchmarks.faults.pages.target import Target
from benchmarks.faults.simulator.log import Floats

MODEL = "chat-8b"


def _bounds(text: str) -> tuple[float, ...]:
    return tuple(float(bound) for bound in text.split())


TTFT_S = _bounds("0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 2560")
ITL_S = _bounds("0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80")
REQUEST_S = _bounds("0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680")
STEP_TOKENS = _bounds("1 8 16 32 64 128 256 512 1024 2048 4096 8192 16384")
# Bounds follow the longest context: 1, 2, 5, 10 ... up to 16384.
LENGTHS = _bounds("1 2 5 10 20 50 100 200 500 1000 2000 5000 10000")
REASONS = ("stop", "length", "abort", "error")
ABORT, ERROR = 2, 3


def write(scene: Scene) -> None:
    """Add every replica's page."""
    for replica in range(len(scene.plant.replicas)):
        target = scene.server(replica)
        labels = {"engine": "0", "model_name": MODEL}
        _gauges(scene, target, replica, labels)
        _requests(scene, target, replica, labels)
        _steps(scene, target, replica, labels)
        _http(scene, target, replica)


def _gauges(scene: Scene, target: Target, replica: int, labels: dict[str, str]) -> None:
    def now(name: str) -> Floats:
        return scene.samples(f"{replica}.{name}").at(target.times)

    target.gauge("vllm:num_requests_running", now("running"), **labels)
    target.gauge("vllm:num_requests_waiting", now("waiting"), **labels)
    reasons = {"capacity": now("waiting") - now("deferred"), "deferred": now("deferred")}
    for reason, values in reasons.items():
        target.gauge("vllm:num_requests_waiting_by_reason", values, **labels, reason=reason)
    target.gauge("vllm:kv_cache_usage_perc", now("kv"), **labels)
    knobs = scene.plant.timeline.replicas[replica]
    blocks = int(knobs.llm_kv_tokens // 16)
    caching = str(bool(knobs.llm_prefix_cache))
    info = {"block_size": "16", "num_gpu_blocks": str(blocks), "enable_prefix_caching": caching}
    target.gauge("vllm:cache_config_info", 1.0, engine="0", gpu_memory_utilization="0.92", **info)


def _requests(scene: Scene, target: Target, replica: int, labels: dict[str, str]) -> None:
    done = scene.rows(scene.plant.log.generated, replica)
    times = done["time"]
    first = scene.rows(scene.plant.log.first_tokens, replica)
    histograms = {
        "time_to_first_token_seconds": Spread(first["time"], first["ttft_s"], TTFT_S),
        "e2e_request_latency_seconds": Spread(times, done["e2e_s"], REQUEST_S),
        "request_queue_time_seconds": Spread(times, done["queue_s"], REQUEST_S),
        "request_prefill_time_seconds": Spread(times, done["prefill_s"], REQUEST_S),
        "request_decode_time_seconds": Spread(times, done["decode_s"], REQUEST_S),
        "request_time_per_output_token_seconds": Spread(
            times, done["decode_s"] / np.maximum(done["output"] - 1, 1), ITL_S
        ),
        "request_inference_time_seconds": Spread(times, done["prefill_s"] + done["decode_s"], REQUEST_S),
        "request_prompt_tokens": Spread(times, done["prompt"], LENGTHS),
        "request_generation_tokens": Spread(times, done["output"], LENGTHS),
    }
    for name, spread in histograms.items():
        target.histogram(f"vllm:{name}", spread, **labels)
    totals = {"prompt_tokens": done["prompt"], "prefix_cache_queries": done["prompt"]}
    totals["prefix_cache_hits"] = done["hit_tokens"]
    for name, weights in totals.items():
        target.count(f"vllm:{name}_total", Tally(times, weights), **labels)
    for code, reason in enumerate(REASONS):
        mine = Tally(times[done["reason"] == code])
        target.count("vllm:request_success_total", mine, **labels, finished_reason=reason)
    preempted = scene.rows(scene.plant.log.preemptions, replica)["time"]
    target.count("vllm:num_preemptions_total", Tally(preempted), **labels)


def _steps(scene: Scene, target: Target, replica: int, labels: dict[str, str]) -> None:
    steps = scene.rows(scene.plant.log.steps, replica)
    decoding = steps["sequences"] > 0
    made = steps["sequences"] * steps["count"]
    gaps = Spread(steps["time"][decoding], steps["step_s"][decoding], ITL_S, made[decoding])
    target.histogram("vllm:inter_token_latency_seconds", gaps, **labels)
    sizes = Spread(steps["time"], steps["tokens"], STEP_TOKENS, steps["count"])
    target.histogram("vllm:iteration_tokens_total", sizes, **labels)
    first = scene.rows(scene.plant.log.first_tokens, replica)["time"]
    tokens = Tally(np.concatenate((steps["time"], first)), np.concatenate((made, np.ones(len(first)))))
    target.count("vllm:generation_tokens_total", tokens, **labels)


def _http(scene: Scene, target: Target, replica: int) -> None:
    done = scene.rows(scene.plant.log.generated, replica)
    failed = scene.rows(scene.plant.log.failed, replica)
    fine = done["time"][(done["reason"] != ERROR) & (done["reason"] != ABORT)]
    groups = {"2xx": fine, "4xx": failed["time"][failed["reason"] == 5], "5xx": failed["time"][failed["reason"] == 2]}
    for status, times in groups.items():
        labels = {"handler": "/v1/completions", "method": "POST", "status": status}
        target.count("http_requests_total", Tally(times), **labels)
