"""The gateway's work beside the requests: settings that change, a log to flush, a cache to keep within its size."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from valkey.asyncio import Valkey

from latencydoctor.stack.gateway.cache import FAILURES
from latencydoctor.stack.gateway.entries import KEY_PREFIX
from latencydoctor.stack.gateway.events import EventLog

SETTINGS_PERIOD_S = 0.2
"""How soon a change of the settings file is noticed; looking costs one stat."""

MAX_EVICTED = 1000
"""Entries put out in one go (once a second), so that the cache is never blocked for long."""


async def evict(client: Valkey, max_entries: int) -> int:
    """Puts out the entries above the limit, of a random sample those unused for longest; returns how many.

    ConnectionError when the cache does not work.
    """
    try:
        over = min(await client.dbsize() - max_entries, MAX_EVICTED)
        if over <= 0:
            return 0
        sample = await _each(client, ["RANDOMKEY"] * (2 * over))
        keys = sorted({key for key in sample if isinstance(key, bytes) and key.startswith(KEY_PREFIX.encode())})
        idle = await _each(client, [("OBJECT", "IDLETIME", key) for key in keys])
        unused = sorted(zip(keys, idle, strict=True), key=lambda pair: -pair[1] if isinstance(pair[1], int) else 0)
        return int(await client.unlink(*[key for key, _ in unused[:over]])) if unused else 0
    except FAILURES as error:
        raise ConnectionError(str(error)) from error


async def _each(client: Valkey, commands: list[str] | list[tuple[str, str, bytes]]) -> list[object]:
    """The answers to many commands in one round trip; an error of one command is its answer."""
    async with client.pipeline(transaction=False) as pipeline:
        for command in commands:
            pipeline.execute_command(*((command,) if isinstance(command, str) else command))
        answers: list[object] = await pipeline.execute(raise_on_error=False)
        return answers


class Upkeep(Protocol):
    """What is done beside the requests."""

    def refresh(self) -> None:
        """Takes up changed settings."""
        ...

    async def tidy(self) -> None:
        """Keeps the cache within its size."""
        ...


async def keep_up(upkeep: Upkeep, events: EventLog, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Does the upkeep until cancelled."""
    turn = 0
    while True:
        await sleep(SETTINGS_PERIOD_S)
        upkeep.refresh()
        turn += 1
        if turn % round(1 / SETTINGS_PERIOD_S) == 0:
            events.flush()
            await upkeep.tidy()
