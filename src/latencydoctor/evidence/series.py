"""Small questions to a series: its value at a time, its values inside a window, their median."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from latencydoctor.model.evidence import Series, Window

SLACK_S = 0.0005
"""Prometheus prints times to the millisecond."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The windows that a range was cut into: `ends_s` ascending, each `window_s` long, the last one ends now."""

    ends_s: tuple[float, ...]
    window_s: float

    def window(self, first: int, last: int) -> Window:
        """The span from the start of one window to the end of another, by index."""
        return Window(self.ends_s[first] - self.window_s, self.ends_s[last])


@dataclass(frozen=True, slots=True)
class Points:
    """A series on the grid: `at[i]` is the value of window `i`, absent where there was none."""

    series: Series
    at: Mapping[int, float] = field(default_factory=dict)

    def inside(self, first: int, last: int) -> list[float]:
        """The values of the windows `first` to `last`, both included; absent ones left out."""
        return [self.at[index] for index in range(first, last + 1) if index in self.at]


def make_grid(now_s: float, window_s: float, all_series: Iterable[Series]) -> Grid:
    """The grid that the series share: as many windows back from now as the oldest point needs."""
    oldest = min((series.times_s[0] for series in all_series if series.times_s), default=now_s)
    count = max(round((now_s - oldest) / window_s) + 1, 1)
    return Grid(tuple(now_s - (count - 1 - index) * window_s for index in range(count)), window_s)


def place(series: Series, grid: Grid) -> Points:
    """Put a series on the grid; points that lie between its moments are left out."""
    first = grid.ends_s[0]
    at: dict[int, float] = {}
    for time_s, value in zip(series.times_s, series.values, strict=True):
        index = round((time_s - first) / grid.window_s)
        if 0 <= index < len(grid.ends_s) and abs(grid.ends_s[index] - time_s) <= SLACK_S + 1e-6 * grid.window_s:
            at[index] = value
    return Points(series, at)


def median(values: Iterable[float]) -> float | None:
    """The median, None of nothing."""
    held = list(values)
    return statistics.median(held) if held else None
