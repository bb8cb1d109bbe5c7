"""The load generator against a real socket: what it offers, what it measures when the service stalls, and how it ends.

The server here stands in for the gateway's port only: it answers after a set time, and can be told to stall or to fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import latencydoctor
from latencydoctor.errors import KnownError, UsageError
from latencydoctor.load import plan_file
from latencydoctor.load.questions import Asker
from latencydoctor.load.runner import LOG_FILE, SAMPLES_FILE, LocustLoad, LocustRunner
from latencydoctor.load.samples import SampleLog
from latencydoctor.load.shapes import arrival_offsets
from latencydoctor.model.load import LoadPlan, Mix, Phase

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

QUESTIONS = tuple(f"What about thing {chr(97 + number)}?" for number in range(20))


class Service:
    """An HTTP server in a thread. It answers each question after `service_s`, those it has seen before as cached."""

    def __init__(self) -> None:
        self.service_s = 0.02
        self.status = 200
        self.cut_short = False
        self.sheds = False
        self.stalled_until_s = 0.0
        self.connections: list[asyncio.Transport] = []
        self.asked: list[dict[str, str]] = []
        self._seen: set[str] = set()
        self._loop = asyncio.new_event_loop()
        serving = self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self._server = self._loop.run_until_complete(serving)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def answer(self, head: bytes, body: bytes) -> tuple[float, bytes]:
        """How long to wait, and the bytes to send then."""
        assert head.startswith(b"POST /v1/answer HTTP/1.1")
        ask = json.loads(body)
        self.asked.append(ask)
        cached = ask["question"] in self._seen
        self._seen.add(ask["question"])
        content = json.dumps({"answer": "Yes.", "cached": cached}).encode()
        if self.cut_short:
            content = content[:5]
        length = 100 if self.cut_short else len(content)
        later = "retry-after: 2\r\n" if self.sheds and ask["priority"] == "standard" else ""
        status = 503 if later else self.status
        reply = f"HTTP/1.1 {status} Said\r\n{later}Content-Length: {length}\r\n\r\n".encode() + content
        return max(self.service_s, self.stalled_until_s - time.monotonic()), reply

    def close(self) -> None:
        """Stops listening and drops every connection; may be called twice."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._server.close()
        for transport in self.connections:
            transport.abort()
        # One turn of the loop tells the transports so, and the next closes their sockets.
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()


class _Connection(asyncio.Protocol):
    def __init__(self, service: Service) -> None:
        self._service = service
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._service.connections.append(transport)

    def data_received(self, data: bytes) -> None:
        self._pending += data
        head, ended, body = self._pending.partition(b"\r\n\r\n")
        if ended and len(body) >= int(head.lower().partition(b"content-length:")[2].split()[0]):
            self._pending = b""
            wait_s, reply = self._service.answer(head, body)
            asyncio.get_running_loop().call_later(wait_s, self._reply, reply)

    def _reply(self, reply: bytes) -> None:
        self._transport.write(reply)
        if self._service.cut_short:
            self._transport.close()


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def plan_for(service: Service, *phases: Phase, deadline_ms: float = 3000.0, bound_s: int = 30) -> LoadPlan:
    return LoadPlan(service.url, phases, QUESTIONS, deadline_ms=deadline_ms, bound_s=bound_s, mix=Mix(hot_count=5))


def wait_for_end(load: LocustLoad, within_s: float) -> None:
    give_up_s = time.monotonic() + within_s
    while load.running:
        assert time.monotonic() < give_up_s, "the load should have ended by itself"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that nobody has waited for counts as ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_whole_run_offers_its_phases_and_measures_them(service: Service, tmp_path: Path) -> None:
    phases = (Phase("calm", 100.0, 1.5), Phase("crowd", 300.0, 2.0))
    with LocustRunner(tmp_path).start(plan_for(service, *phases)) as load:
        wait_for_end(load, 8.0)
        calm, crowd = load.phases_started()
        assert (calm.name, crowd.name) == ("calm", "crowd")
        assert crowd.start_s - calm.start_s == pytest.approx(1.5, abs=0.001)
        for number, (start_s, seconds) in enumerate(((calm.start_s, 1.5), (crowd.start_s, 2.0))):
            found = load.window(start_s, start_s + seconds)
            scheduled = sum(1 for _ in arrival_offsets(phases[number], seed=1, number=number))
            assert found.settled
            assert found.offered_count == pytest.approx(scheduled, rel=0.02)
            assert (found.failed_count, found.error_ratio) == (0, 0.0)
            assert found.answered_rps == found.offered_rps
            assert found.p50_ms is not None
            assert 20.0 <= found.p50_ms < 120.0
            assert found.late_p99_ms is not None
            assert found.late_p99_ms < 200.0
        whole = load.window(calm.start_s, crowd.start_s + 2.0)
    assert whole.hit_ratio == pytest.approx(0.12, abs=0.05)
    # Connections are kept: at 300/s and 20 ms about six requests are out at once.
    assert len(service.connections) < whole.offered_count / 4
    # All of the seed's asks arrived, and no others; the first ones may overtake each other while they connect.
    asker = Asker(QUESTIONS, Mix(hot_count=5), 1, 1)
    expected = [asker.ask().session for _ in range(whole.offered_count)]
    assert sorted(ask["session"] for ask in service.asked) == sorted(expected)
    assert {ask["priority"] for ask in service.asked} == {"standard"}


def test_a_stall_shows_its_whole_backlog(service: Service, tmp_path: Path) -> None:
    """Waiting users would send next to nothing during the stall, and the second would count as a few slow requests."""
    with LocustRunner(tmp_path).start(plan_for(service, Phase("steady", 200.0, None))) as load:
        time.sleep(0.5)
        stall_s = time.time()
        service.stalled_until_s = time.monotonic() + 1.0
        time.sleep(1.2)
        load.stop()
        found = load.window(stall_s + 0.05, stall_s + 0.95)
        halves = load.window(stall_s + 0.05, stall_s + 0.5), load.window(stall_s + 0.5, stall_s + 0.95)
    assert found.settled
    assert found.offered_rps == pytest.approx(200.0, rel=0.25)
    assert found.p50_ms == pytest.approx(500.0, abs=150.0)
    assert found.p99_ms == pytest.approx(945.0, abs=150.0)
    assert halves[0].p50_ms == pytest.approx(725.0, abs=150.0)
    assert halves[1].p50_ms == pytest.approx(275.0, abs=150.0)


def test_a_request_without_an_answer_fails_at_its_deadline(service: Service, tmp_path: Path) -> None:
    service.service_s = 10.0
    with LocustRunner(tmp_path).start(plan_for(service, Phase("a", 100.0, 0.5), deadline_ms=300.0)) as load:
        (phase,) = load.phases_started()
        end_s = phase.start_s + 0.5
        assert not load.settled(end_s)
        while not load.settled(phase.start_s + 0.05):
            assert time.time() < phase.start_s + 3.0
            time.sleep(0.01)
        assert time.time() > phase.start_s + 0.3
        assert not load.window(phase.start_s, end_s).settled
        wait_for_end(load, 4.0)
        found = load.window(phase.start_s, end_s)
    assert found.settled
    assert found.failed_count == found.offered_count > 20
    assert (found.p50_ms, found.p99_ms, found.error_ratio, found.hit_ratio) == (300.0, 300.0, 1.0, None)


@pytest.mark.parametrize("fault", ["status", "cut short", "nobody there"])
def test_a_quick_failure_is_no_quick_answer(service: Service, tmp_path: Path, fault: str) -> None:
    plan = plan_for(service, Phase("a", 100.0, 0.4), deadline_ms=700.0)
    if fault == "status":
        service.status = 503
    elif fault == "cut short":
        service.cut_short = True
    else:
        service.close()
    with LocustRunner(tmp_path).start(plan) as load:
        wait_for_end(load, 4.0)
        (phase,) = load.phases_started()
        found = load.window(phase.start_s, phase.start_s + 0.4)
    assert found.failed_count == found.offered_count > 15
    assert found.p50_ms == pytest.approx(700.0)


def test_what_is_turned_away_until_later_is_told_from_what_fails(service: Service, tmp_path: Path) -> None:
    service.sheds = True
    mixed = Mix(hot_count=5, vip_share_ratio=0.3)
    with LocustRunner(tmp_path).start(replace(plan_for(service, Phase("a", 100.0, 0.6)), mix=mixed)) as load:
        wait_for_end(load, 4.0)
        (phase,) = load.phases_started()
        found = load.window(phase.start_s, phase.start_s + 0.6)
    assert found.vip is not None
    assert found.standard is not None
    assert found.vip.answered_count == found.vip.offered_count > 5
    assert found.standard.shed_count == found.standard.offered_count > 15
    assert (found.standard.failed_count, found.standard.p99_ms) == (0, None)


def test_phases_switch_when_told_and_the_bound_holds(service: Service, tmp_path: Path) -> None:
    phases = (Phase("calm", 20.0, None), Phase("crowd", 200.0, None))
    with LocustRunner(tmp_path).start(plan_for(service, *phases, bound_s=2)) as load:
        with pytest.raises(UsageError, match="no phase 'rush'"):
            load.switch("rush")
        time.sleep(0.5)
        told_s = time.time()
        load.switch("crowd")
        wait_for_end(load, 4.0)
        calm, crowd = load.phases_started()
        assert crowd.start_s == pytest.approx(told_s, abs=0.1)
        assert load.window(calm.start_s, crowd.start_s).offered_rps < 60
        found = load.window(crowd.start_s, calm.start_s + 2.0)
        assert found.settled
        assert found.offered_rps == pytest.approx(200.0, rel=0.25)
        assert load.window(calm.start_s + 2.3, calm.start_s + 9.0).offered_count == 0
        with pytest.raises(KnownError, match="ended already"):
            load.switch("calm")


def test_a_stop_leaves_no_process_and_keeps_the_samples(service: Service, tmp_path: Path) -> None:
    load = LocustRunner(tmp_path).start(plan_for(service, Phase("a", 100.0, None), deadline_ms=20_000.0))
    time.sleep(0.8)
    service.stalled_until_s = time.monotonic() + 15.0
    time.sleep(0.5)
    before_s = time.monotonic()
    load.stop(drain=False)
    assert time.monotonic() - before_s < 5, "what is still out is not waited for"
    assert gone(load.pid)
    load.stop()
    start_s = load.phases_started()[0].start_s
    assert not load.settled(start_s + 1.3)
    kept = SampleLog(load.folder / SAMPLES_FILE)
    kept.read()
    assert kept.window(start_s, start_s + 0.2) == load.window(start_s, start_s + 0.2)
    assert load.window(start_s, start_s + 0.2).offered_count > 5


PARENT = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from latencydoctor.load import plan_file
from latencydoctor.load.runner import LocustRunner
folder = Path(sys.argv[1])
load = LocustRunner(folder).start(plan_file.read(folder / "plan"))
holder = os.fork() if sys.argv[2] == "held" else 0
if holder or sys.argv[2] == "closed":
    print(load.pid, holder, flush=True)
time.sleep(20)
"""


@pytest.mark.parametrize("pipe", ["closed", "held"])
def test_the_child_does_not_outlive_a_killed_parent(service: Service, tmp_path: Path, pipe: str) -> None:
    """Not even when a fork of the parent lives on and still holds the parent's end of the pipe."""
    plan_file.write(plan_for(service, Phase("a", 100.0, None)), tmp_path / "plan")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), pipe],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(latencydoctor.__file__).parent.parent)},
    ) as parent:
        assert parent.stdout is not None
        child, holder = map(int, parent.stdout.readline().split())
        time.sleep(0.3)
        parent.kill()
    give_up_s = time.monotonic() + 3.0
    try:
        while not gone(child):
            assert time.monotonic() < give_up_s, "the child outlived its parent"
            time.sleep(0.02)
        assert not holder or not gone(holder)
    finally:
        if holder:
            os.kill(holder, signal.SIGKILL)
    kept = SampleLog(tmp_path / "load-1" / SAMPLES_FILE)
    kept.read()
    assert kept.between(kept.phase_starts[0][1], time.time())


def test_a_child_that_breaks_down_is_not_waited_for(service: Service, tmp_path: Path) -> None:
    load = LocustRunner(tmp_path).start(plan_for(service, Phase("a", 50.0, None)))
    os.kill(load.pid, signal.SIGKILL)
    wait_for_end(load, 2.0)
    load.stop()
    with pytest.raises(KnownError, match="broke down") as caught:
        load.settled(time.time())
    assert LOG_FILE in caught.value.hint


def test_samples_that_cannot_be_written_end_the_run(service: Service, tmp_path: Path) -> None:
    load = LocustRunner(tmp_path).start(plan_for(service, Phase("a", 100.0, None)))
    # Stands in for a full disk: no file may grow beyond 100 bytes, nor the log in which the error would be told.
    resource.prlimit(load.pid, resource.RLIMIT_FSIZE, (100, 100))
    wait_for_end(load, 5.0)
    load.stop()
    with pytest.raises(KnownError, match="broke down"):
        load.window(0.0, time.time())


def test_a_child_that_does_not_hear_is_ended_all_the_same(service: Service, tmp_path: Path) -> None:
    load = LocustRunner(tmp_path).start(plan_for(service, Phase("a", 50.0, None)))
    os.kill(load.pid, signal.SIGSTOP)
    load.stop(drain=False)
    assert gone(load.pid)


def test_a_child_that_cannot_start_says_why(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locust.py").write_text("raise RuntimeError('no \\x1b[31mgevent here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(KnownError, match=r"did not start: RuntimeError: no \[31mgevent here"):
        LocustRunner(tmp_path / "runs").start(plan_for(service, Phase("a", 50.0, None)))


def test_without_locust_the_way_to_get_it_is_named(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "locust", None)
    with pytest.raises(KnownError, match="not installed") as caught:
        LocustRunner(tmp_path).start(plan_for(service, Phase("a", 50.0, None)))
    assert "latencydoctor[load]" in caught.value.hint


def test_a_wrong_plan_starts_nothing(service: Service, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rate"):
        LocustRunner(tmp_path / "runs").start(plan_for(service, Phase("a", 5000.0, None)))
    assert not (tmp_path / "runs").exists()
