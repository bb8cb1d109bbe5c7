"""Notices that the model's Python process died: Triton then fails every request and goes on calling itself ready."""

from __future__ import annotations

import time
from collections.abc import Callable

LOOK_S = 1.0
"""How often to look; a look at a known process is one system call."""


class StubWatch:
    """Watches the model's processes: those it knows by id, new ones by a search when the known ones have ended."""

    def __init__(
        self,
        find: Callable[[], tuple[int, ...]],
        alive: Callable[[int], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._alive = alive
        self._clock = clock
        self._known: tuple[int, ...] = ()
        self._looked_at = clock()

    def lost(self) -> bool:
        """Whether there was a process and now there is none; looks at most once every LOOK_S.

        Stays true until a search finds one again.
        """
        if self._clock() - self._looked_at < LOOK_S:
            return False
        self._looked_at = self._clock()
        if any(self._alive(pid) for pid in self._known):
            return False
        found = self._find()
        if found:
            self._known = found
        return bool(self._known) and not found
