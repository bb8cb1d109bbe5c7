"""When requests arrive: independently of each other, in groups, or with the rate itself going up and down."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

POISSON_UNTIL = 1.5
"""A dispersion of counts below this is what independent arrivals show by chance over a dozen windows."""

LEAST_WINDOWS = 8
"""Fewer counts say nothing of how they scatter."""

MOST_DISPERSION = 400.0
"""Beyond this the rate itself is changing, and one rate is no description."""

GROWS_RATIO = 1.4
"""Counted over twice the time, dispersion stays as it is for groups and doubles for a rate that goes up and down."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Arrivals at `rate_rps` on average.

    `group` requests come together at one moment on average (sizes are geometric). `swing` above 0 means that the rate
    alternates between (1 + swing) and (1 - swing) times its mean, each time for `dwell_s` on average.
    """

    rate_rps: float
    group: float = 1.0
    swing: float = 0.0
    dwell_s: float = 1.0

    def times_ms(self, count: int, seed: int) -> list[float]:
        """So many arrivals from 0 on, ascending; the same for the same seed."""
        dice = random.Random(seed)
        if self.swing > 0:
            starts = self._swinging(max(1, math.ceil(count / self.group)), dice)
        else:
            pace = self.rate_rps / 1000 / self.group
            starts = list(accumulate(dice.expovariate(pace) for _ in range(max(1, math.ceil(count / self.group)))))
        return starts[:count] if self.group <= 1 else self._grouped(starts, count, dice)

    def _grouped(self, starts: Sequence[float], count: int, dice: random.Random) -> list[float]:
        found: list[float] = []
        shrink = 1 / math.log(1 - 1 / self.group)
        last_ms = starts[-1]
        queue = iter(starts)
        while len(found) < count:
            at_ms = next(queue, -1.0)
            if at_ms < 0:
                last_ms += dice.expovariate(self.rate_rps / 1000 / self.group)
                at_ms = last_ms
            size = 1 + int(math.log(1 - dice.random()) * shrink)
            found += [at_ms] * size
        return found[:count]

    def _swinging(self, count: int, dice: random.Random) -> list[float]:
        """A two-state Markov-modulated Poisson process."""
        high = dice.random() < 0.5
        at_ms, ends_ms = 0.0, dice.expovariate(1 / (self.dwell_s * 1000))
        found: list[float] = []
        while len(found) < count:
            factor = 1 + self.swing if high else 1 - self.swing
            pace = self.rate_rps * factor / 1000 / self.group
            following = at_ms + dice.expovariate(pace) if pace > 0 else math.inf
            if following < ends_ms:
                at_ms = following
                found.append(at_ms)
            else:
                # Without memory: what was left of the gap begins anew at the other rate.
                at_ms, high = ends_ms, not high
                ends_ms += dice.expovariate(1 / (self.dwell_s * 1000))
        return found


def dispersion(rates_rps: Sequence[float], window_s: float) -> float | None:
    """Variance over mean of the counts in windows of this length; 1 for independent arrivals, None for too few windows.

    A slow drift is not burstiness, so each count is compared with the one before it.
    """
    if len(rates_rps) < LEAST_WINDOWS or window_s <= 0:
        return None
    counts = [rate * window_s for rate in rates_rps]
    mean = sum(counts) / len(counts)
    if mean <= 0:
        return None
    steps = [(after - before) ** 2 / 2 for before, after in pairwise(counts)]
    return sum(steps) / len(steps) / mean


def traffic(rate_rps: float, rates_rps: Sequence[float], window_s: float) -> Traffic:
    """Traffic whose counts scatter as those of these windows do; independent arrivals where nothing else is known.

    Groups that come together scatter counts alike over any length of time; a rate that goes up and down scatters them
    the more the longer they are counted.
    """
    short = dispersion(rates_rps, window_s)
    if short is None or short <= POISSON_UNTIL or rate_rps <= 0:
        return Traffic(rate_rps)
    short = min(short, MOST_DISPERSION)
    pairs = [(first + second) / 2 for first, second in zip(rates_rps[::2], rates_rps[1::2], strict=False)]
    longer = dispersion(pairs, 2 * window_s)
    if longer is None or longer < short * GROWS_RATIO:
        return Traffic(rate_rps, group=(short + 1) / 2)
    return Traffic(rate_rps, swing=min(0.95, math.sqrt((short - 1) / (rate_rps * window_s))), dwell_s=window_s)
