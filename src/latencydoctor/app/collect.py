"""Reads everything one diagnosis needs, from whatever sources there are, into one `Collected` record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from latencydoctor.app.ports import FactSource, LogSource, MetricsSource
from latencydoctor.errors import CannotTell, UsageError
from latencydoctor.evidence.queries import (
    Choice,
    Present,
    choose,
    detected,
    render,
    window_count,
    window_length_s,
)
from latencydoctor.evidence.redact import plain
from latencydoctor.model.evidence import Collected, Gap, GapReason, Selection, Window
from latencydoctor.model.readings import Candidate, Discovery, RangeQuery, Readings
from latencydoctor.model.rule import Dialect, LogRule, SignalExpression, SignalName

STALE_SCRAPES = 3
"""Samples older than so many scrapes mean that scraping has stopped or that clocks differ."""

MOST_CANDIDATES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Rules:
    """The content that collecting goes by: dialects in their order of preference, signals, log rules."""

    dialects: tuple[Dialect, ...]
    signals: tuple[SignalName, ...]
    logs: tuple[LogRule, ...] = ()


@dataclass(frozen=True, slots=True)
class CollectRequest:
    """What to look at: the service, as of when, how far back; `window_s` overrides the length of a window."""

    selection: Selection
    at_s: float
    since_s: float = 1800.0
    window_s: float | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """What can be read; a source that is not there is None or left out."""

    metrics: MetricsSource | None = None
    facts: tuple[FactSource, ...] = ()
    logs: LogSource | None = None


def collect(sources: Sources, rules: Rules, request: CollectRequest) -> Collected:
    """Read all sources. What is absent becomes a gap.

    Raises `UsageError` when several services fit (they are listed, never merged) or none does, `SourceError` when a
    source is configured wrongly, and `CannotTell` when nothing at all could be read.
    """
    if sources.metrics is None and not sources.facts and sources.logs is None:
        raise CannotTell("there is no source to read", hint="Name a Prometheus with --prometheus URL, or log files.")
    now_s = round(request.at_s, 3)
    found, failure = _discover(sources.metrics, rules, request.selection, now_s)
    selection = _select(found.candidates, request.selection) if found else request.selection
    window_s = request.window_s or window_length_s(found.scrape_interval_s if found else None)
    count = window_count(request.since_s, window_s)
    whole = Window(now_s - count * window_s, now_s)
    parts: list[Readings] = []
    if failure is not None:
        parts.append(Readings(gaps=(Gap("metrics", GapReason.UNREACHABLE, failure.message, failure.hint),)))
    if found is not None and sources.metrics is not None:
        parts.append(Readings(gaps=(*found.gaps, *_staleness(found, now_s)), queries=found.queries))
        parts.append(_ask(sources.metrics, found, rules, selection, whole, window_s))
    parts += [source.read(selection) for source in sources.facts]
    if sources.logs is not None:
        parts.append(sources.logs.read(rules.logs, whole))
    else:
        parts.append(Readings(gaps=(Gap("logs", GapReason.NOT_CONFIGURED, "no log files were named", "--log PATH"),)))
    if failure is not None and not any(part.series or part.facts or part.log_events for part in parts):
        raise failure
    return Collected(
        now_s=now_s,
        window_s=window_s,
        scrape_interval_s=found.scrape_interval_s if found else None,
        selection=selection,
        dialects=detected(Present(found.names, found.shared_names), rules.dialects) if found else (),
        series=tuple(item for part in parts for item in part.series),
        facts=tuple(item for part in parts for item in part.facts),
        log_events=tuple(item for part in parts for item in part.log_events),
        queries=tuple(item for part in parts for item in part.queries),
        gaps=tuple(item for part in parts for item in part.gaps),
    )


def _discover(
    metrics: MetricsSource | None, rules: Rules, selection: Selection, now_s: float
) -> tuple[Discovery | None, CannotTell | None]:
    """What is there, or why that cannot be told; other sources may still have something to say."""
    if metrics is None:
        return None, None
    try:
        return metrics.discover(rules.dialects, selection, now_s), None
    except CannotTell as error:
        return None, error


def _select(candidates: Sequence[Candidate], wanted: Selection) -> Selection:
    """The one service meant; `UsageError` lists the others when it is not clear."""
    fitting = [item for item in candidates if not wanted.model or item.model == wanted.model]
    if len(fitting) == 1 or not candidates:
        return replace(wanted, model=fitting[0].model if fitting else wanted.model)
    listed = "\n".join(f"  {_arguments(item)}" for item in (fitting or candidates)[:MOST_CANDIDATES_SHOWN])
    more = len(fitting or candidates) - MOST_CANDIDATES_SHOWN
    listed += f"\n  and {more} more" if more > 0 else ""
    if not fitting:
        raise UsageError(f"there is no model {plain(wanted.model)!r} here", hint=f"There are:\n{listed}")
    raise UsageError("several services fit, and they are never merged", hint=f"Choose one:\n{listed}")


def _arguments(candidate: Candidate) -> str:
    parts = [f"--model {shlex.quote(plain(candidate.model))}" if candidate.model else ""]
    parts.append(f"--selector {shlex.quote(plain(candidate.selector, 500))}" if candidate.selector else "")
    return " ".join(part for part in parts if part)


def _staleness(found: Discovery, now_s: float) -> tuple[Gap, ...]:
    if found.newest_sample_s is None or found.scrape_interval_s is None:
        return ()
    age_s = now_s - found.newest_sample_s
    if age_s <= STALE_SCRAPES * found.scrape_interval_s:
        return ()
    detail = f"the newest sample is {age_s:.0f} s old, and one is expected every {found.scrape_interval_s:g} s"
    return (Gap("samples", GapReason.TOO_FEW_SAMPLES, detail, "scraping that runs, and clocks that agree"),)


def _ask(
    metrics: MetricsSource, found: Discovery, rules: Rules, selection: Selection, whole: Window, window_s: float
) -> Readings:
    """Each signal's best expression; the next best for those that gave nothing, until all are tried."""
    choices, gaps = choose(Present(found.names, found.shared_names), rules.dialects, rules.signals)
    model_label = next(
        (item.model_label for item in rules.dialects if found.names.intersection(item.detect) and item.model_label), ""
    )
    answered: list[Readings] = []
    turn = 0
    while choices:
        queries = [_query(choice.expressions[turn], selection, whole, window_s, model_label) for choice in choices]
        readings = metrics.collect(queries)
        choices = _unanswered(choices, readings, turn + 1)
        left = {choice.signal for choice in choices}
        answered.append(replace(readings, gaps=tuple(gap for gap in readings.gaps if gap.signal not in left)))
        turn += 1
    needs = {name.id: name.needs for name in rules.signals}
    found_gaps = [gap for part in answered for gap in part.gaps]
    return Readings(
        series=tuple(item for part in answered for item in part.series),
        gaps=(*gaps, *(replace(gap, needs=gap.needs or needs.get(gap.signal, "")) for gap in found_gaps)),
        queries=tuple(item for part in answered for item in part.queries),
    )


def _unanswered(choices: Sequence[Choice], readings: Readings, turn: int) -> tuple[Choice, ...]:
    """The signals that have nothing yet and another expression to try."""
    silent = {gap.signal for gap in readings.gaps if gap.reason is GapReason.NO_SERIES}
    return tuple(item for item in choices if item.signal in silent and len(item.expressions) > turn)


def _query(
    expression: SignalExpression, selection: Selection, whole: Window, window_s: float, model_label: str
) -> RangeQuery:
    # The range is closed at both ends: the point at its start would tell of the window before it.
    window = Window(whole.start_s + window_s, whole.end_s)
    query = render(expression, selection, window_s, model_label)
    return RangeQuery(expression.signal, expression.unit, query, window, window_s, expression.simulated)
