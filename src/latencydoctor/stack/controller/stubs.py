"""Notices that the model's Python process died: Triton then fails every request and goes on calling itself ready."""

from __future__ import annotations

import time
from collections.abc import Callable

LOOK_S = 1.0
"""How often to look; a look at a known process is one system call."""

SHORT_LOOKS = 3
"""In so many looks there must have been fewer than one for each version: while versions are exchanged one may be on its
way in or out."""


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
        self._short_looks = 0
        self._looked_at = clock()

    def lost(self, expected: int) -> bool:
        """Whether there were processes, and now there is none, or fewer than are `expected`; looks at most once every
        LOOK_S.

        Stays true until a search finds them again.
        """
        if self._clock() - self._looked_at < LOOK_S:
            return False
        self._looked_at = self._clock()
        if len(self._known) >= expected and all(self._alive(pid) for pid in self._known):
            return False
        found = self._find()
        self._short_looks = self._short_looks + 1 if found and len(found) < expected else 0
        if found:
            self._known = found
        return self._short_looks >= SHORT_LOOKS or (bool(self._known) and not found)
