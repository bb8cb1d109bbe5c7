"""Lets callers that want the same thing at the same time share one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """Runs work at most once at a time for each key.

    The work runs in a task of its own: a caller that is cancelled leaves without stopping it for the others.
    """

    def __init__(self, joined: Callable[[], None]) -> None:
        self._joined = joined
        self._flights: dict[Hashable, asyncio.Task[Result]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._flights

    async def do(self, key: Hashable, work: Callable[[], Coroutine[object, object, Result]]) -> tuple[Result, bool]:
        """Result of the work for this key, and whether another caller had started it; its error is raised to all."""
        flight = self._flights.get(key)
        joined = flight is not None
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(work())
            flight.add_done_callback(lambda task: self._landed(key, task))
        else:
            self._joined()
        return await asyncio.shield(flight), joined

    def _landed(self, key: Hashable, task: asyncio.Task[Result]) -> None:
        del self._flights[key]
        if not task.cancelled():
            task.exception()  # Marks it as seen: every caller may have left, and that is no defect to warn of.
