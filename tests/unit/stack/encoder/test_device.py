from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack.encoder.device import DeviceMemoryError, SimulatedDevice, refuse_if_too_slow
from latencydoctor.stack.profile import Profile

PROFILE = Profile(
    name="test",
    origin="made up",
    host_overhead_ms=20,
    per_item_ms=1,
    memory_total_bytes=1000,
    memory_model_bytes=100,
    memory_per_item_bytes=10,
    clock_mhz=1500,
    max_clock_mhz=1500,
)


class Time:
    """A clock that moves only when someone sleeps or computes."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds


def device(time: Time) -> SimulatedDevice:
    return SimulatedDevice(PROFILE, Path("/dev/null"), clock=time, sleep=time.pass_by)


def compute(time: Time, took_s: float) -> str:
    time.pass_by(took_s)
    return "answer"


def test_an_execution_takes_the_profiles_time_whatever_the_computing_took() -> None:
    time = Time()
    done = device(time).execute(8, lambda: compute(time, 0.005))
    assert done.answer == "answer"
    assert not done.overrun
    assert time.now_s == pytest.approx(100.028)


def test_computing_longer_than_the_profile_is_an_overrun() -> None:
    time = Time()
    assert device(time).execute(8, lambda: compute(time, 0.040)).overrun
    assert time.now_s == pytest.approx(100.040)


def test_the_next_batch_of_a_busy_device_starts_when_the_one_before_ends() -> None:
    time = Time()
    busy = device(time)
    busy.execute(8, lambda: compute(time, 0.001))
    time.pass_by(0.003)
    busy.execute(8, lambda: compute(time, 0.001))
    assert time.now_s == pytest.approx(100.056)


def test_a_pause_is_not_made_up_for() -> None:
    time = Time()
    idle = device(time)
    idle.execute(8, lambda: compute(time, 0.001))
    time.pass_by(0.050)
    idle.execute(8, lambda: compute(time, 0.001))
    assert time.now_s == pytest.approx(100.106)


def test_an_overrun_is_not_made_up_for() -> None:
    time = Time()
    late = device(time)
    late.execute(8, lambda: compute(time, 0.040))
    late.execute(8, lambda: compute(time, 0.001))
    assert time.now_s == pytest.approx(100.068)


def test_memory_grows_with_the_largest_batch_and_stays() -> None:
    time = Time()
    used = device(time)
    assert used.memory_bytes == 100
    used.execute(8, lambda: "")
    used.execute(2, lambda: "")
    assert used.memory_bytes == 180


def test_a_batch_that_does_not_fit_is_refused_without_computing() -> None:
    time = Time()
    full = device(time)
    with pytest.raises(DeviceMemoryError, match="out of memory"):
        full.execute(91, lambda: compute(time, 1.0))
    assert time.now_s == 100.0
    assert full.memory_bytes == 100


def test_a_profile_must_leave_the_machine_half_as_much_again() -> None:
    refuse_if_too_slow(PROFILE, (1, 8), lambda items: 0.014 if items == 1 else 0.0186)
    with pytest.raises(KnownError, match=r"a batch of 8 takes 18\.7 ms, the profile allows 18\.7 ms"):
        refuse_if_too_slow(PROFILE, (1, 8), lambda items: 0.001 if items == 1 else 0.0187)


@pytest.mark.parametrize(
    ("told", "took_s", "throttled"),
    [
        ("500\n", 0.044, True),
        ("1500", 0.028, False),
        ("9000", 0.028, False),
        ("0", 0.028, False),
        ("-5", 0.028, False),
        ("nan", 0.028, False),
        ("hot", 0.028, False),
    ],
)
def test_a_device_runs_at_the_clock_it_is_told_from_the_next_execution_on(
    tmp_path: Path, told: str, took_s: float, throttled: bool
) -> None:
    clock_file, time = tmp_path / "device.clock", Time()
    throttling = SimulatedDevice(PROFILE, Path("/dev/null"), clock_file, clock=time, sleep=time.pass_by)
    throttling.execute(8, lambda: "answer")
    assert time.now_s == pytest.approx(100.028)
    clock_file.write_text(told)
    throttling.execute(8, lambda: "answer")
    assert time.now_s == pytest.approx(100.028 + took_s)
    assert throttling.profile.throttled is throttled
    clock_file.unlink()
    throttling.execute(8, lambda: "answer")
    assert time.now_s == pytest.approx(100.056 + took_s)
    assert not throttling.profile.throttled
