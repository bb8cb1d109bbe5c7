"""The cache as the admin API shows it: entries by run, and changes that a fix can take back without harm to others'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from valkey.asyncio import Valkey

from latencydoctor.errors import KnownError
from latencydoctor.stack.gateway.cache import FAILURES
from latencydoctor.stack.gateway.entries import KEY_PREFIX, Entry, dump_entry, read_entry

SCAN_COUNT = 500

# The gateway may store its own answer between our look and the deletion; that one is not ours to delete.
_DELETE_IF_SAME = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry with its key and the seconds it has left to live."""

    key: str
    entry: Entry
    ttl_s: int


def _down(error: Exception) -> KnownError:
    return KnownError(f"the cache does not answer: {error}", hint="See `latencydoctor stack status`.")


class AdminCache:
    """Entry by entry access to the cache; every method raises KnownError when the cache does not work."""

    def __init__(self, client: Valkey) -> None:
        self._client = client
        self._delete_if_same = client.register_script(_DELETE_IF_SAME)

    async def count(self) -> int:
        """How many entries there are."""
        try:
            return int(await self._client.dbsize())
        except FAILURES as error:
            raise _down(error) from error

    async def get(self, key: str) -> Stored | None:
        """The entry under a key; None when there is none, or none that can be read."""
        try:
            value, ttl_s = await self._client.get(key), await self._client.ttl(key)
        except FAILURES as error:
            raise _down(error) from error
        entry = read_entry(value) if value is not None else None
        return Stored(key, entry, int(ttl_s)) if entry else None

    async def put(self, key: str, entry: Entry, ttl_s: int) -> None:
        """Stores an entry in place of what is there."""
        try:
            await self._client.set(key, dump_entry(entry), ex=ttl_s)
        except FAILURES as error:
            raise _down(error) from error

    async def delete(self, key: str, run: str) -> bool:
        """Deletes an entry only if it still carries the run's tag; whether it did."""
        try:
            value = await self._client.get(key)
            entry = read_entry(value) if value is not None else None
            if entry is None or entry.run != run:
                return False
            return bool(await self._delete_if_same(keys=[key], args=[value]))
        except FAILURES as error:
            raise _down(error) from error

    async def put_new(self, values: Sequence[tuple[str, Entry, int]]) -> list[bool]:
        """Stores each (key, entry, seconds to live) where there is none yet, in one round trip; whether each was."""
        try:
            async with self._client.pipeline(transaction=False) as pipeline:
                for key, entry, ttl_s in values:
                    pipeline.set(key, dump_entry(entry), ex=ttl_s, nx=True)
                return [bool(stored) for stored in await pipeline.execute()]
        except FAILURES as error:
            raise _down(error) from error

    async def left_s(self, keys: Sequence[str]) -> list[float | None]:
        """Seconds each key has left to live, infinite for one that does not expire, None where there is none."""
        try:
            async with self._client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.pttl(key)
                found = await pipeline.execute()
        except FAILURES as error:
            raise _down(error) from error
        return [None if left == -2 else float("inf") if left == -1 else left / 1000 for left in found]

    async def tagged(self, run: str) -> list[tuple[str, bytes]]:
        """Key and value of every entry that carries the run's tag, by key. A few round trips for the whole cache."""
        found: dict[str, bytes] = {}
        try:
            cursor = 0
            while True:
                cursor, keys = await self._client.scan(cursor, match=f"{KEY_PREFIX}*", count=SCAN_COUNT)
                for key, value in zip(keys, await self._client.mget(keys) if keys else (), strict=True):
                    entry = read_entry(value) if value is not None else None
                    if entry is not None and entry.run == run:
                        found[key.decode(errors="replace")] = value
                if cursor == 0:
                    return sorted(found.items())
        except FAILURES as error:
            raise _down(error) from error

    async def drop(self, run: str) -> int:
        """Deletes every entry that still carries the run's tag; how many."""
        dropped = 0
        for key, value in await self.tagged(run):
            try:
                dropped += bool(await self._delete_if_same(keys=[key], args=[value]))
            except FAILURES as error:
                raise _down(error) from error
        return dropped

    async def of_run(self, run: str) -> list[Stored]:
        """All entries that carry the run's tag, by key."""
        found: dict[str, Stored] = {}
        try:
            async for key in self._client.scan_iter(match=f"{KEY_PREFIX}*", count=SCAN_COUNT):
                stored = await self.get(key.decode(errors="replace"))
                if stored is not None and stored.entry.run == run:
                    found[stored.key] = stored
        except FAILURES as error:
            raise _down(error) from error
        return [found[key] for key in sorted(found)]
