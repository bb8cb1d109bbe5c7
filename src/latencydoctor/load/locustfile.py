"""The child process: one Locust user that sends each request when it is due, however many answers are still out.

Only the child imports this module: importing locust patches sockets, threads and TLS of the whole process. Locust runs
as a library and not through its command line, which would also obey `~/.locust.conf`, the current folder's
`pyproject.toml` and every `LOCUST_*` variable it finds. Its own statistics stay empty: they would measure from the
sending, and so leave out the wait that an overload causes.

    python -m latencydoctor.load.locustfile PLAN SAMPLES PARENT_PID

It obeys lines on standard input (`switch N`, `drain`, `stop`) and stops when that ends or its parent is gone.
"""

from __future__ import annotations

# First, because importing it patches the modules that the others use.
from locust import User, task
from locust.env import Environment
from locust.exception import StopUser
from locust.runners import STATE_RUNNING, STATE_SPAWNING

# isort: split
import gc
import json
import logging
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import gevent
import gevent.event
import gevent.os
import gevent.pool
from geventhttpclient import HTTPClient
from geventhttpclient.response import HTTPParseError

from latencydoctor.load import plan_file
from latencydoctor.load.questions import Asker, first_order_number
from latencydoctor.load.samples import Sample, SampleWriter
from latencydoctor.load.shapes import Due, Timetable
from latencydoctor.model.load import LoadPlan

_MARK_EVERY_S = 0.1
# Locust needs a moment to start its user; without this the first requests of every run would be late.
_LEAD_S = 0.1
_LONGEST_NAP_S = 0.5
_ANSWER_LIMIT_BYTES = 64 * 1024
_SPARE_FILES = 64


class Client:
    """Posts questions over kept-alive connections, as many at once as requests can be in flight within the deadline."""

    def __init__(self, plan: LoadPlan) -> None:
        address = urlsplit(plan.url)
        self._path = address.path.rstrip("/") + "/v1/answer"
        deadline_s = plan.deadline_ms / 1000
        in_flight = int(max(phase.rate_rps for phase in plan.phases) * deadline_s * 1.5) + 64
        self._client = HTTPClient(
            address.hostname or "",
            address.port,
            ssl=address.scheme == "https",
            headers={"Content-Type": "application/json"},
            connection_timeout=deadline_s,
            network_timeout=deadline_s,
            concurrency=min(in_flight, _allow_files(in_flight + _SPARE_FILES) - _SPARE_FILES),
        )

    def answer(self, body: bytes, timeout_s: float) -> tuple[int, bool, bool]:
        """HTTP status, whether the cache answered, and whether it was turned away and told when to come back.

        Status 0: nothing came in time or the connection broke.
        """
        timer = gevent.Timeout(timeout_s)
        try:
            with timer:
                response = self._client.request("POST", self._path, body)
                content = response.read(_ANSWER_LIMIT_BYTES)
                shed = response.status_code == 503 and response.get("retry-after") is not None
                return response.status_code, b'"cached"' in content and _cached(content), shed
        except gevent.Timeout as expired:
            if expired is not timer:
                raise
        except (OSError, HTTPParseError):
            pass
        return 0, False, False


def _cached(content: bytes) -> bool:
    try:
        found = json.loads(content)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("cached") is True


def _allow_files(wanted: int) -> int:
    """Raises the limit of open files as far as needed and allowed; the limit now in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


class OpenLoop:
    """Sends on schedule, keeps what is in flight, and writes down what came of it."""

    def __init__(self, plan: LoadPlan, writer: SampleWriter) -> None:
        self._deadline_s = plan.deadline_ms / 1000
        self._client = Client(plan)
        self._writer = writer
        # Intended times come from a clock that is never set back, written down as time since the epoch.
        self._epoch_s = time.time() - time.monotonic()
        self._asker = Asker(plan.questions, plan.mix, plan.seed, first_order_number(time.time()))
        start_s = time.monotonic() + _LEAD_S
        self._timetable = Timetable(plan.phases, plan.seed, start_s)
        # No timer: gevent's count from the loop's last turn, and the imports before the first took half a second.
        self._until_s = start_s + plan.bound_s
        self._in_flight: dict[int, float] = {}
        self._pool = gevent.pool.Group()
        self._sent = 0
        self._woken = gevent.event.Event()
        self._ended = gevent.event.Event()
        self._given_up = False
        self._all_sent = False

    def offer(self, allowed: Callable[[], bool]) -> None:
        """Sends until the phases or the bound end, `halt` is called, or the runner does not allow it any more.

        What was due by the end is sent even by a generator that has fallen behind: the figures would miss it.
        """
        try:
            while not self._given_up and allowed() and (due := self._timetable.due) is not None:
                now_s = time.monotonic()
                wait_s = min(due.at_s, self._until_s) - now_s
                if wait_s > 0:
                    self._woken.wait(min(wait_s, _LONGEST_NAP_S))
                    self._woken.clear()
                elif due.at_s > self._until_s:
                    break
                else:
                    self._timetable.take()
                    self._send(due)
            self._all_sent = not self._given_up and allowed()
        finally:
            self._ended.set()

    def _send(self, due: Due) -> None:
        if due.opens:
            self._writer.phase(due.phase, self._epoch_s + due.at_s)
            return
        ask = self._asker.ask()
        body = json.dumps({"question": ask.question, "session": ask.session, "priority": ask.priority}).encode()
        self._sent += 1
        self._in_flight[self._sent] = due.at_s
        self._pool.spawn(self._ask, self._sent, due, body, ask.priority == "vip")
        # Without this a generator that has fallen behind would start requests but never let one run.
        gevent.sleep(0)

    def _ask(self, number: int, due: Due, body: bytes, vip: bool) -> None:
        late_s = time.monotonic() - due.at_s
        left_s = self._deadline_s - late_s
        status, cached, shed = self._client.answer(body, left_s) if left_s > 0 else (0, False, False)
        latency_s = time.monotonic() - due.at_s
        if not 200 <= status < 300:
            # A refused request is not a quick one: its asker has no answer when the deadline comes.
            latency_s = self._deadline_s
        latency_ms = min(latency_s, self._deadline_s) * 1000
        intended_s = self._epoch_s + due.at_s
        self._writer.sample(Sample(intended_s, latency_ms, late_s * 1000, status, cached, due.phase, vip, shed))
        del self._in_flight[number]

    def mark(self) -> None:
        """Writes down before which moment every request has been dealt with."""
        before_s = time.monotonic()
        if not self._all_sent and self._timetable.due is not None:
            before_s = min(before_s, self._timetable.due.at_s)
        # Requests enter in the order of their intended times, so the first is the oldest.
        before_s = min(before_s, next(iter(self._in_flight.values()), before_s))
        self._writer.mark(self._epoch_s + before_s)

    def switch(self, number: int) -> None:
        """Begin another phase now."""
        self._timetable.switch(number, time.monotonic())
        self._woken.set()

    def halt(self, *, drain: bool) -> None:
        """Send no more; with `drain` wait for the answers still out, else give them up unrecorded."""
        self._until_s = min(self._until_s, time.monotonic())
        self._woken.set()
        if not drain:
            self._given_up = True
            self._pool.kill(block=False)

    def drain(self) -> None:
        """Waits until nothing more is sent, and then for the answers that are still out."""
        self._ended.wait()
        self._pool.join(timeout=self._deadline_s + 1.0)

    def close(self) -> bool:
        """Ends the file, saying in it that nothing more will come unless requests were given up; whether that was as
        asked.
        """
        complete = self._all_sent and not self._in_flight
        self.mark()
        if complete:
            self._writer.mark(float("inf"))
        self._writer.close()
        return complete or self._given_up


class Crowd(User):
    """All customers at once. Many Locust users that each wait for an answer would slow down with the service."""

    loop: ClassVar[OpenLoop]

    @task
    def offer_load(self) -> None:
        """The whole run is one task, so it has to watch the runner's state."""
        runner = self.environment.runner
        self.loop.offer(lambda: runner is not None and runner.state in (STATE_SPAWNING, STATE_RUNNING))
        raise StopUser


def obey(loop: OpenLoop, descriptor: int) -> None:
    """Follows the parent's words until they end: then the parent is gone, and nobody wants the load any more."""
    gevent.os.make_nonblocking(descriptor)
    pending = b""
    while piece := gevent.os.nb_read(descriptor, 4096):
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            word, _, number = line.decode("ascii").partition(" ")
            if word == "switch":
                loop.switch(int(number))
            else:
                loop.halt(drain=word == "drain")
    loop.halt(drain=False)


def watch(loop: OpenLoop, parent: int) -> None:
    """Marks progress; and stops if the parent died while some other process still holds its end of the pipe."""
    while True:
        gevent.sleep(_MARK_EVERY_S)
        loop.mark()
        if os.getppid() != parent:
            loop.halt(drain=False)


def main(plan_path: Path, samples_path: Path, parent: int) -> bool:
    """One run, from reading the plan to the last answer; whether it went as asked."""
    environment = Environment(user_classes=[Crowd])
    runner = environment.create_local_runner()
    # A collection that walks Locust's thousands of objects would hold every request up by tens of milliseconds.
    gc.collect()
    gc.freeze()
    Crowd.loop = loop = OpenLoop(plan_file.read(plan_path), SampleWriter(samples_path))
    # A request that breaks down (on a full disk, say) must end the run: gevent would go on without its sample.
    hub = gevent.get_hub()
    hub.SYSTEM_ERROR = (*hub.SYSTEM_ERROR, Exception)
    # gevent would print it first, and where that fails as well (the same disk), the error would never reach us.
    hub.exception_stream = None
    watching, obeying = gevent.spawn(watch, loop, parent), gevent.spawn(obey, loop, sys.stdin.fileno())
    runner.start(1, spawn_rate=1)
    loop.drain()
    gevent.killall([watching, obeying])
    went_well = loop.close()
    runner.quit()
    return went_well


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    sys.exit(not main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
