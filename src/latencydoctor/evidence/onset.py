"""When it began: where a latency series leaves its old level, and which signals moved first."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from latencydoctor.evidence.series import Grid, Points, median

FEWEST_BASELINE_WINDOWS = 3
"""Below this there is no baseline: one lucky window must not become what everything is compared with."""

BASELINE_WINDOWS = 5
"""A baseline spans at least so many windows where there are as many, however short the incident."""

MOVED_SPREADS = 4.0
"""A signal has moved once it is this many robust standard deviations away from its baseline ..."""

MOVED_RATIO = 0.5
"""... and by at least this share of the baseline, so that a very steady signal does not move by noise."""

MOVED_WINDOWS = 2
MOVERS_LOOK_BACK = 10
MOST_MOVERS = 8


def walk_back(last: int, bad: Callable[[int], bool | None]) -> int:
    """The first window of the bad stretch that reaches `last`.

    Single good windows inside it are tolerated, and windows that say nothing (None) are passed over.
    """
    first = last
    good_in_a_row = 0
    for index in range(last, -1, -1):
        verdict = bad(index)
        if verdict is None:
            continue
        if verdict:
            first, good_in_a_row = index, 0
            continue
        good_in_a_row += 1
        if good_in_a_row > 1:
            break
    return first


def split_level(values: Sequence[float]) -> int | None:
    """Where one step explains a series best: the index at which the second level begins; None when it is too short.

    Levels are compared as logarithms, because latencies change by factors; the split with the smallest squared rest
    wins, and each side has at least `FEWEST_BASELINE_WINDOWS` values.
    """
    logs = [math.log(max(value, 1e-9)) for value in values]
    best: tuple[float, int] | None = None
    total, total_squares = sum(logs), sum(value * value for value in logs)
    left = left_squares = 0.0
    for index, value in enumerate(logs[:-1], start=1):
        left += value
        left_squares += value * value
        if index < FEWEST_BASELINE_WINDOWS or len(logs) - index < FEWEST_BASELINE_WINDOWS:
            continue
        right, right_squares = total - left, total_squares - left_squares
        rest = left_squares - left * left / index + right_squares - right * right / (len(logs) - index)
        if best is None or rest < best[0] - 1e-12:
            best = (rest, index)
    return best[1] if best else None


def baseline_span(first_bad: int, last: int) -> tuple[int, int] | None:
    """The windows before the onset that serve as baseline: as many as the incident has, at least `BASELINE_WINDOWS`.

    None when there are fewer than `FEWEST_BASELINE_WINDOWS` before it.
    """
    if first_bad < FEWEST_BASELINE_WINDOWS:
        return None
    length = max(last - first_bad + 1, BASELINE_WINDOWS)
    return max(first_bad - length, 0), first_bad - 1


def first_movers(
    points: Mapping[str, Points], grid: Grid, first_bad: int, baseline: tuple[int, int]
) -> tuple[tuple[str, float], ...]:
    """Signals that left their baseline around the onset, earliest first: (signal, when it was first seen moved).

    Of those that moved in the same window the one that moved furthest, relative to its baseline, comes first.
    The look-back starts a little before the onset, because causes move before the latency does.
    """
    moved: list[tuple[int, float, str]] = []
    start = max(first_bad - MOVERS_LOOK_BACK, baseline[0])
    for signal, held in points.items():
        found = _moved_at(held, start, len(grid.ends_s) - 1, baseline)
        if found is not None:
            index, factor = found
            moved.append((index, -factor, signal))
    return tuple((signal, grid.ends_s[index] - grid.window_s) for index, _, signal in sorted(moved)[:MOST_MOVERS])


def _moved_at(held: Points, start: int, last: int, baseline: tuple[int, int]) -> tuple[int, float] | None:
    """The first window of the first sustained move, and how far it went as a share of the baseline."""
    before = held.inside(*baseline)
    level = median(before)
    if level is None or len(before) < FEWEST_BASELINE_WINDOWS:
        return None
    spread = 1.4826 * statistics.median(abs(value - level) for value in before)
    bound = max(MOVED_SPREADS * spread, MOVED_RATIO * abs(level))
    run: list[int] = []
    for index in range(start, last + 1):
        if index not in held.at:
            continue
        run = [*run, index] if abs(held.at[index] - level) > bound else []
        if len(run) == MOVED_WINDOWS:
            # A move away from zero is infinitely far; such signals come first among their window's.
            return run[0], abs(held.at[index] - level) / abs(level) if level else math.inf
    return None
