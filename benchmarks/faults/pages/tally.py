"""From events to what a counter or histogram shows at the moments it is scraped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.faults.simulator.log import Floats


class Tally:
    """A running total of `weights` (1 each by default) over events at `times`, in any order."""

    def __init__(self, times: Floats, weights: Floats | None = None) -> None:
        order = np.argsort(times, kind="stable")
        self._times = times[order]
        held = np.ones(len(times)) if weights is None else weights[order]
        self._totals = np.concatenate(([0.0], np.cumsum(held)))

    def at(self, moments: Floats) -> Floats:
        """The total of everything up to each moment."""
        totals: Floats = self._totals[np.searchsorted(self._times, moments, side="right")]
        return totals


class Steps:
    """A running total that was sampled every `every_s` seconds."""

    def __init__(self, samples: Floats, every_s: float) -> None:
        self._samples, self._every_s = samples, every_s

    def at(self, moments: Floats) -> Floats:
        """The last sample at or before each moment."""
        index = np.clip((moments / self._every_s).astype(int) - 1, 0, len(self._samples) - 1)
        totals: Floats = self._samples[index]
        return totals


class Spread:
    """Events sorted into a histogram's buckets, cumulative over time and bounds as Prometheus has them."""

    def __init__(
        self, times: Floats, values: Floats, bounds: Sequence[float | int], weights: Floats | None = None
    ) -> None:
        # Python's client writes a bound as 1.0, Go's as 1: it is given as a float or as an int.
        self.shown = tuple(str(bound) for bound in bounds)
        self._times, self._weights = times, weights
        self._bucket = np.searchsorted(np.asarray(bounds), values, side="left")
        self.sum = Tally(times, values if weights is None else values * weights)
        self.count = Tally(times, weights)

    def at(self, moments: Floats) -> Floats:
        """Rows: moments; columns: bounds and +Inf."""
        width = len(self.shown) + 1
        when = np.searchsorted(moments, self._times, side="left")
        flat = np.bincount(when * width + self._bucket, weights=self._weights, minlength=(len(moments) + 1) * width)
        cells = flat.reshape(-1, width)[: len(moments)].cumsum(axis=0).cumsum(axis=1)
        return cells.astype(np.float64)
