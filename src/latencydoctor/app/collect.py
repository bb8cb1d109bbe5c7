"""Reads everything one diagnosis needs, from whatever sources there are, into one `Collected` record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from latencydoctor.app.ports import FactSource, LogSource, MetricsSource
from latencydoctor.app.questions import Course, ask, ask_bounds
from latencydoctor.errors import CannotTell, UsageError
from latencydoctor.evidence.queries import Present, choose, detected, narrowed, window_count, window_length_s
from latencydoctor.evidence.redact import plain
from latencydoctor.model.evidence import Collected, Gap, GapReason, Selection, Series, Window
from latencydoctor.model.readings import Candidate, Discovery, Readings
from latencydoctor.model.rule import Dialect, LogRule, SignalName

STALE_SCRAPES = 3
"""Samples older than so many scrapes mean that scraping has stopped or that clocks differ."""

CLOCKS_APART_S = 5.0
"""Less than this is a slow network and a header that has whole seconds."""

MOST_CANDIDATES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Rules:
    """The content that collecting goes by: dialects in their order of preference, signals, log rules."""

    dialects: tuple[Dialect, ...]
    signals: tuple[SignalName, ...]
    logs: tuple[LogRule, ...] = ()


@dataclass(frozen=True, slots=True)
class CollectRequest:
    """What to look at: the service, as of when, how far back; `window_s` overrides the length of a window.

    `baseline` is what to compare with where the range holds nothing from before the incident.
    """

    selection: Selection
    at_s: float
    since_s: float = 1800.0
    window_s: float | None = None
    baseline: Window | None = None


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
        # Logs alone say what broke, and never how slow it is: they are no answer here.
        hint = "Name a Prometheus with --prometheus URL, or a metrics page with --metrics-url URL."
        raise CannotTell("there is no source to read", hint=hint)
    now_s = round(request.at_s, 3)
    found, failure = _discover(sources.metrics, rules, request.selection, now_s)
    selection = _select(found.candidates, request.selection) if found else request.selection
    window_s = request.window_s or window_length_s(found.scrape_interval_s if found else None)
    whole = Window(now_s - window_count(request.since_s, window_s) * window_s, now_s)
    baseline = _whole_windows(request.baseline, window_s)
    parts: list[Readings] = []
    before: tuple[Series, ...] = ()
    if found is not None and sources.metrics is not None:
        parts.append(Readings(gaps=(*found.gaps, *_staleness(found, now_s), *_clocks(found)), queries=found.queries))
        # Sums over two Prometheus servers that scrape the same targets would count everything twice.
        one = narrowed(selection, found.one_copy)
        course = Course(one, whole, window_s, _server_label(found, rules, selection), baseline)
        answered, before = _ask(sources.metrics, found, rules, course)
        parts.append(answered)
    # What another source says of a signal of its own comes before what the metrics might have said of it.
    parts += [*_beside_metrics(sources, rules, selection, whole), Readings(gaps=_unasked(rules, failure))]
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
        baseline=baseline,
        baseline_series=before,
    )


def _unasked(rules: Rules, failure: CannotTell | None) -> tuple[Gap, ...]:
    """The metrics and every signal that they might have given, with the reason why they could not be asked."""
    if failure is None:
        return ()
    offered = {item.signal for dialect in rules.dialects for item in dialect.signals}
    names = ("metrics", *(name.id for name in rules.signals if name.id in offered))
    return tuple(Gap(name, GapReason.UNREACHABLE, failure.message, failure.hint) for name in names)


def _beside_metrics(sources: Sources, rules: Rules, selection: Selection, whole: Window) -> list[Readings]:
    """What has no history in a Prometheus: facts and logs."""
    parts = [source.read(selection) for source in sources.facts]
    if sources.logs is not None:
        return [*parts, sources.logs.read(rules.logs, whole)]
    gap = Gap("logs", GapReason.NOT_CONFIGURED, "no log files were named", "--log PATH")
    return [*parts, Readings(gaps=(gap,))]


def _whole_windows(baseline: Window | None, window_s: float) -> Window | None:
    """As many whole windows as fit, up to the end named."""
    if baseline is None:
        return None
    return Window(baseline.end_s - window_count(baseline.length_s, window_s) * window_s, baseline.end_s)


def _server_label(found: Discovery, rules: Rules, selection: Selection) -> str:
    """How models are named by the server that has the chosen one, else by the first server spoken here."""
    named = [item.model_label for item in found.candidates if item.model == selection.model and item.model_label]
    spoken = [item.model_label for item in rules.dialects if item.model_label and found.names.intersection(item.detect)]
    return next(iter([*named, *spoken]), "")


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


def _clocks(found: Discovery) -> tuple[Gap, ...]:
    """A Prometheus whose clock differs from this machine's shows the wrong windows."""
    ahead_s = found.clock_ahead_s or 0.0
    if abs(ahead_s) <= max(CLOCKS_APART_S, found.scrape_interval_s or 0.0):
        return ()
    detail = f"the metrics source's clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this one's"
    return (Gap("clock", GapReason.BAD_ANSWER, detail, "clocks that agree (NTP), or --at with the source's time"),)


def _ask(metrics: MetricsSource, found: Discovery, rules: Rules, course: Course) -> tuple[Readings, tuple[Series, ...]]:
    """Every signal that the metrics there may give, and what a gap needs."""
    choices, gaps = choose(Present(found.names, found.shared_names), rules.dialects, rules.signals)
    answered, before = ask(metrics, choices, course)
    bounds = ask_bounds(metrics, answered, course)
    needs = {name.id: name.needs for name in rules.signals}
    told = (replace(gap, needs=gap.needs or needs.get(gap.signal, "")) for gap in answered.gaps)
    queries = (*answered.queries, *bounds.queries)
    return replace(answered, facts=bounds.facts, gaps=(*gaps, *told), queries=queries), before
