import asyncio
from collections.abc import Sequence

from latencydoctor.stack.gateway.cache import MAX_BATCHES, MAX_PENDING_WRITES, REST_S, AnswerCache


class MemoryStore:
    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.reads: list[list[str]] = []
        self.writes: list[int] = []
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None

    async def read(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        self.reads.append(list(keys))
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return [self.values.get(key) for key in keys]

    async def write(self, values: Sequence[tuple[str, bytes, int]]) -> None:
        self.writes.append(len(values))
        if self.error is not None:
            raise self.error
        self.values |= {key: value for key, value, _ in values}


class Bench:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.failures: list[str] = []
        self.store = MemoryStore()
        self.cache = AnswerCache(self.store, lambda: self.now_s, self.failures.append)


def test_lookups_of_one_turn_travel_together_and_get_their_own_values() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.store.values = {"a": b"1", "c": b"3"}
        found = await asyncio.gather(*(bench.cache.get(key) for key in ("a", "b", "c", "a")))
        assert found == [b"1", None, b"3", b"1"]
        assert bench.store.reads == [["a", "b", "c", "a"]]

    asyncio.run(scene())


def test_while_all_round_trips_are_under_way_further_lookups_gather() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.store.gate = asyncio.Event()
        lookups = []
        for number in range(MAX_BATCHES + 3):
            lookups.append(asyncio.create_task(bench.cache.get(str(number))))
            for _ in range(4):
                await asyncio.sleep(0)
        assert len(bench.store.reads) == MAX_BATCHES
        bench.store.gate.set()
        await asyncio.gather(*lookups)
        assert [len(keys) for keys in bench.store.reads] == [1] * MAX_BATCHES + [3]

    asyncio.run(scene())


def test_a_caller_that_leaves_does_not_disturb_the_others() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.store.values = {"b": b"2"}
        first, second = (asyncio.create_task(bench.cache.get(key)) for key in "ab")
        await asyncio.sleep(0)
        first.cancel()
        assert await second == b"2"

    asyncio.run(scene())


def test_a_store_that_fails_is_a_miss_and_left_alone_for_a_moment() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.store.error = ConnectionError("down")
        assert await bench.cache.get("a") is None
        assert bench.failures == ["down"]
        assert bench.cache.resting
        assert await bench.cache.get("a") is None
        bench.cache.put("a", b"1", 300)
        assert len(bench.store.reads) == 1
        bench.now_s += REST_S
        bench.store.error = None
        bench.store.values = {"a": b"1"}
        assert await bench.cache.get("a") == b"1"

    asyncio.run(scene())


def test_a_time_out_has_a_reason_too() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.store.error = TimeoutError()
        await bench.cache.get("a")
        assert bench.failures == ["TimeoutError"]

    asyncio.run(scene())


def test_writes_travel_together_and_settle_waits_for_them() -> None:
    async def scene() -> None:
        bench = Bench()
        for number in range(10):
            bench.cache.put(str(number), b"v", 300)
        await bench.cache.settle()
        assert bench.store.writes == [10]
        assert len(bench.store.values) == 10

    asyncio.run(scene())


def test_writes_that_pile_up_are_dropped() -> None:
    async def scene() -> None:
        bench = Bench()
        for number in range(MAX_PENDING_WRITES + 50):
            bench.cache.put(str(number), b"v", 300)
        await bench.cache.settle()
        assert sum(bench.store.writes) == MAX_PENDING_WRITES

    asyncio.run(scene())


def test_a_write_that_fails_is_told_and_forgotten() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.store.error = ConnectionError("full")
        bench.cache.put("a", b"v", 300)
        await bench.cache.settle()
        assert bench.failures == ["full"]

    asyncio.run(scene())
