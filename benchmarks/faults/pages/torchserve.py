"""TorchServe's page in `metrics_mode=prometheus`: names and labels as recorded (0.12.0)."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.pages.scene import Scene, pod_name
from benchmarks.faults.pages.tally import Tally
from benchmarks.faults.pages.target import Target
from benchmarks.faults.simulator.device import TOTAL_MB
from benchmarks.faults.simulator.log import Floats

MODEL = "classifier"
GAUGES_EVERY_S = 60.0
"""The system gauges are collected once a minute."""


def write(scene: Scene) -> None:
    """Add every replica's page."""
    for replica in range(len(scene.plant.replicas)):
        target = scene.server(replica)
        host = pod_name(scene, replica)
        _requests(scene, target, replica, host)
        _last_job(scene, target, replica, host)
        _system(scene, target, replica, host)


def _requests(scene: Scene, target: Target, replica: int, host: str) -> None:
    labels = {"model_name": MODEL, "model_version": "default", "hostname": host}
    received = scene.rows(scene.plant.log.received, replica)["time"]
    served = scene.rows(scene.plant.log.served, replica)
    failed = scene.rows(scene.plant.log.failed, replica)
    target.count("ts_inference_requests_total", Tally(received), **labels)
    for name, column in (("inference", "total_ms"), ("queue", "queue_ms")):
        total = Tally(served["time"], 1000 * served[column])
        target.counter(f"ts_{name}_latency_microseconds", total, **labels)
    groups = {
        # The scrapes themselves are answered with 200 too.
        "2XX": np.concatenate((served["time"], target.times)),
        "4XX": failed["time"][failed["reason"] == 5],
        "5XX": failed["time"][failed["reason"] != 5],
    }
    for status, times in groups.items():
        target.count(f"Requests{status}", Tally(times), Level="Host", Hostname=host)


def _last_job(scene: Scene, target: Target, replica: int, host: str) -> None:
    """Gauges that hold the last job only."""
    served = scene.rows(scene.plant.log.served, replica)
    order = np.argsort(served["time"])
    index = np.clip(np.searchsorted(served["time"][order], target.times) - 1, 0, None)
    last_queue_ms, last_ms = (served[name][order][index] for name in ("queue_ms", "infer_ms"))
    target.gauge("QueueTime", np.round(last_queue_ms), Level="Host", Hostname=host)
    model = {"ModelName": MODEL, "Level": "Model", "Hostname": host}
    target.gauge("HandlerTime", np.round(last_ms * 0.98, 2), **model)
    target.gauge("PredictionTime", np.round(last_ms, 2), **model)
    load_ms = np.round(1000 * scene.samples(f"{replica}.load_seconds").at(target.times))
    target.gauge("WorkerLoadTime", load_ms, WorkerName=f"W-9000-{MODEL}_1.0", Level="Host", Hostname=host)


def _system(scene: Scene, target: Target, replica: int, host: str) -> None:
    moments = np.floor(target.times / GAUGES_EVERY_S) * GAUGES_EVERY_S

    def now(name: str) -> Floats:
        return scene.samples(f"{replica}.{name}").at(moments)

    target.gauge("CPUUtilization", np.round(100 * now("host_busy"), 1), Level="Host", Hostname=host)
    gpu = {"Level": "Host", "DeviceId": str(replica), "Hostname": host}
    target.gauge("GPUUtilization", np.round(100 * now("engine")), **gpu)
    target.gauge("GPUMemoryUsed", np.round(now("used_mb")), **gpu)
    target.gauge("GPUMemoryUtilization", np.round(100 * now("used_mb") / TOTAL_MB, 2), **gpu)
