"""What a change is expected to do on a target: its batching, its replicas and instances, and the queue model's word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from latencydoctor.app.sizing import instances_needed, replicas_needed
from latencydoctor.forecast.classes import ClassLoad, predict_classes
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.front import Front, front_of
from latencydoctor.forecast.queue import Batching, capacity_rps
from latencydoctor.forecast.situation import instances_of
from latencydoctor.forecast.whatif import and_before, curve_of, predict
from latencydoctor.model.remedy import Prediction, TargetState
from latencydoctor.remedy import batch_floor, scale_out
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.scale_out import Need
from latencydoctor.remedy.vip_priority import Supply

_OF_A_CACHE = ("e2e_p99_ms", "instance_busy_ratio", "request_rate_rps", "network_time_ms")
"""What a fix of the cache changes of the batcher's figures."""

_NUMBERS = (batch_floor.PREFERRED, batch_floor.MAXIMUM, batch_floor.WAIT)


def arrival_rps(measured: Mapping[str, float]) -> float | None:
    """Requests that reach the server: what the cache answers never gets there."""
    rate = measured.get("request_rate_rps")
    return None if rate is None or rate <= 0 else rate * (1 - measured.get("cache_hit_ratio", 0.0))


def predictions(
    state: TargetState,
    change: Change,
    measured: Mapping[str, float],
    times: tuple[BatchTime, ...],
    baseline: Mapping[str, float],
    front: Front | None = None,
) -> tuple[Prediction, ...]:
    """The fix's own, and the batcher's; what the cache will answer does not reach the batcher.

    `front` is what lies before the servers, else it follows from the figures.
    """
    front = front_of(measured, baseline) if front is None else front
    instances = instances_of(measured)
    now = {**_batching_now(state), scale_out.REPLICAS: str(replicas_of(state)), scale_out.INSTANCES: str(instances)}
    after = now | dict(change.values)
    if change.standard_limit_ms is not None:
        coming = _load_of_classes(measured, replicas_of(state), front)
        return predict_classes(measured, coming, _batching(after), change.standard_limit_ms, times, instances)
    if change.restores is not None:
        then = dict(change.restores.settings)
        unstated = [key for key in now if key not in then and state.setting(key) is not None]
        if unstated:
            reason = f"not predicted: the earlier settings leave {unstated[0]} to its default"
            return (Prediction("e2e_p99_ms", "ms", measured.get("e2e_p99_ms"), None, None, None, reason),)
        after = now | {key: then[key] for key in now if key in then}
        times = and_before(times, baseline)
        if after == now:
            return change.predictions
    if change.speedup is None:
        reason = "not predicted: how much faster this accelerator becomes shows when some sessions try it"
        return (Prediction("e2e_p99_ms", "ms", measured.get("e2e_p99_ms"), None, None, None, reason),)
    hits = next((one.after for one in change.predictions if one.signal == "cache_hit_ratio"), None)
    load = measured if hits is None else {**measured, "cache_hit_ratio": hits}
    front = front if hits is None else replace(front, hit_ratio=min(1.0, hits))
    batchings = (_batching(now), _batching(after))
    replicas, servers = ((int(now[key]), int(after[key])) for key in (scale_out.REPLICAS, scale_out.INSTANCES))
    batcher = predict(measured, arrival_rps(load), *batchings, times, servers, replicas, change.speedup, front)
    # A fix of the cache leaves the capacity as it is.
    return (*change.predictions, *(one for one in batcher if hits is None or one.signal in _OF_A_CACHE))


def need_of(
    state: TargetState,
    measured: Mapping[str, float],
    times: Sequence[BatchTime],
    slo_p99_ms: float,
    front: Front | None = None,
) -> Need:
    """How many replicas, or instances where the target has no replicas, hold the SLO under the batching in effect."""
    batching = _batching(_batching_now(state))
    if scale_out.lever(state) == scale_out.INSTANCES:
        return instances_needed(measured, times, batching, slo_p99_ms, front)
    return replicas_needed(measured, times, batching, replicas_of(state), slo_p99_ms, front)


def _batching_now(state: TargetState) -> dict[str, str]:
    return {key: state.in_use(key) or "" for key in (batch_floor.ENABLED, *_NUMBERS)}


def replicas_of(state: TargetState) -> int:
    """How many servers share the traffic, each with a queue of its own."""
    return scale_out.number(state.in_use(scale_out.REPLICAS) or "")


def supply_of(state: TargetState, measured: Mapping[str, float], times: Sequence[BatchTime]) -> Supply | None:
    """What all replicas can do together, None where it is not known what an execution takes."""
    known = curve_of(measured, times)
    if isinstance(known, str):
        return None
    batching, (curve, _) = _batching(_batching_now(state)), known
    instances = instances_of(measured) * replicas_of(state)
    return Supply(capacity_rps(curve, batching, instances), curve.batch_ms(batching.size_under_load))


def _load_of_classes(measured: Mapping[str, float], replicas: int, front: Front) -> ClassLoad | str:
    """What comes to the front of one replica, or what of it is not known."""
    rate = measured.get("arrival_rate_rps", measured.get("request_rate_rps"))
    vip_ratio = measured.get("vip_share_ratio")
    if rate is None or rate <= 0:
        return "the arrival rate is not known"
    if vip_ratio is None:
        return "the share of VIP requests is not known"
    return ClassLoad(rate / replicas, vip_ratio, front)


def _batching(values: Mapping[str, str]) -> Batching:
    preferred, maximum, wait = (int(values[key]) if values[key].isdecimal() else 0 for key in _NUMBERS)
    # A server without such a switch batches as soon as a batch may hold more than one.
    enabled = values[batch_floor.ENABLED] == "true" or (not values[batch_floor.ENABLED] and maximum > 1)
    return Batching(enabled, preferred, max(1, maximum), wait / 1000)
