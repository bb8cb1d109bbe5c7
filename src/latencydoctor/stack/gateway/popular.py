"""Counts which questions are asked most, how often the cache missed them, and what their last answer was.

It is kept in memory beside the cache that holds the same keys anyway, for at most two windows. Whoever asks for the
popular ones gets digests: the text of a question is a customer's and never leaves the gateway this way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

WINDOW_S = 60.0
"""A window is closed after this time; the one before it still counts, so figures are over one to two windows."""

MAX_KEYS = 20_000
"""A window that has seen so many different questions is closed early: both take 10 MB, and ranking them 30 ms."""

MIN_ASKED = 2
"""A question asked once is not known to come back."""

_ID_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the last windows: its key in the cache, how often it was asked and missed, its last answer."""

    id: str
    key: str
    asked: int
    missed: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """All lookups of the last `window_s`: how many, how many missed, of how many questions, and the repeated ones."""

    window_s: float
    asked: int
    missed: int
    distinct: int
    once: int
    repeated: tuple[Question, ...]


def id_of(key: str) -> str:
    """What stands for a key outside the gateway."""
    return hashlib.sha256(key.encode()).hexdigest()[:_ID_CHARACTERS]


@dataclass(slots=True)
class _Row:
    asked: int = 0
    missed: int = 0
    value: bytes | None = None


class Popular:
    """The tally; `clock` gives seconds. Each request pays for a look at the clock and one into a dictionary."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._now: dict[str, _Row] = {}
        self._before: dict[str, _Row] = {}
        self._began_s = clock()
        self._before_s = self._began_s

    def hit(self, key: str, value: bytes | None) -> None:
        """The cache had this value for the key."""
        row = self._row(key)
        row.asked += 1
        row.value = value

    def missed(self, key: str) -> None:
        """The cache had nothing for the key."""
        row = self._row(key)
        row.asked += 1
        row.missed += 1

    def answered(self, key: str, value: bytes) -> None:
        """The model's answer to a key that was missed."""
        row = self._now.get(key) or self._before.get(key)
        if row is not None:
            row.value = value

    def _row(self, key: str) -> _Row:
        self._turn()
        row = self._now.get(key)
        if row is None:
            row = self._now[key] = _Row()
        return row

    def _turn(self) -> None:
        now_s = self._clock()
        if len(self._now) >= MAX_KEYS or now_s - self._began_s >= WINDOW_S:
            self._before, self._now = self._now, {}
            self._before_s, self._began_s = self._began_s, now_s

    def ranking(self, prefix: str) -> Ranking:
        """The questions whose key begins so, those asked more than once by how often, most often first."""
        self._turn()
        rows: dict[str, tuple[int, int, bytes | None]] = {}
        for key, row in (*self._before.items(), *self._now.items()):
            if key.startswith(prefix):
                asked, missed, value = rows.get(key, (0, 0, None))
                rows[key] = (asked + row.asked, missed + row.missed, row.value or value)
        repeated = [
            Question(id_of(key), key, asked, missed, value)
            for key, (asked, missed, value) in rows.items()
            if asked >= MIN_ASKED
        ]
        return Ranking(
            window_s=self._clock() - self._before_s,
            asked=sum(asked for asked, _, _ in rows.values()),
            missed=sum(missed for _, missed, _ in rows.values()),
            distinct=len(rows),
            once=len(rows) - len(repeated),
            repeated=tuple(sorted(repeated, key=lambda one: (-one.asked, one.key))),
        )
