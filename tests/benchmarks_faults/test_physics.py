"""The simulator's plant obeys what queues, clocks and caches obey."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.faults.simulator.batching import BatchServer
from benchmarks.faults.simulator.continuous import LlmServer
from benchmarks.faults.simulator.device import BRAKED, HW_BRAKE, POWER_CAP, SW_THERMAL, Device
from benchmarks.faults.simulator.knobs import DEFAULTS, Engine, Knobs
from benchmarks.faults.simulator.log import Floats
from benchmarks.faults.simulator.plant import Plant
from benchmarks.faults.simulator.timeline import Change

SECONDS = 240


def run(
    setup: Mapping[str, float], engine: Engine = "triton", changes: Iterable[Change] = (), replicas: int = 1
) -> Plant:
    server_of = LlmServer if engine == "vllm" else BatchServer
    plant = Plant(engine, {"load_diurnal_ratio": 0, **setup}, changes, replicas, Random(7), server_of)
    plant.run(SECONDS)
    return plant


def in_range(times: Floats) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = times > 0
    return inside


def worked(device: Device, seconds: int, fill: float = 1.0) -> Device:
    """A device that is kept busy."""
    for second in range(seconds):
        device.run(float(second), 1000 * device.clock, fill)
        device.tick(second + 1.0)
    return device


# ---- the GPU ---------------------------------------------------------------------------------------------------
def test_half_the_clock_takes_twice_the_time() -> None:
    full, half = Knobs(), Knobs(gpu_clock_lock=0.5)

    fast, slow = (worked(Device(knobs, Random(1)), 2, 0.2).run(5.0, 100, 0.2) for knobs in (full, half))

    assert slow == pytest.approx(2 * fast)


def test_a_power_limit_is_kept_by_the_clock() -> None:
    device = worked(Device(Knobs(gpu_power_limit_w=300), Random(1)), 20)

    assert device.clock < 0.8
    assert device.power_w == pytest.approx(300)
    assert device.reasons & POWER_CAP
    assert device.power_ns > 15e9


def test_heat_that_is_not_carried_off_lowers_the_clock() -> None:
    device = worked(Device(Knobs(gpu_cooling=0.3), Random(1)), 200)

    assert device.clock < 0.7
    assert 75 < device.temperature_c < 100
    assert device.reasons & SW_THERMAL
    assert device.thermal_ns > 0


def test_a_cooled_device_does_not_throttle() -> None:
    device = worked(Device(Knobs(), Random(1)), 200, fill=0.5)

    assert device.clock == 1
    assert device.thermal_ns == device.power_ns == 0


def test_the_power_brake_is_no_matter_of_heat() -> None:
    device = worked(Device(Knobs(gpu_brake=1), Random(1)), 20)

    assert device.clock == BRAKED
    assert device.reasons & HW_BRAKE
    assert device.thermal_ns == 0


def test_an_idle_device_comes_up_slowly_only_where_its_clock_drops() -> None:
    steady, dropping = (Device(Knobs(gpu_idle_drop=drop), Random(1)) for drop in (0, 1))

    assert steady.run(10.0, 100, 0.2) == pytest.approx(0.1)
    assert dropping.run(10.0, 100, 0.2) > 0.4


def test_a_neighbour_takes_its_share() -> None:
    assert Device(Knobs(gpu_neighbour=0.5), Random(1)).run(0.0, 100, 0.2) == pytest.approx(0.2)


# ---- queues ----------------------------------------------------------------------------------------------------
def test_capacity_is_the_batch_over_its_time() -> None:
    plant = run({"load_rps": 45, "exec_noise_ratio": 0, "gpu_power_limit_w": 2000, "copy_item_ms": 0})
    knobs, items = plant.knobs, plant.log.executions.arrays()

    batch_s = (knobs.exec_host_ms + knobs.exec_fixed_ms + 8 * knobs.exec_item_ms + 0.4) / 1000
    assert items["items"][in_range(items["time"])].mean() == pytest.approx(8, abs=0.01)
    assert items["items"][in_range(items["time"])].sum() / SECONDS == pytest.approx(8 / batch_s, rel=0.02)


def test_without_batching_capacity_is_one_over_its_time() -> None:
    plant = run({"load_rps": 45, "batching": 0, "exec_noise_ratio": 0})
    items = plant.log.executions.arrays()

    one_s = sum((plant.knobs.exec_host_ms, plant.knobs.exec_fixed_ms, plant.knobs.exec_item_ms, 1)) / 1000
    assert items["items"].max() == 1
    assert in_range(items["time"]).sum() / SECONDS == pytest.approx(1 / one_s, rel=0.02)


def test_the_queue_obeys_littles_law() -> None:
    plant = run({"load_rps": 45, "load_max_open": 60})
    served = plant.log.served.arrays()

    waiting = plant.samples.array("0.pending").mean()
    by_law = served["queue_ms"][in_range(served["time"])].sum() / 1000 / SECONDS
    assert by_law == pytest.approx(waiting, rel=0.05)
    assert waiting > 40


def test_a_preferred_size_is_a_ceiling_without_a_delay() -> None:
    sizes = run({"load_rps": 40, "preferred_batch": 3}).log.executions.arrays()["items"]

    assert sizes.max() == 3


def test_a_delay_holds_requests_back() -> None:
    served = run({"load_rps": 2, "queue_delay_ms": 400}).log.served.arrays()

    assert 250 < np.median(served["queue_ms"]) <= 401


def test_different_shapes_do_not_share_a_batch() -> None:
    one, many = (run({"load_rps": 40, "load_shape_kinds": kinds}).log.executions.arrays() for kinds in (1, 12))

    assert many["items"].mean() < 1.3 < one["items"].mean()


def test_a_full_queue_turns_requests_away_uncounted() -> None:
    plant = run({"load_rps": 45, "queue_size": 10})

    assert set(plant.log.failed.arrays()["reason"]) == {4}
    assert (plant.log.requests.arrays()["status"] == 503).mean() > 0.3


def test_a_queue_timeout_rejects() -> None:
    plant = run({"load_rps": 45, "queue_timeout_ms": 500})

    assert set(plant.log.failed.arrays()["reason"]) == {0}


def test_torchserve_waits_for_its_delay() -> None:
    served = run({"load_rps": 2, "queue_delay_ms": 300}, "torchserve").log.served.arrays()

    assert 250 < np.median(served["queue_ms"]) <= 301


def test_an_overloaded_cpu_step_grows_its_own_queue_only() -> None:
    plant = run({"load_rps": 6, "pipeline": 1, "pre_ms": 500})

    assert plant.samples.array("0.preparing").max() > 20
    assert plant.samples.array("0.pending").max() < 5


# ---- caches ----------------------------------------------------------------------------------------------------
def test_hits_spare_the_model() -> None:
    plant = run({"cache": 2, "load_unique_share": 0.25, "load_rps": 8})
    served = plant.log.served.arrays()

    hits = (served["cached"] == 1).mean()
    assert hits == pytest.approx(0.75, abs=0.05)
    assert plant.log.executions.arrays()["items"].sum() == pytest.approx(len(served["time"]) * (1 - hits), abs=9)


def test_a_slow_cache_server_shows_as_waiting_in_line() -> None:
    quick, slow = (
        run({"cache": 2, "cache_pool": 1, "cache_command_ms": each_ms, "load_rps": 6}).log.served.arrays()
        for each_ms in (0.2, 150)
    )

    assert np.median(slow["cache_ms"]) > 150 > 10 > np.median(quick["cache_ms"])
    missed = slow["cached"] == 2
    assert slow["queue_ms"][missed].mean() > quick["queue_ms"].mean() + 100


def test_a_full_cache_evicts_or_refuses() -> None:
    common = {"cache": 2, "cache_entries": 100, "load_unique_share": 1.0}

    evicting, refusing = (run({**common, "cache_evicts": switch}) for switch in (1, 0))

    assert set(evicting.log.redis.arrays()["kind"]) == {1, 2, 5}
    assert set(refusing.log.redis.arrays()["kind"]) == {1, 4}


# ---- a language model ------------------------------------------------------------------------------------------
def test_tokens_are_what_was_asked_for() -> None:
    done = run({"load_rps": 3}, "vllm").log.generated.arrays()

    assert done["output"].mean() == pytest.approx(DEFAULTS["vllm"]["load_output_tokens"], rel=0.05)
    assert done["hit_tokens"].sum() / done["prompt"].sum() == pytest.approx(0.57, abs=0.04)


def test_the_kv_cache_is_never_overfull_and_preempts() -> None:
    plant = run({"load_rps": 8, "llm_kv_tokens": 400, "load_output_tokens": 60}, "vllm")

    assert len(plant.log.preemptions.arrays()["time"]) > 5
    assert plant.samples.array("0.kv").max() <= 1
    assert plant.samples.array("0.waiting").max() > 0


def test_a_limit_of_sequences_makes_requests_wait_beside_free_kv() -> None:
    plant = run({"load_rps": 6, "llm_max_seqs": 2}, "vllm")

    assert plant.samples.array("0.running").max() <= 2
    assert plant.samples.array("0.waiting").mean() > 1
    assert plant.samples.array("0.kv").max() < 0.2


def test_a_busy_api_process_delays_the_first_token_and_not_the_engine() -> None:
    quick, slow = (run({"load_rps": 2, "llm_api_request_ms": each_ms}, "vllm").log for each_ms in (4, 400))

    assert slow.first_tokens.arrays()["ttft_s"].mean() > quick.first_tokens.arrays()["ttft_s"].mean() + 0.4
    assert slow.generated.arrays()["queue_s"].mean() < 0.05


# ---- around the server -----------------------------------------------------------------------------------------
def test_a_quota_below_the_demand_throttles() -> None:
    free, bound = (run({"load_rps": 5, "cpu_quota_cores": cores}).replicas[0].host for cores in (6, 0.25))

    assert free.throttled == 0
    assert bound.throttled > 0.5 * bound.periods


def test_retries_multiply_what_the_server_sees() -> None:
    plant = run({"load_rps": 30, "front_try_timeout_s": 0.5, "front_retries": 2})

    asked, seen = len(plant.log.requests.arrays()["time"]), len(plant.log.received.arrays()["time"])
    assert seen > 1.5 * asked


def test_a_restart_loses_requests_and_starts_cold() -> None:
    plant = run({}, changes=[Change("restart_every_s", 100_000, at_s=100)])
    requests = plant.log.requests.arrays()

    assert plant.replicas[0].restarts == 1
    lost = requests["time"][requests["status"] == 502]
    assert lost.min() >= 100
    assert lost.max() <= 126


def test_a_change_for_one_replica_leaves_the_other_alone() -> None:
    plant = run({}, changes=[Change("exec_fixed_ms", 400, at_s=0, replica=1)], replicas=2)
    served = plant.log.served.arrays()
    means = [served["infer_ms"][(served["replica"] == index) & in_range(served["time"])].mean() for index in (0, 1)]

    assert means[1] > 2 * means[0]


def test_a_ramp_is_gradual() -> None:
    change = Change("load_rps", 30, at_s=100, over_s=50, until_s=200)

    assert [change.value(moment, 10) for moment in (99, 125, 150, 199, 200)] == [10, 20, 30, 30, 10]
