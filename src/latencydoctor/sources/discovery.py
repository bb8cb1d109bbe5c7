"""Finds out what a Prometheus holds: metric names, the services there, how often they are scraped.

Three or four requests, whatever the number of dialects: the names once (twice with a selector), then everything else in
one combined question, and the time between samples of what that found in another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from latencydoctor.evidence import presence
from latencydoctor.model.evidence import Gap, GapReason, QueryRecord, Selection
from latencydoctor.model.readings import Discovery
from latencydoctor.model.rule import Dialect
from latencydoctor.sources.answers import Labelled, parse_elements
from latencydoctor.sources.services import candidates_of, fullest_copy
from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.together import Elements, ask_together
from latencydoctor.sources.transport import Deadline, FailureKind, TransportError

LOOK_BACK_S = 600.0
"""Metric names seen within this time count as present; the second half of a long incident may lack some."""

_FRONT_SIGNAL = "request_rate_rps"

Names = Callable[[str, float, float], list[object]]
Instant = Callable[[str, float, int], list[object]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parts of the combined question, by what they are for."""

    servers: tuple[tuple[str, str], ...]
    fronts: tuple[str, ...]
    selector: str

    @property
    def metrics(self) -> tuple[str, ...]:
        return (*(metric for metric, _ in self.servers), *self.fronts)

    def expressions(self) -> list[str]:
        """Services, places, one series each, newest samples, copies, in that order."""
        asked = [presence.service_query(metric, self.selector) for metric, _ in self.servers]
        asked += [presence.place_query(metric, self.selector) for metric in self.fronts]
        asked += [presence.one_series_query(metric, self.selector) for metric in self.metrics]
        asked += [presence.newest_query(metric, self.selector) for metric in self.metrics]
        return asked + [
            presence.copies_query(metric, self.selector, label)
            for metric in self.metrics[:1]
            for label in presence.COPY_LABELS
        ]


@dataclass(slots=True)
class Finder:
    """One discovery; the two callables ask Prometheus and raise `TransportError`."""

    names: Names
    instant: Instant
    deadline: Deadline
    records: list[QueryRecord] = field(default_factory=list)

    def find(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        """Look what is there; `TransportError` when the source fails as a whole."""
        selector = selection.selector.strip().strip(",")
        known = {name for dialect in dialects for name in dialect.detect}
        known |= {name for dialect in dialects for item in dialect.signals for name in item.requires}
        present, shared = self._names([selector, ""] if selector else [""], known, at_s)
        asked = _questions(dialects, present, selector)
        answers = self._ask(asked.expressions(), at_s)
        cadences = self._cadences(asked, answers, at_s)
        found = Discovery(present, (), None, None, (), (), shared_names=shared)
        return replace(_understood(found, asked, answers, cadences), queries=tuple(self.records))

    def _cadences(self, asked: _Asked, answers: Sequence[Elements], at_s: float) -> list[Elements]:
        """Seconds between the samples of one series of each metric: to ask it of all of them would cost most of all."""
        first = len(asked.servers) + len(asked.fronts)
        series = [
            (metric, answer[0].labels)
            for metric, answer in zip(asked.metrics, answers[first : first + len(asked.metrics)], strict=True)
            if not isinstance(answer, TransportError) and answer
        ]
        failed: list[Elements] = [answer for answer in answers[first:] if isinstance(answer, TransportError)]
        queries = [presence.cadence_query(metric, presence.exactly(labels)) for metric, labels in series]
        return [*self._ask(queries, at_s), *failed]

    def _names(self, selectors: Sequence[str], known: set[str], at_s: float) -> tuple[frozenset[str], frozenset[str]]:
        """The metric names under the first selector, and under the last; `TransportError` without them."""
        late: frozenset[str] | TransportError = _late()
        found: list[frozenset[str]] = []
        for matchers, answer in zip(
            selectors,
            run_side_by_side(lambda held: self._names_of(held, known, at_s), selectors, self.deadline, late),
            strict=True,
        ):
            if isinstance(answer, TransportError):
                raise answer
            query = f"metric names of {{{matchers}}}" if matchers else "metric names"
            self.records.append(QueryRecord("prometheus", query, "ok", len(answer)))
            found.append(answer)
        return found[0], found[-1]

    def _names_of(self, matchers: str, known: set[str], at_s: float) -> frozenset[str] | TransportError:
        try:
            names = self.names(matchers, at_s - LOOK_BACK_S, at_s)
            return frozenset(name for name in names if isinstance(name, str))
        except TransportError as error:
            if error.kind is not FailureKind.TOO_LARGE:
                return error
        try:
            elements = parse_elements(self.instant(presence.names_query(known, matchers), at_s, len(known)))
        except TransportError as error:
            return error
        return frozenset(element.labels.get("__name__", "") for element in elements)

    def _ask(self, expressions: Sequence[str], at_s: float) -> list[Elements]:
        if not expressions:
            return []
        late: list[Elements] = [_late()] * len(expressions)

        def ask(together: Sequence[str]) -> list[Elements]:
            return ask_together(lambda query, count: self.instant(query, at_s, count), together)

        (answers,) = run_side_by_side(ask, [expressions], self.deadline, late)
        for expression, answer in zip(expressions, answers, strict=True):
            if isinstance(answer, TransportError):
                self.records.append(QueryRecord("prometheus", expression, answer.kind.value, 0))
            else:
                self.records.append(QueryRecord("prometheus", expression, "ok", len(answer)))
        return answers


def _late() -> TransportError:
    return TransportError(FailureKind.DEADLINE, "the time for all queries was used up")


def _questions(dialects: Sequence[Dialect], present: frozenset[str], selector: str) -> _Asked:
    servers: list[tuple[str, str]] = []
    fronts: list[str] = []
    proxies: list[str] = []
    for dialect in dialects:
        metric = next((name for name in dialect.detect if name in present), "")
        if metric and dialect.model_label:
            servers.append((metric, dialect.model_label))
        elif metric and (counting := [item for item in dialect.signals if item.signal == _FRONT_SIGNAL]):
            (proxies if all(item.shared for item in counting) else fronts).append(metric)
    if not servers and not fronts:
        # A proxy serves many, most of them none of ours: its services are candidates only where there is nothing else.
        fronts = proxies
    return _Asked(tuple(servers), tuple(fronts), selector)


def _understood(
    found: Discovery, asked: _Asked, answers: Sequence[Elements], cadences: Sequence[Elements]
) -> Discovery:
    """Take the answers in the order in which `_Asked.expressions` has the questions."""
    rest = list(answers)

    def take(count: int) -> list[Elements]:
        taken, rest[:] = rest[:count], rest[count:]
        return taken

    services, places = _sure(take(len(asked.servers))), _sure(take(len(asked.fronts)))
    _, newest = take(len(asked.metrics)), take(len(asked.metrics))
    copies = [
        fullest_copy(label, elements)
        for label, elements in zip(presence.COPY_LABELS, take(len(presence.COPY_LABELS)), strict=False)
        if not isinstance(elements, TransportError)
    ]
    failures = [answer for answer in cadences if isinstance(answer, TransportError)]
    return replace(
        found,
        candidates=candidates_of([label for _, label in asked.servers], services, places),
        scrape_interval_s=slowest(_values(cadences)),
        newest_sample_s=max(_values(newest), default=None),
        gaps=tuple(Gap("scrape_interval", GapReason.BAD_ANSWER, str(failure)) for failure in failures[:1]),
        one_copy=next((matcher for matcher in copies if matcher), ""),
    )


def _sure(answers: Sequence[Elements]) -> list[tuple[Labelled, ...]]:
    """The answers, or the first failure raised: without all of them two services might be taken for one."""
    sure: list[tuple[Labelled, ...]] = []
    for answer in answers:
        if isinstance(answer, TransportError):
            raise answer
        sure.append(answer)
    return sure


def _values(answers: Sequence[Elements]) -> list[float]:
    elements = [element for answer in answers if not isinstance(answer, TransportError) for element in answer]
    return [element.samples[-1][1] for element in elements if element.samples]


def slowest(intervals_s: Sequence[float]) -> float | None:
    """Seconds between samples of the slowest metric asked; None when unknown."""
    usable = [interval_s for interval_s in intervals_s if 0 < interval_s < float("inf")]
    return _tidy(max(usable)) if usable else None


def _tidy(interval_s: float) -> float:
    """Scrapes jitter by milliseconds around a configured whole number of seconds."""
    whole = round(interval_s)
    return float(whole) if whole and abs(interval_s - whole) < 0.05 * whole else round(interval_s, 3)
