"""Works straight from metrics pages: reads each several times, then answers as a Prometheus that scraped them would.

There is no history: what a page held before the first scrape is not known, and the discovery says so.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from latencydoctor.errors import CannotTell, UsageError
from latencydoctor.evidence.promql import (
    Expression,
    PageError,
    PromqlError,
    Recording,
    UnsupportedError,
    evaluate_at,
    parse,
)
from latencydoctor.model.configuration import MetricsPage
from latencydoctor.model.evidence import Gap, GapReason, Proof, QueryRecord, Selection
from latencydoctor.model.readings import Discovery, RangeQuery, Readings
from latencydoctor.model.rule import Dialect
from latencydoctor.sources.answers import Labelled, RangeAnswer, read_range
from latencydoctor.sources.discovery import Finder
from latencydoctor.sources.pages_fate import Failure, Fate, gaps_of, stories
from latencydoctor.sources.pages_http import PageReader, places_of
from latencydoctor.sources.pages_schedule import (
    DISCOVERY_S,
    LONGEST_SCRAPE_S,
    LONGEST_SCRAPE_SHARE,
    PATIENCE_RATIO,
    Schedule,
    make_schedule,
)
from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.transport import Deadline, FailureKind, TransportError

SOURCE = "page"
_IDENTIFIER = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")

Tell = Callable[[float, str], None]
"""Hears what share of the scrapes is done, and a line about it."""


@dataclass(slots=True)
class PageMetrics:
    """A `MetricsSource` over pages. `record` reads them and comes first; nothing is asked of a server after it.

    `scrapes`, `every_s` and `share_ratio` are as `make_schedule` takes them; the deadline holds for reading and
    computing together.
    """

    pages: Sequence[MetricsPage]
    scrapes: int | None
    every_s: float | None
    deadline_s: float
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    share_ratio: float = 1.0
    schedule: Schedule = field(init=False)
    _fates: list[Fate] = field(init=False)
    _recording: Recording = field(init=False, default_factory=Recording)
    _deadline: Deadline = field(init=False)
    _reading: Deadline = field(init=False, default_factory=Deadline)
    _times_s: list[float] = field(init=False, default_factory=list)
    _read_times_s: list[float] = field(init=False, default_factory=list)
    _patience_s: float = field(init=False)
    _took_s: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.schedule = make_schedule(self.scrapes, self.every_s, self.deadline_s, self.share_ratio)
        self._fates = [Fate(place) for place in places_of(self.pages, self.environment)]
        self._deadline = Deadline.after(self.deadline_s)

    def record(self, dialects: Sequence[Dialect], tell: Tell) -> float:
        """Read every page as often as the schedule says; the time of the last scrape that gave one, since the epoch.

        Only metrics that `dialects` speak of are kept. Raises `SourceError` for an address that no second try would
        mend; a reading that fails is a gap of the discovery, and the page is read on.
        """
        self._deadline = Deadline.after(self.deadline_s)
        self._reading = reading = Deadline(self._deadline.ends_s - DISCOVERY_S)
        self._patience_s = self.schedule.scrape_timeout_s
        self._recording = Recording(wanted_names(dialects))
        readers = [PageReader(fate.place, self.schedule.scrapes) for fate in self._fates]
        began_s, began_mono_s = time.time(), time.monotonic()
        self._times_s, self._read_times_s = [], []
        due = 0
        while len(self._times_s) < self.schedule.scrapes:
            wait_s = due * self.schedule.every_s - (time.monotonic() - began_mono_s)
            if wait_s <= -self.schedule.every_s:
                # A slow page has made this one so late that the next is due: the rhythm is kept.
                due += 1
                continue
            if reading.left_s <= max(wait_s, 0.0) + self._took_s:
                break
            time.sleep(max(wait_s, 0.0))
            after_s = self.schedule.aligned_s(due, time.monotonic() - began_mono_s)
            self._scrape(readers, round(began_s + after_s, 3), Deadline.after(min(self._patience_s, reading.left_s)))
            due += 1
            done, planned = len(self._times_s), self.schedule.scrapes
            tell(done / planned, f"read the metrics pages {done} of {planned} times")
            if all(fate.is_hopeless for fate in self._fates):
                break
        self.schedule = self.schedule.kept(self._read_times_s)
        return self._read_times_s[-1] if self._read_times_s else began_s

    def discover(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        """See `MetricsSource.discover`; `CannotTell` when no page was read twice."""
        self._refuse_too_few()
        self._deadline = Deadline.after(max(self._deadline.left_s, DISCOVERY_S))
        _refuse_selector(selection.selector)
        finder = Finder(self._names, self._instant, self._deadline)
        try:
            found = finder.find(dialects, selection, at_s)
        except TransportError as error:
            raise _not_understood(error, selection.selector) from error
        return replace(
            found,
            scrape_interval_s=self.schedule.every_s,
            newest_sample_s=self._read_times_s[-1],
            queries=tuple(replace(record, source=SOURCE) for record in found.queries),
            gaps=(*found.gaps, *self._gaps()),
        )

    def collect(self, queries: Sequence[RangeQuery]) -> Readings:
        """See `MetricsSource.collect`."""
        pairs = [(query, self._range(query)) for query in queries]
        return Readings(
            series=tuple(answer.series for _, answer in pairs if answer.series is not None),
            facts=tuple(
                replace(fact, proof=Proof(SOURCE, query.query)) for query, answer in pairs for fact in answer.facts
            ),
            gaps=tuple(answer.gap for _, answer in pairs if answer.gap is not None),
            queries=tuple(
                QueryRecord(SOURCE, query.query, answer.gap.reason.value if answer.gap else "ok", answer.series_count)
                for query, answer in pairs
            ),
        )

    def _scrape(self, readers: Sequence[PageReader], time_s: float, within: Deadline) -> None:
        """Read all pages side by side, and take them in."""
        within_s = within.left_s
        late: str | Failure = TransportError(FailureKind.DEADLINE, f"no page within {within_s:.2g} s")

        def read(reader: PageReader) -> str | Failure:
            answer = reader.read(within)
            return late if isinstance(answer, TransportError) and answer.kind is FailureKind.DEADLINE else answer

        answers = run_side_by_side(read, readers, within, late, workers=len(readers))
        took_s = within_s - within.left_s
        self._times_s.append(time_s)
        is_read = False
        for fate, answer in zip(self._fates, answers, strict=True):
            if not isinstance(answer, str):
                self._recording.add_failure(time_s, fate.place.instance)
            failure = self._take_in(fate, answer, time_s) if isinstance(answer, str) else answer
            is_read |= failure is None
            if failure is not None:
                fate.failed(failure)
        if is_read:
            self._read_times_s.append(time_s)
            self._took_s = took_s
            self._patience_s = max(self.schedule.scrape_timeout_s, PATIENCE_RATIO * took_s)
        else:
            # A flooded server may need longer than the rhythm allows, and there is no other page to keep it for.
            longest_s = min(LONGEST_SCRAPE_S, LONGEST_SCRAPE_SHARE * self._reading.left_s)
            self._patience_s = max(self.schedule.scrape_timeout_s, min(PATIENCE_RATIO * self._patience_s, longest_s))

    def _take_in(self, fate: Fate, page: str, time_s: float) -> PageError | None:
        try:
            count = self._recording.add_page(time_s, fate.place.instance, page)
        except PageError as error:
            return error
        fate.good += 1
        fate.repeated = max(fate.repeated, count.repeated)
        fate.off_clock = max(fate.off_clock, count.off_clock)
        return None

    def _names(self, matchers: str, _start_s: float, end_s: float) -> list[object]:
        if not matchers:
            return [*self._recording.names]
        found = self._instant(f'count by (__name__) (last_over_time({{__name__!="",{matchers}}}[10m]))', end_s, 1)
        return [element["metric"].get("__name__") for element in found if isinstance(element, dict)]

    def _instant(self, query: str, at_s: float, _count: int) -> list[object]:
        """As Prometheus's own answer, so that one reader serves both."""
        try:
            elements = evaluate_at(self._recording, parse(query), at_s)
        except PromqlError as error:
            # Of the kind by which an expression that cannot be asked is told from a source that is away.
            raise TransportError(FailureKind.STATUS, str(error), 400) from error
        return [{"metric": dict(one.labels), "value": [at_s, repr(one.value)]} for one in elements]

    def _range(self, query: RangeQuery) -> RangeAnswer:
        if self._deadline.left_s <= 0:
            gap = Gap(query.signal, GapReason.DEADLINE, "the time for all queries was used up")
            return RangeAnswer(None, gap, 0)
        try:
            elements = self._elements(query, parse(query.query))
        except UnsupportedError as error:
            detail = f"without a Prometheus there is no {error}"
            return RangeAnswer(None, Gap(query.signal, GapReason.NOT_SUPPORTED, detail, "a Prometheus"), 0)
        except PromqlError as error:
            return RangeAnswer(None, Gap(query.signal, GapReason.BAD_ANSWER, str(error)), 0)
        answer = read_range(query, elements)
        if answer.series is None:
            return answer
        return replace(answer, series=replace(answer.series, proof=Proof(SOURCE, query.query)))

    def _elements(self, query: RangeQuery, tree: Expression) -> list[Labelled]:
        """Each series' values at the query's moments; before the second scrape nothing is known."""
        points: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
        for index in range(round(query.window.length_s / query.step_s) + 1):
            at_s = query.window.start_s + index * query.step_s
            if len(self._read_times_s) < 2 or at_s < self._read_times_s[1]:
                continue
            for one in evaluate_at(self._recording, tree, at_s):
                points.setdefault(one.labels, []).append((at_s, one.value))
        return [Labelled(dict(labels), tuple(samples)) for labels, samples in points.items()]

    def _refuse_too_few(self) -> None:
        if any(fate.good >= 2 for fate in self._fates):
            return
        raise CannotTell(
            f"no metrics page could be read twice: {stories(self._fates)}",
            hint="Check that the server runs and that the URL is right (--metrics-url URL).",
        )

    def _gaps(self) -> list[Gap]:
        schedule = self.schedule
        span_s = self._read_times_s[-1] - self._read_times_s[0]
        history = (
            f"the pages were read for {span_s:.3g} s and are judged in windows of {schedule.window_s:g} s: there is no "
            "time before to compare with, and what had begun by then has no known beginning"
        )
        past = Gap("history", GapReason.TOO_FEW_SAMPLES, history, "a Prometheus that scrapes these pages")
        return [past, *gaps_of(self._fates)]


def wanted_names(dialects: Sequence[Dialect]) -> Collection[str] | None:
    """The metric names that dialects may ask for (and other words of theirs, which do no harm); None for all."""
    texts = [item.expr for dialect in dialects for item in dialect.signals]
    if any("__name__" in text for text in texts):
        return None
    names = {name for text in texts for name in _IDENTIFIER.findall(text)}
    return names.union(*(dialect.detect for dialect in dialects))


def _refuse_selector(selector: str) -> None:
    try:
        parse(f"x{{{selector}}}")
    except PromqlError as error:
        hint = 'A selector is a list of label matchers, such as namespace="prod",cluster="eu".'
        raise UsageError(f"the selector cannot be used: {error}", hint=hint) from error


def _not_understood(error: TransportError, selector: str) -> CannotTell:
    """Why nothing was found out about pages that were read."""
    if error.kind is FailureKind.DEADLINE:
        return CannotTell(
            "the pages were read, but the time was up before it was found out what they hold",
            hint="Give a longer --deadline, or fewer pages: large ones take their time.",
        )
    hint = "Check --selector." if selector else "Give --prometheus URL instead, if there is one."
    return CannotTell(f"the pages cannot be made sense of: {error}", hint=hint)
