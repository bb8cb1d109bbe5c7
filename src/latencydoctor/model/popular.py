"""What a service is asked most, as its front end counted it: digests in place of questions, which are customers'."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PopularQuestion:
    """One question that was asked more than once. `left_s` is what its cached answer has left to live, None without
    one; `known` says whether its answer was given a moment ago and need not be computed."""

    id: str
    asked: int
    missed: int
    known: bool
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Popularity:
    """All lookups of the last `window_s` seconds: how many, how many missed, of how many different questions, how many
    of those came once, the most asked of the others, and the cache's settings in effect by dotted key."""

    window_s: float
    asked: int
    missed: int
    distinct: int
    once: int
    questions: tuple[PopularQuestion, ...]
    settings: tuple[tuple[str, str], ...]

    @property
    def hit_ratio(self) -> float | None:
        """The share that the cache answered, None without lookups."""
        return 1 - self.missed / self.asked if self.asked else None


@dataclass(frozen=True, slots=True)
class WarmBatch:
    """One batch of answers to write in a run's name: ids, each with the seconds its entry is to live.

    Of those whose answers are not known, at most `compute` are computed, while questions wait at most `wait_limit_ms`.
    """

    run_id: str
    entries: tuple[tuple[str, int], ...]
    compute: int
    wait_limit_ms: float


@dataclass(frozen=True, slots=True)
class WarmedBatch:
    """What became of a batch's ids: written, there already, not computed, not asked for any more."""

    written: tuple[str, ...]
    present: tuple[str, ...]
    pending: tuple[str, ...]
    gone: tuple[str, ...]
    waits_ms: float
