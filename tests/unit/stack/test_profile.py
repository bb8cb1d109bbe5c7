from __future__ import annotations

import pytest

from latencydoctor.errors import ContentError, KnownError
from latencydoctor.stack.profile import Profile, load, parse

SMALL = Profile(
    name="small",
    origin="made up",
    host_overhead_ms=20,
    per_item_ms=1,
    memory_total_bytes=1000,
    memory_model_bytes=100,
    memory_per_item_bytes=10,
    clock_mhz=1500,
    max_clock_mhz=1500,
)
TEXT = """\
name: small
origin: made up
host_overhead_ms: 20
per_item_ms: 1
memory_total_bytes: 1000
memory_model_bytes: 100
memory_per_item_bytes: 10
clock_mhz: 1500
max_clock_mhz: 1500
"""


def test_a_profile_is_read() -> None:
    assert parse(TEXT) == SMALL


def test_a_batch_takes_the_overhead_once_and_each_items_time() -> None:
    assert SMALL.execution_ms(8) == 28
    assert SMALL.device_ms(8) == 8
    assert SMALL.memory_bytes(8) == 180
    assert not SMALL.throttled


def test_a_lower_clock_stretches_the_device_time_only() -> None:
    hot = parse(TEXT.replace("\nclock_mhz: 1500", "\nclock_mhz: 750"))
    assert hot.throttled
    assert hot.device_ms(8) == 16
    assert hot.execution_ms(8) == 36


def test_int8_changes_what_the_arithmetic_and_the_weights_decide() -> None:
    found = parse(TEXT + "int8: {per_item_ms: 0.4, memory_model_bytes: 25}\n").at("int8")
    assert found.execution_ms(10) == 24
    assert found.memory_bytes(8) == 105
    assert found.throttled is SMALL.throttled


def test_a_device_whose_times_with_int8_nobody_knows_is_refused() -> None:
    assert SMALL.at("fp32") == SMALL
    with pytest.raises(KnownError, match="no times for int8"):
        SMALL.at("int8")


@pytest.mark.parametrize("profile", ["small", "compute-bound", "launch-bound"])
def test_shipped_profiles_have_times_for_int8(profile: str) -> None:
    assert load(profile).at("int8").per_item_ms < load(profile).per_item_ms


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("per_item_ms: 1", "per_item_ms: 0", ":4:14: per_item_ms must be above 0"),
        ("per_item_ms: 1", "per_item_ms: .nan", "per_item_ms must be above 0"),
        ("host_overhead_ms: 20", "host_overhead_ms: -1", "must not be negative"),
        ("\nclock_mhz: 1500", "\nclock_mhz: 2000", "clock_mhz is above max_clock_mhz"),
        ("origin: made up\n", "", "origin is missing"),
        ("name: small", "name: small\nspeed: 3", "unknown key 'speed'"),
        ("name: small", "name: small\nint8: {per_item_ms: 1}", "int8.memory_model_bytes is missing"),
        ("name: small", "name: small\nint8: {per_item_ms: .nan, memory_model_bytes: 1}", "must be above 0"),
    ],
)
def test_a_broken_profile_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ContentError) as caught:
        parse(TEXT.replace(old, new))
    assert message in str(caught.value)
