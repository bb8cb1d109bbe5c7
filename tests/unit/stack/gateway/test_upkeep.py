import asyncio
import io

import pytest

from latencydoctor.stack.gateway.events import EventLog
from latencydoctor.stack.gateway.upkeep import keep_up


def ignore(_name: str) -> None:
    """Events are not counted here."""


class Counting:
    def __init__(self) -> None:
        self.refreshed = self.tidied = 0

    def refresh(self) -> None:
        self.refreshed += 1

    async def tidy(self) -> None:
        self.tidied += 1


def test_settings_are_looked_at_five_times_a_second_and_the_rest_is_done_once() -> None:
    async def scene() -> None:
        upkeep, left = Counting(), [10]

        async def sleep(seconds: float) -> None:
            assert seconds == 0.2
            if not left[0]:
                raise asyncio.CancelledError
            left[0] -= 1

        now_s, stream = [0.0], io.StringIO()
        events = EventLog(stream, lambda: now_s[0], ignore)
        events.emit("INFO", "a", "x")
        events.emit("INFO", "a", "x")
        now_s[0] = 5.0
        with pytest.raises(asyncio.CancelledError):
            await keep_up(upkeep, events, sleep)
        assert (upkeep.refreshed, upkeep.tidied) == (10, 2)
        assert len(stream.getvalue().splitlines()) == 2

    asyncio.run(scene())
