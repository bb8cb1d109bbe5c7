"""Reads a verification window from a metrics source, and finds reasons not to believe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from latencydoctor.app.ports import MetricsSource
from latencydoctor.errors import LatencyDoctorError
from latencydoctor.evidence.queries import Present, narrowed, render, window_length_s
from latencydoctor.model.evidence import Selection, Series, Window
from latencydoctor.model.readings import Discovery, RangeQuery
from latencydoctor.model.remedy import Reading
from latencydoctor.model.rule import Dialect

P99, ERRORS, RATE = "e2e_p99_ms", "error_ratio", "request_rate_rps"
MEMORY, RESETS, HITS = "accelerator_memory_used_bytes", "process_resets", "cache_hit_ratio"

ALSO = (
    "batch_size_mean", "e2e_p50_ms", "instance_busy_ratio", "vip_p99_ms", "vip_error_ratio", "standard_p99_ms",
    "shed_ratio", "request_rate_rps", "network_time_ms",
)  # fmt: skip
"""Read for whoever wants to hold them against a prediction, and for plans that are judged by them."""

VIP_RATE = "vip_request_rate_rps"

NEEDED = (P99, ERRORS, RATE)
"""Without one of these nothing can be judged."""


class Arm(Enum):
    """One side of a canary."""

    CANARY = "canary"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class MetricsVerifier:
    """Implements the port `Verifier` over a metrics source; `dialects` are tried in their order for each signal.

    A source that stopped scraping before the window's end is found by asking for the request rate over the last few
    scrapes alone, a restarted server (its counters begin anew) by `process_resets`.
    """

    source: MetricsSource
    dialects: Sequence[Dialect]
    selection: Selection
    arm: Arm | None = None
    """Whose requests alone are read: what the front end measures; memory and restarts are the whole target's."""

    def read(self, window: Window) -> Reading:
        """The window's figures; what is absent is None and the note says what."""
        try:
            discovery = self.source.discover(self.dialects, self.selection, window.end_s)
        except LatencyDoctorError as error:  # no answer, refused, a selector it does not take: no data, whatever it is
            return _nothing(error.message)
        queries = {
            name: query
            # One side of a canary is held against the other and not against a prediction.
            for name in (*NEEDED, MEMORY, RESETS, HITS, *((*ALSO, VIP_RATE) if self.arm is None else ()))
            if (query := self._query(name, discovery, window, window.length_s)) is not None
        }
        absent = [name for name in NEEDED if name not in queries]
        if absent:
            told = ", ".join(absent) if self.arm is None else "label that tells a canary's requests from the others'"
            return _nothing(f"the metrics have no {told}")
        fresh_s = min(window.length_s, window_length_s(discovery.scrape_interval_s))
        fresh = self._query(RATE, discovery, window, fresh_s)
        asked = [*queries.values(), *([fresh] if fresh else [])]
        answers = self.source.collect(asked)
        found = {series.proof.query: _at_end(series, window) for series in answers.series}
        values = {name: found.get(query.query) for name, query in queries.items()}
        rate = values[RATE]
        return Reading(
            p99_ms=values[P99],
            error_ratio=values[ERRORS],
            memory_bytes=values.get(MEMORY),
            requests=None if rate is None else rate * window.length_s,
            note=_doubt(rate, found.get(fresh.query) if fresh else None, values.get(RESETS)),
            hit_ratio=values.get(HITS),
            also=_also(values, window.length_s) if self.arm is None else (),
        )

    def _query(self, signal: str, discovery: Discovery, window: Window, length_s: float) -> RangeQuery | None:
        """The first dialect's expression that the metrics there allow; one point, at the window's end."""
        present = Present(discovery.names, discovery.shared_names)
        for dialect in self.dialects:
            matcher = self._matcher(signal, dialect)
            for item in dialect.signals:
                if item.signal == signal and matcher is not None and present.has(item):
                    selection = narrowed(narrowed(self.selection, matcher), discovery.one_copy)
                    text = render(item, selection, length_s, dialect.model_label)
                    # The PromQL itself looks back over the length.
                    point = Window(window.end_s - length_s, window.end_s)
                    return RangeQuery(signal, item.unit, text, point, length_s, item.simulated)
        return None

    def _matcher(self, signal: str, dialect: Dialect) -> str | None:
        """The label matcher that narrows a signal to the arm, "" for none, None where the dialect has no arms."""
        if self.arm is None or signal not in NEEDED:
            return ""
        if dialect.arms is None:
            return None
        return dialect.arms.canary if self.arm is Arm.CANARY else dialect.arms.baseline


@dataclass(frozen=True, slots=True)
class MetricsArms:
    """Implements the port `ArmsVerifier` over a metrics source."""

    canary: MetricsVerifier
    baseline: MetricsVerifier

    @staticmethod
    def over(whole: MetricsVerifier) -> MetricsArms:
        """Both arms of what `whole` reads."""
        return MetricsArms(replace(whole, arm=Arm.CANARY), replace(whole, arm=Arm.BASELINE))

    def read(self, window: Window) -> tuple[Reading, Reading]:
        """The canary's figures and its peers' over the same span of time."""
        return self.canary.read(window), self.baseline.read(window)


def _also(values: Mapping[str, float | None], length_s: float) -> tuple[tuple[str, float], ...]:
    found = [(name, value) for name in ALSO if (value := values.get(name)) is not None]
    vip_rps = values.get(VIP_RATE)
    return (*found, *([("vip_requests", vip_rps * length_s)] if vip_rps is not None else []))


def _nothing(note: str) -> Reading:
    return Reading(None, None, None, None, note)


def _at_end(series: Series, window: Window) -> float | None:
    """The point at the window's end; a range answer begins with one at its start, which is another window's."""
    inside = [value for at, value in zip(series.times_s, series.values, strict=True) if abs(at - window.end_s) < 1]
    return inside[-1] if inside else None


def _doubt(rate: float | None, fresh_rps: float | None, resets: float | None) -> str:
    if rate is not None and fresh_rps is None:
        return "the metrics are stale: nothing was scraped at the window's end"
    if resets is not None and resets > 0:
        return "the server was restarted inside the window, so its counters began anew"
    return ""
