"""Samples of everything that is a state, as exporters would read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.faults.simulator.device import MAX_CLOCK_MHZ, TOTAL_MB

if TYPE_CHECKING:
    from benchmarks.faults.simulator.plant import Plant
    from benchmarks.faults.simulator.replica import Replica


SAMPLED_EVERY_S = 5


def sample(plant: Plant, time_s: float) -> None:
    """Add a sample of all replicas and of what they share; ratios are means since the last."""
    add, knobs = plant.samples.add, plant.knobs
    add("ready_replicas", sum(replica.ready for replica in plant.replicas))
    add("hpa_max", knobs.hpa_max)
    add("hpa_desired", knobs.hpa_desired or len(plant.replicas))
    add("unschedulable", knobs.unschedulable)
    for name, value in zip(("hits", "misses", "evictions", "entries", "used_ratio"), _cache(plant), strict=True):
        add(f"cache_{name}", value)
    add("cache_up", 0.0 if knobs.cache_down else 1.0)
    add("cache_uptime_s", time_s - plant.caches[0].started_s)
    add("cache_room", knobs.cache_entries)
    add("upstream_open", plant.front.upstream_open)
    for replica in plant.replicas:
        _sample_replica(plant, replica, time_s)


def _cache(plant: Plant) -> tuple[float, ...]:
    store = plant.caches[0]
    return store.hits, store.misses, store.evictions, len(store.entries), store.used_ratio()


def _sample_replica(plant: Plant, replica: Replica, time_s: float) -> None:
    host, device, knobs = replica.host, replica.device, replica.knobs
    values = {
        "up": replica.up,
        "ready": replica.ready,
        "restarts": replica.restarts,
        "kills": replica.kills,
        "load_seconds": replica.load_seconds,
        "periods": host.periods,
        "throttled": host.throttled,
        "cpu_s": host.cpu_s,
        "memory_mb": host.memory_mb(),
        "memory_limit_mb": knobs.memory_limit_mb,
        "host_busy": host.busy_ratio,
        "quota_cores": knobs.cpu_quota_cores,
        "engine": max(device.engine_mean(), 0.99 if knobs.gpu_spin else 0.0),
        "sm": device.cores_mean() + (0.015 if knobs.gpu_spin else 0.0),
        "clock_mhz": device.shown_clock(time_s) * MAX_CLOCK_MHZ,
        "temperature_c": device.temperature_c,
        "power_w": device.power_w,
        "power_limit_w": knobs.gpu_power_limit_w,
        "reasons": device.reasons,
        "thermal_ns": device.thermal_ns,
        "power_ns": device.power_ns,
        "replays": device.replays,
        "memory_errors": device.memory_errors,
        "xid": knobs.gpu_xid,
        "lost": knobs.gpu_lost,
        "used_mb": device.used_mb(),
        "free_mb": TOTAL_MB - 600 - device.used_mb(),
    }
    for name, value in (*values.items(), *replica.server.state().items()):
        plant.samples.add(f"{replica.index}.{name}", float(value))
