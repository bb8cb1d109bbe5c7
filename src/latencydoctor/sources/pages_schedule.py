"""When metrics pages are read, and which windows that makes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from latencydoctor.errors import UsageError

EVERY_S = 2.0
SHORTEST_EVERY_S = 0.2
FEWEST_SCRAPES = 2
"""A rate needs two samples."""

MOST_SCRAPES = 1000
RESERVE_S = 2.0
"""Kept back of the deadline for the last page and for what is computed from them ..."""

DISCOVERY_S = 1.0
"""... and so much of it for the latter alone, however long the pages took."""

TARGET_WINDOWS = 5
"""As many windows as an incident is judged on, where there are scrapes enough."""

SCRAPE_SHARE = 0.9
"""Of the time between two scrapes: what one may take, so that the next is on time ..."""

SCRAPE_AT_LEAST_S = 2.0
"""... but a busy server is given so long, and the scrapes that it makes late are left out ..."""

LONGEST_SCRAPE_S = 10.0
"""... and up to so long while no page answers at all: Prometheus's own default ..."""

LONGEST_SCRAPE_SHARE = 1 / 3
"""... or this part of the time left, because a page must be read at least twice."""

PATIENCE_RATIO = 2.0
"""So much longer is waited after a reading in vain, and so much longer than the last page took."""

SLOWER_RATIO = 1.2
"""Readings so much further apart than planned mean another rhythm, not an accident of one reading."""

ALIGNED_SHARE = 0.01
ALIGNED_S = 0.002
"""A scrape so close to its moment is taken to be on it, as a Prometheus does, so that windows hold whole steps."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """`scrapes` of each page, one every `every_s` seconds; a window holds `fewest_steps` of them at least."""

    scrapes: int
    every_s: float
    fewest_steps: int = 1

    @property
    def span_s(self) -> float:
        """From the first to the last."""
        return (self.scrapes - 1) * self.every_s

    @property
    def window_s(self) -> float:
        """One window: whole steps between scrapes, about a fifth of them."""
        return max(self.fewest_steps, round((self.scrapes - 1) / TARGET_WINDOWS)) * self.every_s

    @property
    def scrape_timeout_s(self) -> float:
        """How long one scrape may take."""
        return max(SCRAPE_SHARE * self.every_s, SCRAPE_AT_LEAST_S)

    def aligned_s(self, scrape: int, after_s: float) -> float:
        """The moment to note for a scrape that began `after_s` after the first was due."""
        due_s = scrape * self.every_s
        return due_s if abs(after_s - due_s) <= max(ALIGNED_S, ALIGNED_SHARE * self.every_s) else after_s

    def kept(self, times_s: Sequence[float]) -> Schedule:
        """The schedule that was kept, given when pages were read: slower than this one where the server was."""
        steps_s = sorted(later - earlier for earlier, later in pairwise(times_s))
        if not steps_s or steps_s[len(steps_s) // 2] <= SLOWER_RATIO * self.every_s:
            return self
        every_s = math.ceil(steps_s[len(steps_s) // 2] / self.every_s) * self.every_s
        # Readings of a slow server are not in step with the windows, so that one step might hold a single one.
        return Schedule(math.ceil((times_s[-1] - times_s[0]) / every_s) + 1, every_s, fewest_steps=2)


def make_schedule(scrapes: int | None, every_s: float | None, deadline_s: float, share_ratio: float = 1.0) -> Schedule:
    """As many scrapes as the deadline allows unless a number is asked for; `UsageError` when it allows too few.

    `deadline_s` is that share of the time which the user gave, so that the hint can name the whole.
    """
    step_s = EVERY_S if every_s is None else every_s
    if step_s < SHORTEST_EVERY_S:
        raise UsageError(
            f"--every must be at least {SHORTEST_EVERY_S:g} s", hint="Servers compute a page each time it is read."
        )
    if scrapes is not None and not FEWEST_SCRAPES <= scrapes <= MOST_SCRAPES:
        raise UsageError(
            f"--scrapes must be from {FEWEST_SCRAPES} to {MOST_SCRAPES}", hint="A rate needs two scrapes of a page."
        )
    possible = math.floor(max(deadline_s - RESERVE_S, 0.0) / step_s + 1e-9) + 1
    wanted = min(possible, MOST_SCRAPES) if scrapes is None else scrapes
    if wanted > possible or wanted < FEWEST_SCRAPES:
        wanted = max(wanted, FEWEST_SCRAPES)
        needed_s = math.ceil((wanted - 1) * step_s + RESERVE_S)
        raise UsageError(
            f"reading the pages {wanted} times, one every {step_s:g} s, takes longer than the deadline allows",
            hint=f"Give at least --deadline {math.ceil((needed_s + RESERVE_S) / share_ratio)}s.",
        )
    return Schedule(wanted, step_s)
