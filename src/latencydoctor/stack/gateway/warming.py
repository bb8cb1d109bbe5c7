"""Puts popular answers into the cache ahead of their questions, in the name of a run, and takes them out again.

Only what is missing is written, so nothing of anyone else's is replaced, and what a run wrote is found by its tag. An
answer that was given a moment ago is written as it was; one that was never given is computed, at the lowest level and
only while questions do not queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from latencydoctor.errors import KnownError
from latencydoctor.stack.gateway.entries import Entry, read_entry
from latencydoctor.stack.gateway.popular import Question, Ranking, id_of
from latencydoctor.stack.gateway.refusals import RequestError

MAX_CLOSED_RUNS = 100

RANKED_S = 2.0
"""How long a ranking serves further orders: making one holds up the requests for some milliseconds."""


class Serving(Protocol):
    """What warming needs of the running gateway."""

    def ranking(self) -> Ranking:
        """The questions of the last minutes."""
        ...

    def refresh(self) -> None:
        """Takes up changed settings now."""
        ...

    @property
    def caches(self) -> bool:
        """Whether the cache is in use."""
        ...

    @property
    def waits_ms(self) -> float:
        """How long questions wait in the model's queue."""
        ...

    async def compute(self, key: str) -> Entry:
        """The model's answer for a key; RequestError when there is none."""
        ...


class Entries(Protocol):
    """What warming needs of the cache; `AdminCache` is one. Every method raises KnownError when it does not work."""

    async def left_s(self, keys: Sequence[str]) -> list[float | None]:
        """Seconds each key has left to live, None where there is none."""
        ...

    async def put_new(self, values: Sequence[tuple[str, Entry, int]]) -> list[bool]:
        """Stores each where there is none yet; whether each was."""
        ...

    async def tagged(self, run: str) -> list[tuple[str, bytes]]:
        """Key and value of a run's entries."""
        ...

    async def drop(self, run: str) -> int:
        """Deletes a run's entries; how many."""
        ...


@dataclass(frozen=True, slots=True)
class Order:
    """What to write: ids with the seconds each entry is to live, of which `compute` answers may be computed while
    questions wait at most `wait_limit_ms`."""

    run: str
    entries: tuple[tuple[str, int], ...]
    compute: int
    wait_limit_ms: float


@dataclass(frozen=True, slots=True)
class Warmed:
    """What became of an order's ids: written, there already, not computed (yet), or not asked for any more."""

    written: tuple[str, ...]
    present: tuple[str, ...]
    pending: tuple[str, ...]
    gone: tuple[str, ...]
    waits_ms: float


class Warmer:
    """One order, or one removal, at a time: a removal that comes after an order finds all of what that wrote."""

    def __init__(self, serving: Serving, cache: Entries) -> None:
        self._serving = serving
        self._cache = cache
        self._turn = asyncio.Lock()
        self._closed: list[str] = []
        self._ranked: tuple[float, Ranking] | None = None

    def _ranking(self) -> Ranking:
        now_s = asyncio.get_running_loop().time()
        if self._ranked is None or now_s - self._ranked[0] > RANKED_S:
            self._ranked = (now_s, self._serving.ranking())
        return self._ranked[1]

    async def popular(self, limit: int) -> tuple[Ranking, list[tuple[Question, float | None]]]:
        """The ranking, and its first questions with the seconds their entries have left (None: no entry)."""
        ranking = self._ranking()
        first = ranking.repeated[:limit]
        left_s = await self._cache.left_s([one.key for one in first]) if first else []
        return ranking, list(zip(first, left_s, strict=True))

    async def warm(self, order: Order) -> Warmed:
        """Writes what is missing; KnownError when the cache does not work or is off, or the run was removed."""
        async with self._turn:
            if order.run in self._closed:
                raise KnownError(f"the entries of run {order.run} were removed", hint="A removed run writes no more.")
            self._serving.refresh()
            if not self._serving.caches:
                raise KnownError("the cache is off", hint="Set cache.enabled to true.")
            known = {one.id: one for one in self._ranking().repeated}
            asked = [(known[name], ttl_s) for name, ttl_s in order.entries if name in known]
            gone = tuple(name for name, _ in order.entries if name not in known)
            ready, pending = await self._answers(asked, order)
            stored = await self._cache.put_new(ready) if ready else []
            names = [id_of(key) for key, _, _ in ready]
            return Warmed(
                written=tuple(name for name, new in zip(names, stored, strict=True) if new),
                present=tuple(name for name, new in zip(names, stored, strict=True) if not new),
                pending=pending,
                gone=gone,
                waits_ms=self._serving.waits_ms,
            )

    async def _answers(
        self, asked: Sequence[tuple[Question, int]], order: Order
    ) -> tuple[list[tuple[str, Entry, int]], tuple[str, ...]]:
        """What to store, and the ids whose answers are not known."""
        ready: list[tuple[str, Entry, int]] = []
        pending: list[str] = []
        left = order.compute
        for question, ttl_s in asked:
            entry = read_entry(question.value) if question.value is not None else None
            if entry is None and left > 0 and self._serving.waits_ms <= order.wait_limit_ms:
                left -= 1
                entry = await self._computed(question.key)
            if entry is None:
                pending.append(question.id)
            else:
                ready.append((question.key, Entry(entry.answer_index, entry.score, order.run), ttl_s))
        return ready, tuple(pending)

    async def _computed(self, key: str) -> Entry | None:
        try:
            return await self._serving.compute(key)
        except RequestError:
            return None  # Whoever asks it next meets the same failure, and it is logged there.

    async def tagged(self, run: str) -> tuple[str, ...]:
        """Ids of the entries that carry the run's tag."""
        return tuple(sorted(id_of(key) for key, _ in await self._cache.tagged(run)))

    async def drop(self, run: str) -> int:
        """Removes what still carries the run's tag, and takes no more orders of that run; how many were removed."""
        async with self._turn:
            if run not in self._closed:
                self._closed = [*self._closed[1 - MAX_CLOSED_RUNS :], run]
            return await self._cache.drop(run)
