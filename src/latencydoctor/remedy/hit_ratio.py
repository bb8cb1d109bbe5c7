"""What share of the lookups a cache answers, predicted from how often each question was asked.

A question asked n times in a sample of N lookups is asked again with probability n / N, but summed over the questions
that a sample picked out this says too much: some were picked out by the very lookup that is counted. So each is counted
as if its own last lookup had not been there (leave one out, which is Good and Turing's estimate), and a question seen
once counts for nothing.

Whether an entry is still there when it is asked for follows from its rate and the time it lives: with a time to live T
counted from its writing, rate r gives r T / (1 + r T); in a full cache that puts out what was unused for longest, an
entry lives until it was not asked for during the time in which the cache fills up once (Che's approximation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from latencydoctor.model.popular import Popularity

Z = 1.96
"""The interval's width in standard errors: 95 %."""

CHECKED_LOOKUPS = 3000.0
"""The interval is for what a verification window will show, which is itself a sample of about so many lookups."""

LEAST_HALF_WIDTH = 0.02
"""Popularity moves between one minute and the next, so no interval is narrower."""

_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Reach:
    """A predicted hit ratio, 0..1, with its 95 % interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Room:
    """How long entries live: `ttl_s` from their writing, and at most `max_entries` of them."""

    ttl_s: float
    max_entries: int


def steady(popularity: Popularity, room: Room) -> float:
    """The hit ratio that this traffic settles at, with nothing warmed: what is missed is stored and found again."""
    if not popularity.asked or popularity.window_s <= 0:
        return 0.0
    lives_s = fill_time_s(popularity, room)
    return sum(
        one.asked * _found(one.asked / popularity.window_s, room.ttl_s, lives_s)
        for one in popularity.questions
        if one.asked > 1
    ) / float(popularity.asked)


def reach(popularity: Popularity, warmed: Sequence[str], room: Room) -> Reach:
    """The hit ratio once these questions are in the cache and live as `room` says.

    Its lower end counts on them alone, the estimate also on those that the traffic itself brings in.
    """
    ratio = steady(popularity, room)
    asked, window_s = popularity.asked, popularity.window_s
    if not asked or window_s <= 0:
        return Reach(0.0, 0.0, 1.0)
    chosen = set(warmed)
    fewest = min((one.asked for one in popularity.questions if one.id in chosen), default=0)
    lives_s = fill_time_s(popularity, room)
    alone = sum(
        one.asked * _found(one.asked / window_s, room.ttl_s, lives_s)
        for one in popularity.questions
        # Without its own last lookup it would not have been chosen.
        if (one.id in chosen and one.asked > fewest) or (one.id not in chosen and one.left_s is not None)
    ) / float(asked)
    error = Z * math.sqrt(ratio * (1 - ratio) * (1 / asked + 1 / CHECKED_LOOKUPS))
    half = max(LEAST_HALF_WIDTH, error)
    return Reach(ratio, max(0.0, min(alone, ratio) - half), min(1.0, ratio + half))


def fill_time_s(popularity: Popularity, room: Room) -> float:
    """How long an entry that is not asked for stays before a full cache puts it out; infinite while it never is full.

    In time t each repeated question fills one place if it is asked at all, every other lookup one of its own.
    """
    rates = [one.asked / popularity.window_s for one in popularity.questions]
    single_rps = max(0.0, popularity.asked - sum(one.asked for one in popularity.questions)) / popularity.window_s

    def filled(seconds: float) -> float:
        return single_rps * seconds + sum(1 - math.exp(-rate * seconds) for rate in rates)

    if filled(room.ttl_s) <= room.max_entries:
        return math.inf
    low, high = 0.0, room.ttl_s
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if filled(middle) <= room.max_entries else (low, middle)
    return low


def _found(rate_rps: float, ttl_s: float, lives_s: float) -> float:
    """The share of a question's lookups that find its entry."""
    by_age = rate_rps * ttl_s / (1 + rate_rps * ttl_s)
    return by_age if math.isinf(lives_s) else min(by_age, 1 - math.exp(-rate_rps * lives_s))


def entries_needed(popularity: Popularity, room: Room, lost_ratio: float) -> int:
    """How many entries the cache must hold so that for want of room it loses at most this share of the lookups."""
    best = steady(popularity, Room(room.ttl_s, 2**62))
    entries = room.max_entries
    while steady(popularity, Room(room.ttl_s, entries)) < best - lost_ratio:
        entries *= 2
    return entries
