"""Triton's page with its default flags: names, labels and reporters as recorded and as its source has them."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.pages.scene import Scene, gpu_uuid
from benchmarks.faults.pages.tally import Tally
from benchmarks.faults.pages.target import Target
from benchmarks.faults.simulator.device import TOTAL_MB
from benchmarks.faults.simulator.log import Floats

MODEL = "encoder"
PIPELINE, STEP = "pipeline", "preprocess"
MIB = 1024.0**2
REASONS = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
HIT, MISS = 1, 2
PARTS = {"queue": "queue_ms", "compute_input": "input_ms", "compute_infer": "infer_ms", "compute_output": "output_ms"}


def write(scene: Scene) -> None:
    """Add every replica's page."""
    for replica in range(len(scene.plant.replicas)):
        target = scene.server(replica)
        _model(scene, target, replica)
        if scene.plant.knobs.cache:
            _model_cache(scene, target, replica)
        if scene.plant.knobs.cache == 1:
            _local_cache(scene, target)
        if scene.plant.knobs.pipeline:
            _pipeline(scene, target, replica)
        _server(scene, target, replica)


def _count(target: Target, name: str, times: Floats, **labels: str) -> None:
    target.count(name, Tally(times), **labels)


def _micros(target: Target, name: str, times: Floats, each_ms: Floats, **labels: str) -> None:
    target.count(name, Tally(times, np.floor(1000 * each_ms)), **labels)


def _model(scene: Scene, target: Target, replica: int) -> None:
    """One reporter without gpu_uuid (hits, failures) and one for the GPU (executions)."""
    served = scene.rows(scene.plant.log.served, replica)
    hits = served["cached"] == HIT
    plain = {"model": MODEL, "version": "1"}
    for labels, mine in ((plain, hits), ({**plain, "gpu_uuid": gpu_uuid(scene, replica)}, ~hits)):
        times = served["time"][mine]
        _count(target, "nv_inference_request_success", times, **labels)
        _micros(target, "nv_inference_request_duration_us", times, served["server_ms"][mine], **labels)
        for part, column in PARTS.items():
            _micros(target, f"nv_inference_{part}_duration_us", times, served[column][mine], **labels)
        executed = scene.rows(scene.plant.log.executions, replica)
        ours = executed["time"] if "gpu_uuid" in labels else executed["time"][:0]
        _count(target, "nv_inference_exec_count", ours, **labels)
        items = Tally(ours, executed["items"][: len(ours)])
        target.count("nv_inference_count", items, **labels)
    failed = scene.rows(scene.plant.log.failed, replica)
    for code, reason in enumerate(REASONS):
        times = failed["time"][failed["reason"] == code]
        _count(target, "nv_inference_request_failure", times, **plain, reason=reason)
    pending = scene.samples(f"{replica}.pending").at(target.times)
    target.gauge("nv_inference_pending_request_count", pending, **plain)
    target.gauge("nv_model_load_duration_secs", scene.samples(f"{replica}.load_seconds").at(target.times), **plain)


def _model_cache(scene: Scene, target: Target, replica: int) -> None:
    served = scene.rows(scene.plant.log.served, replica)
    labels = {"model": MODEL, "version": "1"}
    for kind, plural, code in (("hit", "hits", HIT), ("miss", "misses", MISS)):
        mine = served["cached"] == code
        _count(target, f"nv_cache_num_{plural}_per_model", served["time"][mine], **labels)
        each_ms = served["cache_ms"][mine]
        _micros(target, f"nv_cache_{kind}_duration_per_model", served["time"][mine], each_ms, **labels)


def _local_cache(scene: Scene, target: Target) -> None:
    """Of the server, not of a model. Only the first replica's store is sampled; the others' are like it."""
    moments = target.times
    target.gauge("nv_cache_util", scene.samples("cache_used_ratio").at(moments))
    for name in ("entries", "hits", "misses", "evictions"):
        target.gauge(f"nv_cache_num_{name}", scene.samples(f"cache_{name}").at(moments))


def _pipeline(scene: Scene, target: Target, replica: int) -> None:
    """The CPU step and the ensemble around both, whose executions are its requests and whose queue is nothing."""
    prepared = scene.rows(scene.plant.log.prepared, replica)
    served = scene.rows(scene.plant.log.served, replica)
    step, whole = {"model": STEP, "version": "1"}, {"model": PIPELINE, "version": "1"}
    for labels, times in ((step, prepared["time"]), (whole, served["time"])):
        for name in ("request_success", "count", "exec_count"):
            _count(target, f"nv_inference_{name}", times, **labels)
        for reason in REASONS:
            _count(target, "nv_inference_request_failure", times[:0], **labels, reason=reason)
    zeros = np.zeros(len(prepared["time"]))
    took_ms = {"request": prepared["queue_ms"] + prepared["infer_ms"] + 0.2, "queue": prepared["queue_ms"] + 0.03}
    took_ms |= {"compute_input": zeros + 0.05, "compute_infer": prepared["infer_ms"], "compute_output": zeros + 0.05}
    for part, each_ms in took_ms.items():
        _micros(target, f"nv_inference_{part}_duration_us", prepared["time"], each_ms, **step)
    target.gauge("nv_inference_pending_request_count", scene.samples(f"{replica}.preparing").at(target.times), **step)
    idle = np.zeros(len(served["time"]))
    sums = {"request": served["total_ms"], "queue": idle + 0.002}
    sums |= {part: idle + (served[column] if column != "queue_ms" else 0) for part, column in PARTS.items()}
    sums["queue"] = idle + 0.002
    for part, each_ms in sums.items():
        _micros(target, f"nv_inference_{part}_duration_us", served["time"], each_ms, **whole)


def _server(scene: Scene, target: Target, replica: int) -> None:
    def now(name: str) -> Floats:
        return scene.samples(f"{replica}.{name}").at(target.times)

    gpu = {"gpu_uuid": gpu_uuid(scene, replica)}
    # A lost GPU's gauges are set to 0 and not read again.
    there = 1 - now("lost")
    target.gauge("nv_gpu_utilization", np.round(now("engine"), 2) * there, **gpu)
    target.gauge("nv_gpu_memory_total_bytes", TOTAL_MB * MIB * there, **gpu)
    target.gauge("nv_gpu_memory_used_bytes", np.round(now("used_mb")) * MIB * there, **gpu)
    target.gauge("nv_gpu_power_usage", np.round(now("power_w"), 3) * there, **gpu)
    target.gauge("nv_gpu_power_limit", now("power_limit_w") * there, **gpu)
    target.gauge("nv_cpu_utilization", now("host_busy"))
    pool = scene.plant.knobs.pinned_pool_mb * MIB
    target.gauge("nv_pinned_memory_pool_total_bytes", pool)
    target.gauge("nv_pinned_memory_pool_used_bytes", np.round(now("pinned") * pool))
