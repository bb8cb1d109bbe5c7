"""The line through a batch-latency curve, and the profile that the stack reads."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from latencydoctor.stack import profile as profiles
from scripts.gpu import curve
from scripts.gpu.outcome import Failed

BATCHES = (1, 2, 4, 8, 16, 32, 64)


def test_a_straight_curve_is_found_exactly() -> None:
    line = curve.fit({batch: 20 + 1.5 * batch for batch in BATCHES})

    assert line.overhead_ms == pytest.approx(20)
    assert line.per_item_ms == pytest.approx(1.5)
    assert line.worst_ratio == pytest.approx(0, abs=1e-9)


def test_a_small_batch_counts_as_much_as_a_large_one() -> None:
    # 10 % too much at one end moves the line no more than 10 % there.
    times = {batch: 2 + 0.1 * batch for batch in BATCHES}
    line = curve.fit({**times, 64: times[64] * 1.1})

    assert line.overhead_ms + line.per_item_ms == pytest.approx(times[1], rel=0.03)


def test_a_launch_is_never_negative() -> None:
    assert curve.fit({1: 1, 2: 4, 4: 16}).overhead_ms == 0


def test_a_curve_that_does_not_grow_is_no_profile() -> None:
    with pytest.raises(Failed, match="a batch of 64 takes no longer than one of 1"):
        curve.fit(dict.fromkeys(BATCHES, 3.0))


def test_a_profile_is_one_that_the_stack_reads() -> None:
    measured = curve.Measured(
        {batch: 0.5 + 0.01 * batch for batch in BATCHES}, model_bytes=1 << 28, per_item_bytes=4096
    )
    text = curve.profile('NVIDIA "X" 9\n', "580.1", "2026-11-30", 1980.0, 1 << 37, measured, "FP32 encoder")

    found = profiles.parse(text)

    assert found.name == "nvidia-x-9"
    assert found.execution_ms(8) == pytest.approx(0.58, rel=1e-3)
    assert found.memory_bytes(10) == (1 << 28) + 40960
    assert not found.throttled
    for part in ("NVIDIA", "driver 580.1", "2026-11-30", "FP32 encoder", "batches of 1 to 64", "0 % off"):
        assert part in found.origin


class Device:
    """A workload that takes no time up to a size, and then some."""

    label = "a stand-in"

    def __init__(self, idle_up_to: int) -> None:
        self._idle_up_to = idle_up_to
        self.sizes: list[int] = []

    def prepare(self, batch: int) -> Callable[[], None]:
        self.sizes.append(batch)
        return lambda: time.sleep(0.001 if batch <= self._idle_up_to else 0.004)

    def bind(self) -> None: ...

    def used_bytes(self) -> int:
        return 1000 + 8 * max(self.sizes, default=0)

    def close(self) -> None:
        self.sizes.append(0)


def test_sizes_are_doubled_until_the_time_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve, "EXECUTIONS", 3)
    device = Device(idle_up_to=128)

    found, label = curve.measure(lambda: device, used_before_bytes=400)

    assert device.sizes == [*BATCHES, 128, 256, 0]
    assert tuple(found.times_ms) == (*BATCHES, 128, 256)
    assert (found.model_bytes, found.per_item_bytes, label) == (600, 8, "a stand-in")


def test_a_device_that_never_grows_is_measured_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve, "EXECUTIONS", 1)
    device = Device(idle_up_to=1 << 20)

    curve.measure(lambda: device, used_before_bytes=0)

    assert max(device.sizes) == curve.LARGEST_BATCH
