"""Orders to write ahead: what is known is written, what is not is computed within limits, a removed run is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack.gateway.entries import Entry, dump_entry
from latencydoctor.stack.gateway.popular import Question, Ranking, id_of
from latencydoctor.stack.gateway.refusals import too_late
from latencydoctor.stack.gateway.warming import MAX_CLOSED_RUNS, Order, Warmed, Warmer


class MemoryEntries:
    def __init__(self) -> None:
        self.values: dict[str, Entry] = {}

    async def left_s(self, keys: Sequence[str]) -> list[float | None]:
        return [1.0 if key in self.values else None for key in keys]

    async def put_new(self, values: Sequence[tuple[str, Entry, int]]) -> list[bool]:
        new = [key not in self.values for key, _, _ in values]
        self.values = {key: entry for key, entry, _ in values} | self.values
        return new

    async def tagged(self, run: str) -> list[tuple[str, bytes]]:
        return [(key, dump_entry(entry)) for key, entry in sorted(self.values.items()) if entry.run == run]

    async def drop(self, run: str) -> int:
        before = len(self.values)
        self.values = {key: entry for key, entry in self.values.items() if entry.run != run}
        return before - len(self.values)


class Gateway:
    """Asked for a and b of late; the answer to a is known. Each answer computed makes the next question wait longer."""

    def __init__(self) -> None:
        self.caches = True
        self.waits_ms = 0.0
        self.computed: list[str] = []
        self.refreshed = 0

    def ranking(self) -> Ranking:
        known = dump_entry(Entry(4, 0.5, "an-older-run"))
        repeated = [Question(id_of("a"), "a", 5, 5, known)]
        repeated += [Question(id_of(key), key, 2, 2, None) for key in ("b", "c", "d")]
        repeated += [Question(id_of("e"), "e", 2, 2, b"damaged")]
        return Ranking(10.0, 15, 15, 7, 2, tuple(repeated))

    def refresh(self) -> None:
        self.refreshed += 1

    async def compute(self, key: str) -> Entry:
        self.computed.append(key)
        self.waits_ms += 30.0
        if key == "c":
            raise too_late(100)
        return Entry(7, 0.25)


def order(*keys: str, run: str = "run-1", compute: int = 0) -> Order:
    return Order(run, tuple((id_of(key), 300) for key in keys), compute, 50.0)


def warmed(gateway: Gateway, entries: MemoryEntries, *orders: Order) -> list[Warmed]:
    async def scene() -> list[Warmed]:
        warmer = Warmer(gateway, entries)
        return [await warmer.warm(one) for one in orders]

    return asyncio.run(scene())


def test_a_known_answer_is_written_in_the_runs_name_without_an_inference() -> None:
    gateway, entries = Gateway(), MemoryEntries()
    (found,) = warmed(gateway, entries, order("a", "b", "z", compute=0))
    assert entries.values == {"a": Entry(4, 0.5, "run-1")}
    assert (found.written, found.pending, found.gone) == ((id_of("a"),), (id_of("b"),), (id_of("z"),))
    assert gateway.computed == []
    assert gateway.refreshed == 1


def test_unknown_answers_are_computed_up_to_the_number_that_is_allowed() -> None:
    gateway, entries = Gateway(), MemoryEntries()
    (found,) = warmed(gateway, entries, order("b", "d", compute=1))
    assert gateway.computed == ["b"]
    assert entries.values == {"b": Entry(7, 0.25, "run-1")}
    assert found.pending == (id_of("d"),)


def test_nothing_more_is_computed_once_questions_wait_too_long() -> None:
    gateway, entries = Gateway(), MemoryEntries()
    (found,) = warmed(gateway, entries, order("b", "d", "e", compute=3))
    assert gateway.computed == ["b", "d"], "after the second one they wait 60 ms"
    assert found.pending == (id_of("e"),)
    assert found.waits_ms == 60.0


def test_a_question_the_model_has_no_answer_to_stays_pending() -> None:
    gateway, entries = Gateway(), MemoryEntries()
    (found,) = warmed(gateway, entries, order("c", compute=2))
    assert (found.written, found.pending) == ((), (id_of("c"),))


def test_what_is_there_is_left_alone() -> None:
    entries = MemoryEntries()
    entries.values["a"] = Entry(1, 0.1)
    (found,) = warmed(Gateway(), entries, order("a"))
    assert (found.written, found.present) == ((), (id_of("a"),))
    assert entries.values == {"a": Entry(1, 0.1)}


def test_a_cache_that_is_off_takes_no_orders() -> None:
    gateway = Gateway()
    gateway.caches = False
    with pytest.raises(KnownError, match="off"):
        warmed(gateway, MemoryEntries(), order("a"))


def test_a_removed_run_writes_no_more_and_only_so_many_are_remembered() -> None:
    async def scene() -> None:
        entries = MemoryEntries()
        warmer = Warmer(Gateway(), entries)
        await warmer.warm(order("a"))
        assert await warmer.tagged("run-1") == (id_of("a"),)
        assert await warmer.drop("run-1") == 1
        with pytest.raises(KnownError, match="were removed"):
            await warmer.warm(order("a"))
        assert await warmer.drop("run-1") == 0
        for number in range(MAX_CLOSED_RUNS):
            await warmer.drop(f"other-{number}")
        await warmer.warm(order("a"))
        assert entries.values

    asyncio.run(scene())


def test_the_popular_questions_come_with_what_the_cache_holds_of_them() -> None:
    async def scene() -> None:
        entries = MemoryEntries()
        entries.values["b"] = Entry(1, 0.1)
        ranking, first = await Warmer(Gateway(), entries).popular(2)
        assert ranking.asked == 15
        assert [(one.key, left_s) for one, left_s in first] == [("a", None), ("b", 1.0)]

    asyncio.run(scene())
