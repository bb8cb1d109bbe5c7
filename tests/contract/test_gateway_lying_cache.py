"""A cache server that answers something else than was asked: no request may wait for it, or fail by it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack.gateway.admin_cache import AdminCache
from latencydoctor.stack.gateway.cache import AnswerCache, ValkeyStore, connect
from latencydoctor.stack.gateway.upkeep import evict

Found = TypeVar("Found")

LIES = [
    b":1\r\n",
    b":abc\r\n",
    b"$abc\r\n",
    b"*1\r\n:7\r\n",
    b"*0\r\n",
    b"*2\r\n$-1\r\n$-1\r\n",
    b"+OK\r\n",
    b"?\r\n",
    b"_\r\n",
]


def beside(lie: bytes, scene: Callable[[str], Awaitable[Found]]) -> Found:
    """What the scene gives beside a server that answers every command so; it gets the path of its socket."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.read(4096):
                writer.write(lie)
                await writer.drain()
        writer.close()

    async def whole() -> Found:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "v")
            async with await asyncio.start_unix_server(answer, path):
                return await asyncio.wait_for(scene(path), 3.0)

    return asyncio.run(whole())


@pytest.mark.parametrize("lie", LIES)
def test_a_lookup_is_a_miss(lie: bytes) -> None:
    async def scene(path: str) -> tuple[bytes | None, list[str]]:
        told: list[str] = []
        store = ValkeyStore(path)
        cache = AnswerCache(store, lambda: 0.0, told.append)
        try:
            cache.put("faq:b", b"1", 5)
            return await cache.get("faq:a"), told
        finally:
            await cache.settle()
            await store.close()

    found, told = beside(lie, scene)
    assert found is None
    assert told


@pytest.mark.parametrize("lie", LIES)
def test_upkeep_and_admin_say_that_the_cache_does_not_work(lie: bytes) -> None:
    async def scene(path: str) -> None:
        client = connect(path)
        admin = AdminCache(client)
        try:
            for asked in (lambda: evict(client, 0), admin.count, lambda: admin.get("faq:a"), lambda: admin.tagged("r")):
                with suppress(KnownError, ConnectionError):
                    await asked()
        finally:
            await client.aclose()

    beside(lie, scene)
