"""Random factors around 1 from a table: the same spread as a lognormal draw at a tenth of its price."""

from __future__ import annotations

import math
from random import Random

_TABLE_SIZE = 4096


class Noise:
    """`factor(spread)` is lognormal with median 1; deterministic for a seeded `random`."""

    def __init__(self, random: Random) -> None:
        self._normal = [random.gauss(0, 1) for _ in range(_TABLE_SIZE)]
        self._next = 0

    def factor(self, spread: float) -> float:
        self._next = (self._next + 1) % _TABLE_SIZE
        return math.exp(spread * self._normal[self._next])
