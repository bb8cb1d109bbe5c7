"""Which value a knob has when: defaults, a case's set-up, and changes that step or ramp at their time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.faults.simulator.knobs import DEFAULTS, Engine, Knobs

RANGE_S = 2400
"""Length of what Prometheus holds of a run."""

ONSET_S = 1800
"""When a change happens that does not say so itself: ten minutes before the end."""

WARM_UP_S = 90
"""Simulated before the range, unrecorded: queues, temperatures and caches settle."""


@dataclass(frozen=True, slots=True)
class Change:
    """One knob takes a value at `at_s` after the start of the range, gradually over `over_s`, until `until_s`.

    `replica` limits it to one replica; the traffic and the front are common to all and listen to no such change.
    """

    knob: str
    to: float
    at_s: float = ONSET_S
    over_s: float = 0
    until_s: float = math.inf
    replica: int | None = None

    def value(self, time_s: float, before: float) -> float:
        """The knob's value at `time_s` if it was `before`."""
        if not self.at_s <= time_s < self.until_s:
            return before
        if self.over_s <= 0 or time_s >= self.at_s + self.over_s:
            return self.to
        return before + (self.to - before) * (time_s - self.at_s) / self.over_s


class Timeline:
    """Keeps one record of knobs for each replica, and one for what all share, at the values of the current second."""

    def __init__(self, engine: Engine, setup: Mapping[str, float], changes: Iterable[Change], replicas: int) -> None:
        self._start = {**DEFAULTS[engine], **setup}
        self._changes = tuple(changes)
        self.shared = Knobs(**self._start)
        self.replicas = [Knobs(**self._start) for _ in range(replicas)]
        self._changed = {change.knob for change in self._changes}
        self._steady_until_s = -math.inf
        self._usual = {knob: float(getattr(self.shared, knob)) for knob in self._changed}

    def move_to(self, time_s: float) -> None:
        """Set every record to its values at `time_s`; times must not go back."""
        if time_s < self._steady_until_s:
            return
        self._steady_until_s = self._next_change(time_s)
        self._update(self.shared, time_s, None)
        for index, record in enumerate(self.replicas):
            self._update(record, time_s, index)

    def _next_change(self, time_s: float) -> float:
        """Until when the values at `time_s` hold; `time_s` itself while one of them is moving."""
        edges: list[float] = []
        for change in self._changes:
            ramp_end_s = change.at_s + change.over_s
            if change.over_s and change.at_s <= time_s <= ramp_end_s + 1:
                return time_s
            edges += [edge for edge in (change.at_s, change.until_s) if edge > time_s]
        return min(edges, default=math.inf)

    def _update(self, record: Knobs, time_s: float, replica: int | None) -> None:
        values = dict(self._usual)
        for change in self._changes:
            if change.replica is None or change.replica == replica:
                values[change.knob] = change.value(time_s, values[change.knob])
        for knob, value in values.items():
            setattr(record, knob, value)
