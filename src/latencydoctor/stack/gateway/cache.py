"""The gateway's side of the answer cache: many lookups in one round trip, and never a request that fails by it.

Under load the client library's cost for one GET (50 to 80 us) would be most of a hit, so the lookups of one turn of
the event loop travel as one MGET. A cache that is down or slow is left alone for a moment and every lookup is a miss.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from valkey.asyncio import Valkey
from valkey.asyncio.retry import Retry
from valkey.backoff import NoBackoff
from valkey.exceptions import ValkeyError

TIMEOUT_S = 0.1
"""How long a cache may take, unless the settings say otherwise (cache.timeout_ms)."""

REST_S = 0.5
"""How long a cache that failed is left alone, so that not every request waits for the time-out."""

MAX_BATCHES = 2
"""Round trips at once: while they last, further lookups gather and go together."""

WRITE_DELAY_S = 0.002
"""Writes wait this long, so that they cost their own request nothing and travel together."""

FAILURES = (ValkeyError, OSError, TypeError, ValueError)
"""How an operation fails, the last two where something answers that is no Valkey."""

MAX_BATCH_KEYS = 256
MAX_PENDING_WRITES = 1000


class Store(Protocol):
    """The two operations a request needs of the store."""

    async def read(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """Values in the order of the keys; ConnectionError or TimeoutError when the store cannot tell."""
        ...

    async def write(self, values: Sequence[tuple[str, bytes, int]]) -> None:
        """Stores (key, value, seconds to live); the same errors."""
        ...


def connect(socket_path: str, timeout_s: float = TIMEOUT_S) -> Valkey:
    """A client of the Valkey behind a Unix socket; connects at the first command, retries nothing."""
    return Valkey(
        unix_socket_path=socket_path,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
    )


class ValkeyStore:
    """The store behind the Valkey on a Unix socket; what takes longer than the time-out counts as failed."""

    def __init__(self, socket_path: str) -> None:
        self._path = socket_path
        self._timeout_s = TIMEOUT_S
        self._client = connect(socket_path)
        self._replaced: list[Valkey] = []

    def wait_at_most(self, timeout_s: float) -> None:
        """Takes another time-out for the operations that begin from now on."""
        if timeout_s != self._timeout_s:
            self._timeout_s = timeout_s
            # Operations under way keep the old client, which is closed with everything else.
            self._replaced.append(self._client)
            self._client = connect(self._path, timeout_s)

    async def close(self) -> None:
        """Ends the connections."""
        for client in (self._client, *self._replaced):
            await client.aclose()

    async def read(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """One MGET."""
        try:
            found: list[bytes | None] = await self._client.mget(keys)
            if len(found) != len(keys) or not all(one is None or isinstance(one, bytes) for one in found):
                raise ValueError("it answers something else than was asked")
        except FAILURES as error:
            raise ConnectionError(str(error)) from error
        return found

    async def write(self, values: Sequence[tuple[str, bytes, int]]) -> None:
        """One pipeline of SETs."""
        try:
            async with self._client.pipeline(transaction=False) as pipeline:
                for key, value, ttl_s in values:
                    pipeline.set(key, value, ex=ttl_s)
                await pipeline.execute()
        except FAILURES as error:
            raise ConnectionError(str(error)) from error


class AnswerCache:
    """Looks answers up and stores them; `failed` is told why whenever the store did not work."""

    def __init__(self, store: Store, clock: Callable[[], float], failed: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._failed = failed
        self._rest_until_s = 0.0
        self._lookups: list[tuple[str, asyncio.Future[bytes | None]]] = []
        self._writes: list[tuple[str, bytes, int]] = []
        self._batches: set[asyncio.Task[None]] = set()
        self._scheduled = False

    @property
    def resting(self) -> bool:
        """Whether the store failed a moment ago and is left alone."""
        return self._clock() < self._rest_until_s

    async def get(self, key: str) -> bytes | None:
        """The value stored under the key; None when there is none or the store does not work."""
        if self.resting:
            return None
        future: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._lookups.append((key, future))
        self._schedule()
        return await future

    def put(self, key: str, value: bytes, ttl_s: int) -> None:
        """Stores a value soon, without a wait; what cannot be stored is dropped, for it is only a cache."""
        if self.resting or len(self._writes) >= MAX_PENDING_WRITES:
            return
        if not self._writes:
            asyncio.get_running_loop().call_later(WRITE_DELAY_S, self._schedule)
        self._writes.append((key, value, ttl_s))

    async def settle(self) -> None:
        """Waits until nothing is under way."""
        while self._batches or self._scheduled or self._writes:
            self._schedule()
            await asyncio.sleep(0)  # A batch that is scheduled starts at the loop's next turn.
            if self._batches:
                await asyncio.wait(self._batches)

    def _schedule(self) -> None:
        waiting = self._lookups or self._writes
        if waiting and not self._scheduled and len(self._batches) < MAX_BATCHES:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._start_batch)

    def _start_batch(self) -> None:
        self._scheduled = False
        lookups, self._lookups = self._lookups[:MAX_BATCH_KEYS], self._lookups[MAX_BATCH_KEYS:]
        writes, self._writes = self._writes, []
        task = asyncio.create_task(self._run(lookups, writes))
        self._batches.add(task)
        task.add_done_callback(self._finish_batch)

    def _finish_batch(self, task: asyncio.Task[None]) -> None:
        self._batches.discard(task)
        self._schedule()

    async def _run(
        self, lookups: list[tuple[str, asyncio.Future[bytes | None]]], writes: list[tuple[str, bytes, int]]
    ) -> None:
        values: Sequence[bytes | None] = ()
        try:
            if lookups and not self.resting:
                values = await self._store.read([key for key, _ in lookups])
        except (ConnectionError, TimeoutError) as error:
            self._rest(error)
        finally:
            for place, (_, future) in enumerate(lookups):
                if not future.done():  # A caller that was cancelled has gone.
                    future.set_result(values[place] if place < len(values) else None)
        try:
            if writes and not self.resting:
                await self._store.write(writes)
        except (ConnectionError, TimeoutError) as error:
            self._rest(error)

    def _rest(self, error: Exception) -> None:
        self._rest_until_s = self._clock() + REST_S
        self._failed(str(error) or type(error).__name__)
