"""The redacting process as the gateway uses it."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack.gateway.redaction import STUCK_S, Redactor

# Tries the tails of the text against each other before it gives up: some seconds for the text below.
SLOW = r"^.*.*.*.*.*@"
LONG = "a" * 150

ENDLESS = r"^(\w+)+$"


def test_text_is_redacted_by_the_pattern_in_effect_and_order_is_kept() -> None:
    async def scene() -> None:
        redactor = Redactor()
        try:
            assert await redactor("", "a@b c") == "a@b c"
            found = await asyncio.gather(*(redactor(r"\S+@\S+", f"a@b {n}\nd") for n in range(20)))
            assert found == [f"* {n}\nd" for n in range(20)]
            assert await redactor("c", "a@b c") == "a@b *"
        finally:
            await redactor.close()
            await redactor.close()

    asyncio.run(scene())


def test_a_caller_that_leaves_does_not_get_in_the_way_of_the_next() -> None:
    async def scene() -> None:
        redactor = Redactor()
        try:
            assert await redactor(SLOW, "warm") == "warm"
            leaving = asyncio.create_task(redactor(SLOW, LONG))
            await asyncio.sleep(0.01)
            leaving.cancel()
            assert await redactor(SLOW, "b@c") == "*c"
            assert leaving.cancelled()
        finally:
            await redactor.close()

    asyncio.run(scene())


def test_a_text_that_a_pattern_never_ends_on_costs_its_caller_and_nobody_else() -> None:
    async def scene() -> None:
        redactor = Redactor()
        try:
            assert await redactor(ENDLESS, "warm") == "*"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(STUCK_S + 0.2):
                    await redactor(ENDLESS, "a" * 60 + "!")
            async with asyncio.timeout(5.0):
                assert await redactor(ENDLESS, "fine") == "*"
        finally:
            await redactor.close()

    asyncio.run(scene())


def test_a_process_that_dies_fails_one_call_and_is_replaced() -> None:
    async def scene() -> None:
        redactor = Redactor()
        try:
            assert await redactor(SLOW, "warm") == "warm"
            task = asyncio.create_task(redactor(SLOW, LONG))
            await asyncio.sleep(0.01)
            assert redactor.pid is not None
            os.kill(redactor.pid, signal.SIGKILL)
            with pytest.raises(KnownError, match="broke down"):
                await task
            assert await redactor(SLOW, "b@c") == "*c"
        finally:
            await redactor.close()

    asyncio.run(scene())


def test_a_process_that_died_is_put_away_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """Who waits for a process and who asks after it must not take its exit from each other: one of them waits on."""

    async def scene() -> None:
        redactor = Redactor()
        for _ in range(12):
            assert await redactor(r"\d", "warm") == "warm"
            assert redactor.pid is not None
            os.kill(redactor.pid, signal.SIGKILL)
            async with asyncio.timeout(5.0):
                with pytest.raises(KnownError, match="broke down"):
                    await redactor(r"\d", "1")
            assert redactor.pid is None

    asyncio.run(scene())
    assert caplog.messages == []
