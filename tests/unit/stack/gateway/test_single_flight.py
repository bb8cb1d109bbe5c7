import asyncio

import pytest

from latencydoctor.stack.gateway.single_flight import SingleFlight


class Work:
    def __init__(self) -> None:
        self.started = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.started += 1
        await self.may_end.wait()
        return self.started


def test_callers_at_the_same_time_share_one_piece_of_work() -> None:
    async def scene() -> None:
        joined: list[int] = []
        flights: SingleFlight[int] = SingleFlight(lambda: joined.append(1))
        work = Work()
        callers = [asyncio.create_task(flights.do("key", work)) for _ in range(5)]
        await asyncio.sleep(0)
        work.may_end.set()
        assert await asyncio.gather(*callers) == [(1, False)] + [(1, True)] * 4
        assert len(joined) == 4
        assert len(flights) == 0

    asyncio.run(scene())


def test_different_keys_and_later_callers_do_not_share() -> None:
    async def scene() -> None:
        flights: SingleFlight[int] = SingleFlight(lambda: None)
        work = Work()
        work.may_end.set()
        await asyncio.gather(flights.do("a", work), flights.do("b", work))
        await flights.do("a", work)
        assert work.started == 3

    asyncio.run(scene())


def test_the_first_caller_that_leaves_does_not_take_the_work_with_it() -> None:
    async def scene() -> None:
        flights: SingleFlight[int] = SingleFlight(lambda: None)
        work = Work()
        first = asyncio.create_task(flights.do("key", work))
        await asyncio.sleep(0)
        second = asyncio.create_task(flights.do("key", work))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        work.may_end.set()
        assert await second == (1, True)
        assert first.cancelled()

    asyncio.run(scene())


def test_an_error_reaches_every_caller_and_is_not_kept() -> None:
    async def fail() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def scene() -> None:
        flights: SingleFlight[int] = SingleFlight(lambda: None)
        results = await asyncio.gather(*(flights.do("key", fail) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [ValueError] * 3
        work = Work()
        work.may_end.set()
        assert await flights.do("key", work) == (1, False)

    asyncio.run(scene())


def test_an_error_that_nobody_waits_for_is_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def scene() -> None:
        flights: SingleFlight[int] = SingleFlight(lambda: None)
        caller = asyncio.create_task(flights.do("key", fail))
        await asyncio.sleep(0)
        caller.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(flights) == 0

    asyncio.run(scene())
    assert not caplog.records
