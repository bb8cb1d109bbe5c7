"""Open-loop HTTP load over keep-alive connections: requests leave at their intended times, whatever the answers do.

One request at a time on a connection, no pipelining. A request for which no connection is free waits, and its wait
counts: latency is measured from the intended time. Parses only what the gateway sends, which is what lets one core
make several thousand requests a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from time import perf_counter
from typing import cast

MAX_CONNECTIONS = 256
DRAIN_S = 10.0


@dataclass(slots=True)
class Outcome:
    """What became of the requests of one run; times in seconds, unsorted, one for each answer."""

    sent: int = 0
    from_intended_s: list[float] = field(default_factory=list)
    from_send_s: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)
    failed: int = 0
    cached: int = 0
    span_s: float = 0.0


def poisson(rate_rps: float, seconds: float, seed: int) -> list[float]:
    """Arrival times from 0, independent of each other, at the given mean rate."""
    source = random.Random(seed)
    return list(accumulate(source.expovariate(rate_rps) for _ in range(round(rate_rps * seconds))))


def even(rate_rps: float, seconds: float) -> list[float]:
    """Arrival times from 0 at equal distances."""
    return [number / rate_rps for number in range(round(rate_rps * seconds))]


def percentile(values: Sequence[float], ratio: float) -> float:
    """The value at a ratio (0..1) of the sorted values; infinite without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(ratio * len(ordered)))] if ordered else float("inf")


def post(body: bytes) -> bytes:
    """The bytes of one request for an answer."""
    head = f"POST /v1/answer HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class _Connection(asyncio.Protocol):
    def __init__(self, load: OpenLoop) -> None:
        self._load = load
        self._received = b""
        self._intended_s = self._sent_s = 0.0
        self._busy = False
        self.transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)  # uvloop's own is no subclass of asyncio's.
        self._load.free.append(self)
        self._load.pump()

    def send(self, intended_s: float, request: bytes) -> None:
        """Sends a request on this connection, which is free."""
        self._busy = True
        self._intended_s, self._sent_s = intended_s, perf_counter()
        if self.transport is not None:
            self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        start = self._received.find(b"content-length: ") + 16
        length = int(self._received[start : self._received.find(b"\r\n", start)])
        if len(self._received) < end + 4 + length:
            return
        answer, self._received, self._busy = self._received, b"", False
        self._load.answered(self, answer, self._intended_s, self._sent_s)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._load.lost(self, busy=self._busy)


class OpenLoop:
    """Sends requests to one port of the loopback address and records what becomes of them."""

    def __init__(self, port: int, connections: int = MAX_CONNECTIONS) -> None:
        self._port = port
        self._limit = connections
        self._opened = 0
        self.free: list[_Connection] = []
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._outcome = Outcome()
        self._lost = 0
        self._done = asyncio.Event()

    async def connect(self) -> None:
        """Opens all connections, so that a run does not pay for them."""
        await asyncio.gather(*(self._open() for _ in range(self._limit - self._opened)))

    async def _open(self) -> None:
        self._opened += 1
        await asyncio.get_running_loop().create_connection(lambda: _Connection(self), "127.0.0.1", self._port)

    def pump(self) -> None:
        """Gives waiting requests to free connections."""
        while self._waiting and self.free:
            intended_s, request = self._waiting.popleft()
            self.free.pop().send(intended_s, request)

    def answered(self, connection: _Connection, answer: bytes, intended_s: float, sent_s: float) -> None:
        """Records an answer and frees its connection."""
        now_s = perf_counter()
        outcome = self._outcome
        outcome.from_intended_s.append(now_s - intended_s)
        outcome.from_send_s.append(now_s - sent_s)
        outcome.late_s.append(sent_s - intended_s)
        if answer[9:12] != b"200":
            outcome.failed += 1
        elif b'"cached":true' in answer:
            outcome.cached += 1
        self.free.append(connection)
        self.pump()
        if self._all_done():
            self._done.set()

    def lost(self, connection: _Connection, *, busy: bool) -> None:
        """Records a connection that ended; with a request under way, that request failed."""
        self._opened -= 1
        self._lost += busy
        if connection in self.free:
            self.free.remove(connection)

    async def run(self, arrivals_s: Sequence[float], requests: Sequence[bytes]) -> Outcome:
        """Sends `requests`, over and over, at the given times from now; returns when all are answered or given up."""
        await self.connect()
        self._outcome = outcome = Outcome(sent=len(arrivals_s))
        self._lost = 0
        begin_s, position = perf_counter() + 0.05, 0
        while position < len(arrivals_s):
            due_s = perf_counter() - begin_s
            while position < len(arrivals_s) and arrivals_s[position] <= due_s:
                self._waiting.append((begin_s + arrivals_s[position], requests[position % len(requests)]))
                position += 1
            self.pump()
            if position < len(arrivals_s):
                await asyncio.sleep(max(0.0, min(0.001, arrivals_s[position] - (perf_counter() - begin_s))))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._drained(), DRAIN_S)
        outcome.span_s = perf_counter() - begin_s
        outcome.failed += outcome.sent - len(outcome.from_intended_s)  # Lost with their connection, or never answered.
        return outcome

    async def _drained(self) -> None:
        """Returns when every request of the run has been answered or has failed."""
        self._done.clear()
        if not self._all_done():
            await self._done.wait()

    def _all_done(self) -> bool:
        return len(self._outcome.from_intended_s) + self._lost >= self._outcome.sent
