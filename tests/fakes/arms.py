"""Readings of a canary and its peers in the order in which they are given; the last pair repeats."""

from __future__ import annotations

from latencydoctor.model.evidence import Window
from latencydoctor.model.remedy import Reading
from tests.fakes.verifier import GOOD, NOTHING, SLOW

BETTER = (GOOD, SLOW)
"""A canary that is well while its peers are in the incident."""

WORSE = (Reading(p99_ms=480.0, error_ratio=0.0, memory_bytes=2.1e9, requests=1500.0), GOOD)
"""A canary four times slower than its peers, and within every limit."""

SILENT = (NOTHING, GOOD)


class FakeArms:
    """An `ArmsVerifier`; `windows` are those it was asked for."""

    def __init__(self, *pairs: tuple[Reading, Reading]) -> None:
        self.pairs = list(pairs)
        self.windows: list[Window] = []

    def read(self, window: Window) -> tuple[Reading, Reading]:
        """The next pair."""
        self.windows.append(window)
        return self.pairs.pop(0) if len(self.pairs) > 1 else self.pairs[0]
