"""What exporters beside the server say: DCGM, kube-state-metrics, cAdvisor, CoreDNS, redis_exporter."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.pages.scene import CONTAINER, Scene, gpu_uuid, pod_name
from benchmarks.faults.pages.tally import Spread, Steps, Tally
from benchmarks.faults.pages.target import Target
from benchmarks.faults.simulator.cache import AGAIN, EVICTED, HIT, MISS, NEW, REFUSED, VALUE_MB
from benchmarks.faults.simulator.device import MAX_CLOCK_MHZ
from benchmarks.faults.simulator.log import Floats
from benchmarks.faults.simulator.sampling import SAMPLED_EVERY_S

NODE = "10.4.1.7"
COLLECTED_EVERY_S = 30.0
"""DCGM's default collection interval: what lies between is seen in its counters only."""

DNS_BOUNDS_S = tuple(0.00025 * 2**power for power in range(16))
XID_TEXTS = {0: "No Error", 13: "Graphics Engine Exception", 31: "GPU memory page fault", 43: "GPU stopped processing"}
XID_TEXTS |= {
    48: "Double Bit ECC Error",
    63: "Row remapping event",
    74: "NVLink Error",
    79: "GPU has fallen off the bus",
}
XID_TEXTS |= {94: "Contained ECC error", 95: "Uncontained ECC error", 119: "GSP RPC Timeout"}
MIB = 1024.0**2


def write(scene: Scene) -> None:
    """Add the page of every exporter this cluster has."""
    if scene.exporters & {"dcgm", "dcgm-basic"}:
        _dcgm(scene)
    if "kubernetes" in scene.exporters:
        _state(scene)
        _cadvisor(scene)
    if "coredns" in scene.exporters:
        _coredns(scene)
    if scene.plant.knobs.cache == 2 and "redis" in scene.exporters:
        _redis(scene)


# ---- GPUs ------------------------------------------------------------------------------------------------------
def _dcgm(scene: Scene) -> None:
    target = scene.target("dcgm-exporter", f"{NODE}:9400")
    replicas = range(len(scene.plant.replicas))
    lost = np.max([scene.samples(f"{index}.lost").at(target.times) for index in replicas], axis=0)
    target.alive[:] = 1 - lost
    target.series[0] = type(target.series[0])("up", target.series[0].labels, target.times, target.alive.copy())
    full = "dcgm" in scene.exporters
    for replica in replicas:
        _gpu(scene, target, replica, full)


def _mean(scene: Scene, name: str, moments: Floats) -> Floats:
    """The mean over the collection interval before each moment."""
    samples = scene.samples(name)
    shifts = np.arange(0, COLLECTED_EVERY_S, SAMPLED_EVERY_S)
    mean: Floats = np.mean([samples.at(moments - shift) for shift in shifts], axis=0)
    return mean


def _gpu(scene: Scene, target: Target, replica: int, full: bool) -> None:
    labels = {
        "gpu": str(replica), "UUID": gpu_uuid(scene, replica), "device": f"nvidia{replica}",
        "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "node-7", "container": CONTAINER,
        "pod": pod_name(scene, replica),
    }  # fmt: skip
    moments = np.floor(target.times / COLLECTED_EVERY_S) * COLLECTED_EVERY_S

    def now(name: str) -> Floats:
        return scene.samples(f"{replica}.{name}").at(moments)

    engine, cores = (_mean(scene, f"{replica}.{name}", moments) for name in ("engine", "sm"))
    noise = scene.random.normal(1, 0.02, len(moments))
    gauges = {
        "DCGM_FI_DEV_GPU_UTIL": np.clip(np.round(100 * engine * noise), 0, 100),
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": np.clip(engine * noise, 0, 1),
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.42 * cores * noise,
        "DCGM_FI_PROF_DRAM_ACTIVE": np.clip(0.15 * engine + 0.35 * cores, 0, 0.95) * noise,
        "DCGM_FI_DEV_SM_CLOCK": np.round(now("clock_mhz") / 15) * 15,
        "DCGM_FI_DEV_GPU_TEMP": np.round(now("temperature_c")),
        "DCGM_FI_DEV_POWER_USAGE": np.round(now("power_w") * noise, 3),
        "DCGM_FI_DEV_FB_USED": np.round(now("used_mb")),
        "DCGM_FI_DEV_FB_FREE": np.round(now("free_mb")),
        "DCGM_FI_DEV_FB_RESERVED": np.full(len(moments), 600.0),
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": np.zeros(len(moments)),
    }
    if full:
        gauges |= {
            "DCGM_FI_PROF_SM_ACTIVE": np.clip(cores * noise, 0, 1),
            "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": now("reasons"),
            "DCGM_FI_DEV_MAX_SM_CLOCK": np.full(len(moments), float(MAX_CLOCK_MHZ)),
            "DCGM_FI_DEV_POWER_MGMT_LIMIT": now("power_limit_w"),
        }
    for name, values in gauges.items():
        target.gauge(name, values, **labels)
    _gpu_counters(scene, target, replica, full, labels)
    _xid(target, now("xid"), labels)


def _gpu_counters(scene: Scene, target: Target, replica: int, full: bool, labels: dict[str, str]) -> None:
    counters = {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "replays"}
    if full:
        counters |= {
            "DCGM_FI_DEV_THERMAL_VIOLATION": "thermal_ns",
            "DCGM_FI_DEV_POWER_VIOLATION": "power_ns",
            "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "memory_errors",
        }
    for name, sampled in counters.items():
        target.count(name, scene.samples(f"{replica}.{sampled}"), **labels)


def _xid(target: Target, codes: Floats, labels: dict[str, str]) -> None:
    """The last XID is a value and a label: a new one is a new series."""
    for code in np.unique(codes):
        text = XID_TEXTS.get(int(code), "Unknown Error")
        shown = np.where(codes == code, code, np.nan)
        target.gauge("DCGM_FI_DEV_XID_ERRORS", shown, **labels, err_code=str(int(code)), err_msg=text)


# ---- Kubernetes ------------------------------------------------------------------------------------------------
def _state(scene: Scene) -> None:
    target = scene.target("kube-state-metrics", f"{NODE}:8080")
    for replica in range(len(scene.plant.replicas)):
        _pod(scene, target, replica)

    def now(name: str) -> Floats:
        return scene.samples(name).at(target.times)

    wanted = float(len(scene.plant.replicas))
    scaler = {"horizontalpodautoscaler": scene.plant.engine}
    target.gauge("kube_horizontalpodautoscaler_spec_max_replicas", now("hpa_max"), **scaler)
    target.gauge("kube_horizontalpodautoscaler_spec_min_replicas", wanted, **scaler)
    target.gauge("kube_horizontalpodautoscaler_status_current_replicas", wanted, **scaler)
    asked = np.minimum(now("hpa_desired"), now("hpa_max"))
    target.gauge("kube_horizontalpodautoscaler_status_desired_replicas", asked, **scaler)
    deployment = {"deployment": scene.plant.engine}
    target.gauge("kube_deployment_spec_replicas", wanted, **deployment)
    target.gauge("kube_deployment_status_replicas_available", now("ready_replicas"), **deployment)
    for pod in range(int(now("unschedulable").max())):
        pending = np.where(now("unschedulable") > pod, 1.0, np.nan)
        target.gauge("kube_pod_status_unschedulable", pending, pod=f"{scene.plant.engine}-new-{pod}")


def _pod(scene: Scene, target: Target, replica: int) -> None:
    pod = {"pod": pod_name(scene, replica)}
    container = {**pod, "container": CONTAINER}

    def now(name: str) -> Floats:
        return scene.samples(f"{replica}.{name}").at(target.times)

    before = scene.past.get("kube_pod_container_status_restarts_total", 0.0)
    target.gauge("kube_pod_container_status_restarts_total", now("restarts") + before, **container)
    ended = {"OOMKilled": now("kills") > 0, "Error": (now("restarts") > 0) & (now("kills") == 0)}
    if before and not now("restarts").any():
        target.gauge("kube_pod_container_status_last_terminated_reason", 1.0, **container, reason="Error")
    for reason, seen in ended.items():
        shown = np.where(seen, 1.0, np.nan)
        target.gauge("kube_pod_container_status_last_terminated_reason", shown, **container, reason=reason)
    target.gauge("kube_pod_status_ready", now("ready"), **pod, condition="true")
    target.gauge("kube_pod_status_ready", 1 - now("ready"), **pod, condition="false")
    limits = {"memory": ("byte", now("memory_limit_mb") * MIB)}
    limits["cpu"] = ("core", now("quota_cores"))
    for resource, (unit, value) in limits.items():
        labels = {**container, "resource": resource, "unit": unit}
        target.gauge("kube_pod_container_resource_limits", value, **labels)


def _cadvisor(scene: Scene) -> None:
    target = scene.target("kubelet", f"{NODE}:10250")
    for replica in range(len(scene.plant.replicas)):
        labels = {"pod": pod_name(scene, replica), "container": CONTAINER, "image": "server"}

        def total(name: str, replica: int = replica) -> Steps:
            return scene.samples(f"{replica}.{name}")

        target.counter("container_cpu_usage_seconds_total", total("cpu_s"), **labels)
        target.count("container_cpu_cfs_periods_total", total("periods"), **labels)
        target.count("container_cpu_cfs_throttled_periods_total", total("throttled"), **labels)
        target.count("container_oom_events_total", total("kills"), **labels)
        used: Floats = total("memory_mb").at(target.times) * MIB * scene.random.normal(1, 0.004, len(target.times))
        target.gauge("container_memory_working_set_bytes", np.round(used), **labels)


# ---- DNS and Redis ---------------------------------------------------------------------------------------------
def _coredns(scene: Scene) -> None:
    target = scene.target("coredns", "10.96.0.10:9153")
    lookups = scene.rows(scene.plant.log.lookups)
    labels = {"server": "dns://:53", "zone": "cluster.local.", "view": ""}
    spread = Spread(lookups["time"], lookups["ms"] / 1000, DNS_BOUNDS_S)
    target.histogram("coredns_dns_request_duration_seconds", spread, **labels, type="A")
    for rcode, failed in (("NOERROR", 0), ("SERVFAIL", 1)):
        times = lookups["time"][lookups["failed"] == failed]
        target.count("coredns_dns_responses_total", Tally(times), **labels, rcode=rcode)


def _redis(scene: Scene) -> None:
    target = scene.target("redis", "10.4.0.40:9121")
    up = scene.samples("cache_up").at(target.times)
    target.gauge("redis_up", up)
    target.alive[:] = up
    commands = scene.rows(scene.plant.log.redis)
    kinds, times = commands["kind"], commands["time"]

    def count(name: str, mine: Floats, **labels: str) -> None:
        target.count(name, Tally(times[mine > 0]), **labels)

    count("redis_keyspace_hits_total", kinds == HIT)
    count("redis_keyspace_misses_total", kinds == MISS)
    count("redis_evicted_keys_total", kinds == EVICTED)
    groups = {
        "hgetall": (kinds == HIT) | (kinds == MISS),
        "hmset": (kinds == NEW) | (kinds == AGAIN) | (kinds == REFUSED),
    }
    for name, mine in groups.items():
        count("redis_commands_total", mine, cmd=name)
        target.counter(
            "redis_commands_duration_seconds_total", Tally(times[mine], commands["ms"][mine] / 1000), cmd=name
        )
        count("redis_commands_failed_calls_total", mine & (kinds == 99), cmd=name)
        # A full server refuses a write before it runs it.
        count("redis_commands_rejected_calls_total", mine & (kinds == REFUSED), cmd=name)
    count("redis_rejected_connections_total", kinds == 99)
    _redis_state(scene, target)
    # The exporter itself answers when Redis does not.
    target.alive[:] = 1.0
    target.gauge("redis_exporter_last_scrape_error", 1 - up)


def _redis_state(scene: Scene, target: Target) -> None:
    knobs, moments = scene.plant.knobs, target.times
    entries = scene.samples("cache_entries").at(moments)
    room = scene.samples("cache_room").at(moments)
    base_mb = 3.0
    target.gauge("redis_db_keys", entries, db="db0")
    target.gauge("redis_memory_used_bytes", np.round((base_mb + entries * VALUE_MB) * MIB))
    target.gauge("redis_memory_max_bytes", np.where(room < 1e6, (base_mb + room * VALUE_MB) * MIB, 0.0))
    target.gauge("redis_uptime_in_seconds", np.round(scene.samples("cache_uptime_s").at(moments)))
    target.gauge("redis_connected_clients", knobs.cache_pool * len(scene.plant.replicas) + 1)
