"""What a metrics source is asked for one service, in three turns at most: best expressions, all others, baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from latencydoctor.app.ports import MetricsSource
from latencydoctor.evidence.buckets import bounds_in_ms, bounds_query
from latencydoctor.evidence.queries import Choice, Offer, render
from latencydoctor.model.evidence import Gap, GapReason, Selection, Series, Window
from latencydoctor.model.readings import RangeQuery, Readings


@dataclass(frozen=True, slots=True)
class Course:
    """The service asked about and the points asked for: one every `window_s` from `whole`, and from `baseline`."""

    selection: Selection
    whole: Window
    window_s: float
    server_label: str
    """The label that names models in the server's dialect; dialects that have none of their own use it."""
    baseline: Window | None = None

    def query(self, offer: Offer) -> RangeQuery:
        """One signal over the whole range."""
        label = offer.model_label or self.server_label
        text = render(offer.expression, self.selection, self.window_s, label)
        return RangeQuery(
            offer.expression.signal,
            offer.expression.unit,
            text,
            inside(self.whole, self.window_s),
            self.window_s,
            offer.expression.simulated,
        )


def inside(range_: Window, window_s: float) -> Window:
    """A range query is closed at both ends: the point at the range's start would tell of the window before it."""
    return Window(range_.start_s + window_s, range_.end_s)


def ask(metrics: MetricsSource, choices: Sequence[Choice], course: Course) -> tuple[Readings, tuple[Series, ...]]:
    """Each signal's best expression that gives something, and the same over the baseline where there is one.

    All expressions that are left are asked at once in the second turn, so that the cost does not grow with the number
    of dialects; the first in the dialects' order that gives something counts.
    """
    first = {choice.signal: [course.query(choice.offers[0])] for choice in choices}
    found = _best(metrics.collect([query for queries in first.values() for query in queries]), first)
    silent = {gap.signal for gap in found.gaps if gap.reason is GapReason.NO_SERIES}
    rest = {
        choice.signal: _distinct([course.query(offer) for offer in choice.offers[1:]], first[choice.signal])
        for choice in choices
        if choice.signal in silent
    }
    rest = {signal: queries for signal, queries in rest.items() if queries}
    if rest:
        more = _best(metrics.collect([query for queries in rest.values() for query in queries]), rest)
        found = Readings(
            series=(*found.series, *more.series),
            gaps=(*(gap for gap in found.gaps if gap.signal not in rest), *more.gaps),
            queries=(*found.queries, *more.queries),
        )
    if course.baseline is None:
        return found, ()
    return _with_baseline(metrics, found, course)


def ask_bounds(metrics: MetricsSource, found: Readings, course: Course) -> Readings:
    """The bounds of the histogram that p99 was read from, as facts, and the query; no facts where there is none.

    A prediction without them is one of what requests take, and says so; nothing else misses them.
    """
    query = bounds_query(found.series, course.whole.end_s, course.window_s)
    if query is None:
        return Readings()
    answered = metrics.collect([query])
    return Readings(facts=bounds_in_ms(answered.facts), queries=answered.queries)


def _distinct(queries: Sequence[RangeQuery], asked: Sequence[RangeQuery]) -> list[RangeQuery]:
    seen = {query.query for query in asked}
    kept: list[RangeQuery] = []
    for query in queries:
        if query.query not in seen:
            seen.add(query.query)
            kept.append(query)
    return kept


def _best(readings: Readings, asked: dict[str, list[RangeQuery]]) -> Readings:
    """Of several answers for one signal the first in the order asked, else the gap that says most."""
    series: list[Series] = []
    gaps: list[Gap] = []
    for signal, queries in asked.items():
        held = {item.proof.query: item for item in readings.series if item.signal == signal}
        answer = next((held[query.query] for query in queries if query.query in held), None)
        if answer is not None:
            series.append(answer)
            continue
        told = [gap for gap in readings.gaps if gap.signal == signal]
        told.sort(key=lambda gap: gap.reason is GapReason.NO_SERIES)
        gaps += told[:1] or [Gap(signal, GapReason.BAD_ANSWER, "the source said nothing about it")]
    return replace(readings, series=tuple(series), gaps=tuple(gaps))


def _with_baseline(metrics: MetricsSource, found: Readings, course: Course) -> tuple[Readings, tuple[Series, ...]]:
    """The expressions that gave something, once more over the baseline that was named."""
    assert course.baseline is not None, "the caller has checked"
    window = inside(course.baseline, course.window_s)
    queries = [
        RangeQuery(item.signal, item.unit, item.proof.query, window, course.window_s, item.simulated)
        for item in found.series
    ]
    before = metrics.collect(queries) if queries else Readings()
    if not before.series:
        reason = before.gaps[0].reason if before.gaps else GapReason.NO_SERIES
        gap = Gap("baseline", reason, "the baseline that was named holds no values", "a --baseline with traffic")
        found = replace(found, gaps=(*found.gaps, gap))
    return replace(found, queries=(*found.queries, *before.queries)), before.series
