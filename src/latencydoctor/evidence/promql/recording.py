"""Samples out of metrics pages read one after another: what a Prometheus that scraped them would hold."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from latencydoctor.evidence.promql.page import PageError, Reading, read_page
from latencydoctor.evidence.promql.syntax import Selector
from latencydoctor.evidence.promql.values import NAME, Labels, Samples, get, make_labels

JOB = "page"
LOOK_BACK_MS = 300_000
"""How far back an instant selector looks for a sample: Prometheus's own default."""

UP = "up"
"""1 for a page that could be read, 0 for one that could not, as Prometheus keeps it."""


@dataclass(slots=True)
class _Series:
    """One series' samples; a value of None marks the moment from which the series was no longer there."""

    labels: Labels
    times_ms: list[int] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)

    def add(self, time_ms: int, value: float | None) -> bool:
        """Append a sample; False when there is one of that time or later already, and the new one is left out."""
        if self.times_ms and self.times_ms[-1] >= time_ms:
            return False
        self.times_ms.append(time_ms)
        self.values.append(value)
        return True


@dataclass(frozen=True, slots=True)
class PageCount:
    """What one page held: its samples, those left out as repeated, those whose own time is far off the clock's."""

    samples: int
    repeated: int
    off_clock: int


OFF_CLOCK_MS = 60_000
"""A sample's own time so far from the scrape's means that clocks differ, or that the exporter is stuck."""


@dataclass(slots=True)
class Recording:
    """Pages of one or more instances; each is added once, in the order of time.

    `wanted` are the metric names worth keeping, None for all. Labels that the page shares with the scraper become
    `exported_instance` and `exported_job`.
    """

    wanted: Collection[str] | None = None
    names: set[str] = field(default_factory=set)
    _series: dict[str, dict[Labels, _Series]] = field(default_factory=dict)
    _heads: dict[str, dict[str, Labels]] = field(default_factory=dict)
    _known: dict[str, dict[Labels, _Series]] = field(default_factory=dict)
    _present: dict[str, list[_Series]] = field(default_factory=dict)

    def add_page(self, time_s: float, instance: str, page: str) -> PageCount:
        """Take in one scrape of an instance; `PageError` when the page is broken, which then counts as failed."""
        time_ms = round(time_s * 1000)
        try:
            readings = list(read_page(page, self._heads.setdefault(instance, {}), self.wanted))
        except PageError:
            self.add_failure(time_s, instance)
            raise
        present: list[_Series] = []
        repeated = off_clock = 0
        for reading in readings:
            series = self._find(instance, reading)
            if series is None:
                continue
            own_ms = reading.own_time_ms
            repeated += not series.add(time_ms if own_ms is None else own_ms, reading.value) and own_ms is None
            if own_ms is None:
                present.append(series)
            else:
                off_clock += abs(own_ms - time_ms) > OFF_CLOCK_MS
        self._mark_gone(time_ms, instance, present)
        self._up(time_ms, instance, 1.0)
        return PageCount(len(readings), repeated, off_clock)

    def add_failure(self, time_s: float, instance: str) -> None:
        """A scrape of an instance that gave no page: all of its series end there."""
        time_ms = round(time_s * 1000)
        self._mark_gone(time_ms, instance, [])
        self._up(time_ms, instance, 0.0)

    def instant(self, selector: Selector, at_ms: int) -> list[tuple[Labels, int, float]]:
        """The newest sample of each series that fits and its time, none older than the look-back, none past its end."""
        found: list[tuple[Labels, int, float]] = []
        for series in self._fitting(selector):
            index = bisect_right(series.times_ms, at_ms) - 1
            if index < 0 or series.times_ms[index] < at_ms - LOOK_BACK_MS:
                continue
            value = series.values[index]
            if value is not None:
                found.append((series.labels, series.times_ms[index], value))
        return found

    def range(self, selector: Selector, start_ms: int, end_ms: int) -> list[Samples]:
        """The samples of each series that fits, both ends included; series without any are left out."""
        found: list[Samples] = []
        for series in self._fitting(selector):
            first, last = bisect_left(series.times_ms, start_ms), bisect_right(series.times_ms, end_ms)
            held = [
                (time_ms, value)
                for time_ms, value in zip(series.times_ms[first:last], series.values[first:last], strict=True)
                if value is not None
            ]
            if held:
                found.append(Samples(series.labels, tuple(t for t, _ in held), tuple(v for _, v in held)))
        return found

    def _fitting(self, selector: Selector) -> list[_Series]:
        groups = [self._series.get(selector.name, {})] if selector.name else list(self._series.values())
        matchers = [matcher for matcher in selector.matchers if matcher.name != NAME or not selector.name]
        return [
            series
            for group in groups
            for series in group.values()
            if all(matcher.accepts(get(series.labels, matcher.name)) for matcher in matchers)
        ]

    def _find(self, instance: str, reading: Reading) -> _Series | None:
        known = self._known.setdefault(instance, {})
        series = known.get(reading.labels)
        if series is None:
            name = get(reading.labels, NAME)
            self.names.add(name)
            if self.wanted is not None and name not in self.wanted:
                return None
            series = self._make(_scraped(reading.labels, instance))
            known[reading.labels] = series
        return series

    def _make(self, labels: Labels) -> _Series:
        return self._series.setdefault(get(labels, NAME), {}).setdefault(labels, _Series(labels))

    def _mark_gone(self, time_ms: int, instance: str, present: Sequence[_Series]) -> None:
        """End the series that the instance's last page had and this one has not."""
        here = {id(series) for series in present}
        for series in self._present.get(instance, ()):
            if id(series) not in here:
                series.add(time_ms, None)
        self._present[instance] = list(present)

    def _up(self, time_ms: int, instance: str, value: float) -> None:
        self.names.add(UP)
        self._make(make_labels([(NAME, UP), ("instance", instance), ("job", JOB)])).add(time_ms, value)


def _scraped(labels: Labels, instance: str) -> Labels:
    """The labels under which a scraper keeps a series: its own come first, the page's of that name are renamed."""
    own = {"instance": instance, "job": JOB}
    renamed = [(f"exported_{name}" if name in own else name, value) for name, value in labels]
    return make_labels([*renamed, *own.items()])
