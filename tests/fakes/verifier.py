"""Readings in the order in which they are given; the last one repeats."""

from __future__ import annotations

from latencydoctor.model.evidence import Window
from latencydoctor.model.remedy import Reading

GOOD = Reading(p99_ms=120.0, error_ratio=0.0, memory_bytes=2.1e9, requests=3000.0)
SLOW = Reading(p99_ms=1500.0, error_ratio=0.0, memory_bytes=2.1e9, requests=3000.0)
NOTHING = Reading(None, None, None, None)


class FakeVerifier:
    """A `Verifier`; `windows` are those it was asked for."""

    def __init__(self, *readings: Reading) -> None:
        self.readings = list(readings)
        self.windows: list[Window] = []

    def read(self, window: Window) -> Reading:
        """The next reading."""
        self.windows.append(window)
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
