"""Finds out what a Prometheus holds: metric names, the services there, how often they are scraped.

No job name, port or label convention is assumed: a service is a distinct set of labels once those that tell replicas
apart are left out.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from latencydoctor.evidence.queries import quote
from latencydoctor.model.evidence import Gap, GapReason, QueryRecord, Selection
from latencydoctor.model.readings import Candidate, Discovery
from latencydoctor.model.rule import Dialect
from latencydoctor.sources.answers import Labelled, parse_elements
from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.transport import Deadline, FailureKind, TransportError

LOOK_BACK_S = 600.0
"""Metric names seen within this time count as present; the second half of a long incident may lack some."""

SAMPLES = "5m"
"""Raw samples of this span tell the scrape interval; it is also how far back an instant query looks."""

REPLICA_LABELS = (
    "instance", "pod", "pod_name", "pod_ip", "exported_pod", "exported_instance", "gpu_uuid", "gpu", "UUID", "version",
    "node", "nodename", "host", "hostname", "Hostname", "container", "container_id", "endpoint", "replica", "uid",
    "pod_template_hash", "controller_revision_hash", "statefulset_kubernetes_io_pod_name", "prometheus_replica",
)  # fmt: skip
"""Labels that tell copies of one service apart, in the conventions of Kubernetes, its operator and plain scraping."""

PLACE_LABELS = ("cluster", "environment", "env", "namespace", "kubernetes_namespace", "service", "app", "job")
"""Labels by which two front ends of one kind are told apart."""

_FRONT_SIGNAL = "request_rate_rps"

Names = Callable[[str, float, float], list[object]]
Instant = Callable[[str, float], list[object]]
_Answer = tuple[Labelled, ...] | TransportError


@dataclass(slots=True)
class Finder:
    """One discovery; the two callables ask Prometheus and raise `TransportError`."""

    names: Names
    instant: Instant
    deadline: Deadline
    records: list[QueryRecord] = field(default_factory=list)

    def find(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        """Look what is there; `TransportError` when the source fails as a whole."""
        selector = selection.selector
        present, shared = self._names([selector, ""] if selector else [""], at_s)
        spoken = [dialect for dialect in dialects if _metric(dialect, present)]
        servers = [dialect for dialect in spoken if dialect.model_label]
        fronts = [dialect for dialect in spoken if not dialect.model_label and _is_front(dialect)]
        queries = [_services_query(dialect, present, selector) for dialect in servers]
        queries += [_places_query(dialect, present, selector) for dialect in fronts]
        queries += [f"{_chosen(dialect, present, selector)}[{SAMPLES}]" for dialect in (*servers, *fronts)]
        answers = self._ask(queries, at_s)
        places_from, samples_from = len(servers), len(servers) + len(fronts)
        services, places, samples = (
            answers[:places_from],
            answers[places_from:samples_from],
            answers[samples_from:],
        )
        interval_s, newest_s = cadence([answer for answer in samples if not isinstance(answer, TransportError)])
        return Discovery(
            names=present,
            shared_names=shared,
            candidates=candidates_of([dialect.model_label for dialect in servers], _sure(services), _sure(places)),
            scrape_interval_s=interval_s,
            newest_sample_s=newest_s,
            queries=tuple(self.records),
            gaps=_gaps(samples),
        )

    def _names(self, selectors: Sequence[str], at_s: float) -> tuple[frozenset[str], frozenset[str]]:
        """The metric names under the first selector, and under the last; `TransportError` without them."""
        late: frozenset[str] | TransportError = _late()
        found: list[frozenset[str]] = []
        for matchers, answer in zip(
            selectors,
            run_side_by_side(lambda held: self._names_of(held, at_s), selectors, self.deadline, late),
            strict=True,
        ):
            if isinstance(answer, TransportError):
                raise answer
            query = f"metric names of {{{matchers}}}" if matchers else "metric names"
            self.records.append(QueryRecord("prometheus", query, "ok", len(answer)))
            found.append(answer)
        return found[0], found[-1]

    def _names_of(self, matchers: str, at_s: float) -> frozenset[str] | TransportError:
        try:
            names = self.names(matchers, at_s - LOOK_BACK_S, at_s)
        except TransportError as error:
            return error
        return frozenset(name for name in names if isinstance(name, str))

    def _ask(self, queries: Sequence[str], at_s: float) -> list[_Answer]:
        late: _Answer = _late()
        answers = run_side_by_side(lambda query: self._instant(query, at_s), queries, self.deadline, late)
        for query, answer in zip(queries, answers, strict=True):
            if isinstance(answer, TransportError):
                self.records.append(QueryRecord("prometheus", query, answer.kind.value, 0))
            else:
                self.records.append(QueryRecord("prometheus", query, "ok", len(answer)))
        return answers

    def _instant(self, query: str, at_s: float) -> _Answer:
        try:
            return parse_elements(self.instant(query, at_s))
        except TransportError as error:
            return error


def _late() -> TransportError:
    return TransportError(FailureKind.DEADLINE, "the time for all queries was used up")


def _metric(dialect: Dialect, present: frozenset[str]) -> str:
    """The first of a dialect's telling metrics that is there, empty when none is."""
    return next((name for name in dialect.detect if name in present), "")


def _chosen(dialect: Dialect, present: frozenset[str], selector: str) -> str:
    return _metric(dialect, present) + (f"{{{selector}}}" if selector else "")


def _is_front(dialect: Dialect) -> bool:
    return any(item.signal == _FRONT_SIGNAL for item in dialect.signals)


def _services_query(dialect: Dialect, present: frozenset[str], selector: str) -> str:
    return f"count without ({', '.join(REPLICA_LABELS)}) ({_chosen(dialect, present, selector)})"


def _places_query(dialect: Dialect, present: frozenset[str], selector: str) -> str:
    return f"count by ({', '.join(PLACE_LABELS)}) ({_chosen(dialect, present, selector)})"


def _sure(answers: Sequence[_Answer]) -> list[tuple[Labelled, ...]]:
    """The answers, or the first failure raised: without all of them two services might be taken for one."""
    sure: list[tuple[Labelled, ...]] = []
    for answer in answers:
        if isinstance(answer, TransportError):
            raise answer
        sure.append(answer)
    return sure


def _gaps(samples: Sequence[_Answer]) -> tuple[Gap, ...]:
    failures = [answer for answer in samples if isinstance(answer, TransportError)]
    return tuple(Gap("scrape_interval", GapReason.BAD_ANSWER, str(failure)) for failure in failures[:1])


def candidates_of(
    model_labels: Sequence[str], services: Sequence[tuple[Labelled, ...]], places: Sequence[tuple[Labelled, ...]]
) -> tuple[Candidate, ...]:
    """The services, each with the fewest matchers that pick it out; several front ends count as several services."""
    found: list[tuple[str, dict[str, str]]] = []
    for label, elements in zip(model_labels, services, strict=True):
        for element in elements:
            rest = {name: value for name, value in element.labels.items() if name not in (label, "__name__")}
            found.append((element.labels.get(label, ""), rest))
    for elements in places:
        # One model behind two gateways is two services; with several models the models are asked for first.
        if len(elements) > 1 and len(found) <= 1:
            model = found[0][0] if found else ""
            found = [(model, element.labels) for element in elements]
    telling = _telling_labels([labels for _, labels in found])
    candidates = {
        Candidate(model, ",".join(f"{name}={quote(labels.get(name, ''))}" for name in telling))
        for model, labels in found
    }
    return tuple(sorted(candidates, key=lambda candidate: (candidate.model, candidate.selector)))


def _telling_labels(all_labels: Sequence[dict[str, str]]) -> list[str]:
    """The labels whose values differ: one that alone tells all apart if there is one, else all that differ."""
    names = {name for labels in all_labels for name in labels}
    differing = [name for name in names if len({labels.get(name, "") for labels in all_labels}) > 1]
    rank = {name: index for index, name in enumerate(PLACE_LABELS)}
    differing.sort(key=lambda name: (rank.get(name, len(rank)), name))
    groups = len({tuple(labels.get(name, "") for name in differing) for labels in all_labels})
    for name in differing:
        if len({labels.get(name, "") for labels in all_labels}) == groups:
            return [name]
    return differing


def cadence(samples: Sequence[tuple[Labelled, ...]]) -> tuple[float | None, float | None]:
    """Seconds between samples of the slowest metric asked, and the newest sample's time; None when unknown."""
    intervals: list[float] = []
    newest: list[float] = []
    for elements in samples:
        of_series: list[float] = []
        for element in elements:
            times = [time for time, _ in element.samples]
            newest += times[-1:]
            of_series += [statistics.median(b - a for a, b in itertools.pairwise(times))] if len(times) > 1 else []
        if of_series:
            intervals.append(statistics.median(of_series))
    return (_tidy(max(intervals)) if intervals else None), (max(newest) if newest else None)


def _tidy(interval_s: float) -> float:
    """Scrapes jitter by milliseconds around a configured whole number of seconds."""
    whole = round(interval_s)
    return float(whole) if whole and abs(interval_s - whole) < 0.05 * whole else round(interval_s, 3)
