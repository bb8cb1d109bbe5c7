"""Whether there is an incident, and since when: the definition in the architecture page, 'What the words mean'.

In at least 3 of the last 5 windows with enough requests, p99 (the mean where only means exist, and then said so) above
the SLO, or at least twice the baseline, or errors at or above their limit. The last five windows decide: a service that
was bad earlier and is well now is healthy. Without traffic or without a latency signal it cannot be told.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from latencydoctor.evidence.onset import FEWEST_BASELINE_WINDOWS, baseline_span, split_level, walk_back
from latencydoctor.evidence.series import Grid, Points, median
from latencydoctor.model.configuration import Slo
from latencydoctor.model.evidence import Incident, IncidentState

WINDOWS_JUDGED = 5
WINDOWS_BAD = 3
WINDOWS_RECENT = 10
"""The five judged windows are looked for among so many: what is older says nothing about now."""

WINDOWS_FRESH = 3
"""One of the last three must be among them, or traffic or scraping has ended and nothing is known of now."""

ENOUGH_REQUESTS = 20
"""With fewer, one unlucky request decides a window's p99 and its error ratio."""

P99, MEAN, ERRORS, RATE = "e2e_p99_ms", "e2e_mean_ms", "error_ratio", "request_rate_rps"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The incident and the windows it rests on, by index: the stretch that is looked at, and its baseline if any."""

    incident: Incident
    first: int
    last: int
    baseline: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What a window is held against; `relative` is None without a baseline."""

    latency_ms: float
    error_ratio: float
    relative_ms: float | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """The series that decide, on the grid."""

    grid: Grid
    latency: Points | None
    errors: Points | None
    rate: Points | None
    usual_ms: float | None = None
    """The latency of the baseline that the user named; it counts where the range holds none."""

    @property
    def last(self) -> int:
        return len(self.grid.ends_s) - 1

    def enough(self, index: int) -> bool:
        """Whether the window has enough requests; where no rate is known, a value counts as enough."""
        if self.rate is None:
            return True
        return self.rate.at.get(index, 0.0) * self.grid.window_s >= ENOUGH_REQUESTS

    def says_something(self, index: int) -> bool:
        """Whether the window can be judged at all."""
        held = [points for points in (self.latency, self.errors) if points is not None]
        return self.enough(index) and any(index in points.at for points in held)

    def slow(self, index: int, bounds: _Bounds) -> bool:
        """Whether latency is out of bounds in the window."""
        value = self.latency.at.get(index) if self.latency else None
        if value is None:
            return False
        return value > bounds.latency_ms or (bounds.relative_ms is not None and value >= bounds.relative_ms)

    def failing(self, index: int, bounds: _Bounds) -> bool:
        """Whether errors are out of bounds in the window."""
        value = self.errors.at.get(index) if self.errors else None
        return value is not None and value >= bounds.error_ratio

    def bad(self, index: int, bounds: _Bounds) -> bool | None:
        """Whether the window is out of bounds; None when it cannot be judged, as without its latency."""
        if not self.says_something(index):
            return None
        out = self.slow(index, bounds) or self.failing(index, bounds)
        return out or (False if self.latency is None or index in self.latency.at else None)

    def baseline_of(self, first: int) -> tuple[int, int] | None:
        """The baseline before window `first`, when enough of its windows have values."""
        span = baseline_span(first, self.last)
        points = self.latency or self.errors
        if span is None or points is None or len(points.inside(*span)) < FEWEST_BASELINE_WINDOWS:
            return None
        return span

    def level(self, span: tuple[int, int] | None) -> float | None:
        """The median latency over a span of windows."""
        return median(self.latency.inside(*span)) if span and self.latency else None


def judge(
    points: Mapping[str, Points], grid: Grid, slo: Slo, usual: Mapping[str, Sequence[float]] | None = None
) -> Judgement:
    """Decide from the last windows, and trace a bad stretch back to its onset.

    `usual` holds the signals' values over a baseline outside the range, if one was named.
    """
    rate, latency = points.get(RATE), _latency(points, grid)
    usual_ms = median((usual or {}).get(latency.series.signal, ())) if latency else None
    case = _Case(grid, latency, points.get(ERRORS), rate if rate and rate.at else None, usual_ms)
    recent = range(max(case.last - WINDOWS_RECENT + 1, 0), case.last + 1)
    judged = [index for index in recent if case.says_something(index)][-WINDOWS_JUDGED:]
    bounds = _Bounds(slo.p99_ms, slo.error_ratio)
    # Without a latency nothing is healthy, but failing requests are an incident of their own.
    blind = _is_blind(case, judged) and _count_bad(case, judged, bounds) < WINDOWS_BAD
    fresh = bool(judged) and judged[-1] > case.last - WINDOWS_FRESH
    if len(judged) < WINDOWS_BAD or blind or not fresh:
        return _calm(case, _cannot_tell(case, judged))
    if _count_bad(case, judged, bounds) < WINDOWS_BAD:
        bounds = _with_baseline(case, slo, _step(case))
    if _count_bad(case, judged, bounds) < WINDOWS_BAD and usual_ms:
        # Slow all along: there is no step, and only what was named tells.
        bounds = _Bounds(slo.p99_ms, slo.error_ratio, usual_ms * slo.baseline_ratio)
    if _count_bad(case, judged, bounds) < WINDOWS_BAD:
        return _calm(case, _healthy(case, judged, slo))
    first = _onset(case, slo, bounds)
    incident = _incident(case, judged, bounds, first)
    return Judgement(incident, first, case.last, case.baseline_of(first))


def _is_blind(case: _Case, judged: Sequence[int]) -> bool:
    """Whether too few of the windows have a latency: errors alone do not show that a service is well."""
    return sum(case.latency is not None and index in case.latency.at for index in judged) < WINDOWS_BAD


def _onset(case: _Case, slo: Slo, bounds: _Bounds) -> int:
    """Where latency left its old level, which may be before it passed the SLO.

    The windows before the SLO was passed may belong to a slow rise, so the baseline is taken again before each earlier
    onset found, until none is.
    """
    first = walk_back(case.last, lambda index: case.bad(index, bounds))
    while True:
        wider = _with_baseline(case, slo, first)
        earlier = walk_back(case.last, functools.partial(case.bad, bounds=wider))
        if earlier >= first:
            return first
        first = earlier


def _latency(points: Mapping[str, Points], grid: Grid) -> Points | None:
    """p99 where it has recent values, else the mean; which of them can be judged comes before which has some."""
    last = len(grid.ends_s) - 1
    held = [points[signal] for signal in (P99, MEAN) if signal in points]
    for span, fewest in ((WINDOWS_JUDGED, WINDOWS_BAD), (WINDOWS_RECENT, 1)):
        for one in held:
            if len(one.inside(max(last - span + 1, 0), last)) >= fewest:
                return one
    return None


def _step(case: _Case) -> int | None:
    """The window at which latency stepped to its present level, None when the series is too short."""
    latency = case.latency
    usable = [index for index in range(case.last + 1) if latency and index in latency.at and case.enough(index)]
    split = split_level([latency.at[index] for index in usable]) if latency else None
    return usable[split] if split is not None else None


def _with_baseline(case: _Case, slo: Slo, first: int | None) -> _Bounds:
    level = case.level(case.baseline_of(first)) if first is not None else None
    level = case.usual_ms if level is None else level
    return _Bounds(slo.p99_ms, slo.error_ratio, level * slo.baseline_ratio if level else None)


def _count_bad(case: _Case, judged: list[int], bounds: _Bounds) -> int:
    return sum(case.bad(index, bounds) is True for index in judged)


def _calm(case: _Case, incident: Incident) -> Judgement:
    """What is looked at when there is no incident: the last five windows, beside those before them."""
    first = max(case.last - WINDOWS_JUDGED + 1, 0)
    return Judgement(incident, first, case.last, case.baseline_of(first))


def _incident(case: _Case, judged: list[int], bounds: _Bounds, first: int) -> Incident:
    slow = [index for index in judged if case.slow(index, bounds)]
    failing = [index for index in judged if case.failing(index, bounds)]
    bad = _count_bad(case, judged, bounds)
    share = f"in {bad} of the last {len(judged)} windows of {case.grid.window_s:g} s"
    by_errors = len(failing) > len(slow)
    decisive = case.errors if by_errors else case.latency
    value = median(decisive.inside(judged[0], judged[-1])) if decisive else None
    limit = bounds.error_ratio if by_errors else _latency_limit(value, bounds)
    if by_errors:
        what = f"{(value or 0) * 100:.3g} % of the requests fail, the limit is {limit * 100:.3g} %"
    elif limit == bounds.latency_ms:
        what = f"{_latency_name(case)} is {_ms(value)}, the SLO is {_ms(limit)}"
    else:
        what = f"{_latency_name(case)} is {_ms(value)}, at or above the limit set by the baseline, {_ms(limit)}"
    # When nothing is known from before the bad stretch, its first window says nothing of when it began.
    dated = any(case.says_something(index) for index in range(first))
    return Incident(
        state=IncidentState.INCIDENT,
        reason=f"{what}, {share}" + ("" if dated else "; it had begun before the first window that is known"),
        since_s=case.grid.window(first, first).start_s if dated else None,
        signal=decisive.series.signal if decisive else None,
        value=value,
        limit=limit,
        windows_bad=bad,
        windows_judged=len(judged),
    )


def _latency_limit(value: float | None, bounds: _Bounds) -> float:
    if bounds.relative_ms is None or (value is not None and value > bounds.latency_ms):
        return bounds.latency_ms
    return bounds.relative_ms


def _healthy(case: _Case, judged: list[int], slo: Slo) -> Incident:
    value = median(case.latency.inside(judged[0], judged[-1])) if case.latency else None
    errors = median(case.errors.inside(judged[0], judged[-1])) if case.errors else None
    told = f", {errors * 100:.3g} % of the requests fail" if errors is not None else ""
    return Incident(
        state=IncidentState.HEALTHY,
        reason=f"{_latency_name(case)} is {_ms(value)}, the SLO is {_ms(slo.p99_ms)}{told}",
        since_s=None,
        signal=case.latency.series.signal if case.latency else None,
        value=value,
        limit=slo.p99_ms,
        windows_bad=_count_bad(case, judged, _Bounds(slo.p99_ms, slo.error_ratio)),
        windows_judged=len(judged),
    )


def _cannot_tell(case: _Case, judged: list[int]) -> Incident:
    recent = case.rate.inside(max(case.last - WINDOWS_RECENT + 1, 0), case.last) if case.rate else []
    if recent and max(recent) == 0:
        reason = "there is no traffic"
    elif judged and judged[-1] <= case.last - WINDOWS_FRESH:
        silent_s = (case.last - judged[-1]) * case.grid.window_s
        reason = f"the last {silent_s:g} s say nothing: traffic or scraping has ended"
    elif case.latency is None or (len(judged) >= WINDOWS_BAD and _is_blind(case, judged)):
        reason = "no latency is measured here, or it has no recent values"
    else:
        reason = f"only {len(judged)} of the last {WINDOWS_RECENT} windows have at least {ENOUGH_REQUESTS} requests"
    return Incident(IncidentState.CANNOT_TELL, reason, None, None, None, None, 0, len(judged))


def _latency_name(case: _Case) -> str:
    mean = case.latency is not None and case.latency.series.signal == MEAN
    return "the mean (no percentile is measured here)" if mean else "p99"


def _ms(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"
