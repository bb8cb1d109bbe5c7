"""A metrics source in memory: what it holds is given, what it was asked is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from latencydoctor.errors import LatencyDoctorError
from latencydoctor.model.evidence import Gap, GapReason, Proof, QueryRecord, Selection, Series
from latencydoctor.model.readings import Candidate, Discovery, RangeQuery, Readings
from latencydoctor.model.rule import Dialect


@dataclass(slots=True)
class FakeMetrics:
    """Implements `MetricsSource`; `values` gives the constant value of a query's text."""

    names: frozenset[str] = frozenset()
    candidates: tuple[Candidate, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    scrape_interval_s: float | None = 5.0
    newest_sample_s: float | None = None
    failure: LatencyDoctorError | None = None
    one_copy: str = ""
    clock_ahead_s: float | None = None
    asked: list[list[RangeQuery]] = field(default_factory=list)

    def discover(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        """What it was made with."""
        del dialects, selection
        if self.failure is not None:
            raise self.failure
        newest_s = at_s if self.newest_sample_s is None else self.newest_sample_s
        records = (QueryRecord("fake", "metric names", "ok", len(self.names)),)
        return Discovery(
            self.names,
            self.candidates,
            self.scrape_interval_s,
            newest_s,
            records,
            (),
            shared_names=self.names,
            one_copy=self.one_copy,
            clock_ahead_s=self.clock_ahead_s,
        )

    def collect(self, queries: Sequence[RangeQuery]) -> Readings:
        """A constant series for each query it knows, a gap for the others."""
        self.asked.append(list(queries))
        readings = Readings()
        for query in queries:
            value = self.values.get(query.query)
            record = QueryRecord("fake", query.query, "no series" if value is None else "ok", int(value is not None))
            readings = replace(readings, queries=(*readings.queries, record))
            if value is None:
                gap = Gap(query.signal, GapReason.NO_SERIES, "the query gave nothing")
                readings = replace(readings, gaps=(*readings.gaps, gap))
            else:
                readings = replace(readings, series=(*readings.series, _constant(query, value)))
        return readings


def _constant(query: RangeQuery, value: float) -> Series:
    count = round((query.window.end_s - query.window.start_s) / query.step_s) + 1
    times_s = tuple(query.window.start_s + index * query.step_s for index in range(count))
    return Series(query.signal, query.unit, times_s, (value,) * count, Proof("fake", query.query), query.simulated)
