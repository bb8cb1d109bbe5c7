"""One scrape target: when Prometheus asked it, and the series it answered with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.faults.pages.tally import Spread
from benchmarks.faults.simulator.log import Floats

MEAN_OF_THE_PAST_S = 1500.0
"""A counter's past is made at its mean rate over so much of the range, which lies before any change."""


class Total(Protocol):
    """A running total that can be asked at moments."""

    def at(self, moments: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Series:
    """One series as Prometheus keeps it; times are seconds after the start of the range."""

    name: str
    labels: str
    times: Floats
    values: Floats


@dataclass(slots=True)
class Target:
    """`times` are the scrapes, `alive` which were answered, `resets` when the process started anew.

    `past_s` is how long it had been counting when the range began, and `past` what single counters had beyond the mean.
    """

    labels: Mapping[str, str]
    times: Floats
    alive: Floats
    past_s: float
    resets: tuple[float, ...] = ()
    past: Mapping[str, float] = field(default_factory=dict)
    series: list[Series] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.series.append(Series("up", _text(self.labels), self.times, self.alive.copy()))

    def gauge(self, name: str, values: Floats | float, **labels: str) -> None:
        """Add a series whose value is of the moment; NaN where it does not exist."""
        held = np.broadcast_to(np.asarray(values, dtype=np.float64), self.times.shape)
        shown = (self.alive > 0) & ~np.isnan(held)
        text = _text({**self.labels, **labels})
        if shown.all():
            self.series.append(Series(name, text, self.times, np.array(held)))
        elif shown.any():
            self.series.append(Series(name, text, self.times[shown], held[shown]))

    def counter(self, name: str, total: Total, **labels: str) -> None:
        """Add a series that adds up an amount since the process started."""
        self.gauge(name, self._counted(name, total, False), **labels)

    def count(self, name: str, total: Total, **labels: str) -> None:
        """Add a series that counts in whole numbers since the process started."""
        self.gauge(name, self._counted(name, total, True), **labels)

    def _counted(self, name: str, total: Total, whole: bool) -> Floats:
        first, healthy = total.at(np.asarray([0.0, MEAN_OF_THE_PAST_S]))
        before = (healthy - first) / MEAN_OF_THE_PAST_S * self.past_s + self.past.get(name, 0.0)
        values: Floats = total.at(self.times) - first + (np.floor(before) if whole else before)
        for reset in self.resets:
            later = self.times >= reset
            values[later] = total.at(self.times[later]) - total.at(np.asarray([reset]))[0]
        return values

    def _counted_cells(self, name: str, spread: Spread) -> Floats:
        """As `_counted`, for all buckets at once: rows are scrapes, columns bounds."""
        first, healthy = spread.at(np.asarray([0.0, MEAN_OF_THE_PAST_S]))
        before = np.floor((healthy - first) / MEAN_OF_THE_PAST_S * self.past_s + self.past.get(name, 0.0))
        totals = spread.at(self.times)
        values: Floats = totals - first + before
        for reset in self.resets:
            later = self.times >= reset
            values[later] = totals[later] - spread.at(np.asarray([reset]))[0]
        return values

    def histogram(self, name: str, spread: Spread, **labels: str) -> None:
        """Add a histogram's buckets, sum and count."""
        values = self._counted_cells(f"{name}_bucket", spread)
        for column, bound in enumerate((*spread.shown, "+Inf")):
            self.gauge(f"{name}_bucket", values[:, column], **labels, le=bound)
        self.counter(f"{name}_sum", spread.sum, **labels)
        self.count(f"{name}_count", spread.count, **labels)


def _text(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))


def scrapes(offset_s: float, every_s: float, length_s: float, jitter: Floats) -> Floats:
    """When a target is scraped: every `every_s` from `offset_s` on, a little early or late."""
    grid = np.arange(offset_s, length_s, every_s)
    times: Floats = np.round(np.clip(grid + jitter[: len(grid)], 0.0, length_s), 3)
    return times
