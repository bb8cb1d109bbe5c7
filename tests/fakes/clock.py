"""A clock that only moves when someone sleeps."""

from __future__ import annotations


class FakeClock:
    """A `Clock`; `slept_s` is how long was waited in all."""

    def __init__(self, start_s: float = 1_800_000_000.0) -> None:
        self.start_s = start_s
        self.slept_s = 0.0

    def now_s(self) -> float:
        """The time that has been slept up to."""
        return self.start_s + self.slept_s

    def sleep(self, seconds: float) -> None:
        """Moves on at once."""
        self.slept_s += seconds
