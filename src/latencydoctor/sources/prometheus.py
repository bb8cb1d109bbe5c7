"""Reads a Prometheus, or what speaks its API, within one deadline; everything that cannot be read is a gap."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

import requests
from prometheus_api_client import PrometheusConnect

from latencydoctor.errors import CannotTell, LatencyDoctorError, SourceError, UsageError
from latencydoctor.evidence.combine import share_out
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.model.evidence import Gap, GapReason, QueryRecord, Selection, Window
from latencydoctor.model.readings import Discovery, RangeQuery, Readings
from latencydoctor.model.rule import Dialect
from latencydoctor.sources.address import read_address
from latencydoctor.sources.allowance import Allowance
from latencydoctor.sources.answers import RangeAnswer, read_range
from latencydoctor.sources.authentication import Authentication, origin_of
from latencydoctor.sources.discovery import Finder
from latencydoctor.sources.failing import CONFIGURED_WRONGLY, PROMETHEUS, next_step, said
from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.together import Elements, ask_together
from latencydoctor.sources.transport import SLOWEST_READ_S, Deadline, FailureKind, GuardedSession, TransportError

SOURCE = "prometheus"
DEADLINE_S = 20.0

MOST_GROUPS = 4
"""Range queries side by side: a Prometheus works on each with one core, and requests are to be few."""

SHARE_OF_TIME = 0.4
SLOWEST_QUERY_S = 0.8 * SLOWEST_READ_S
"""What Prometheus may spend on one query: a share of the time left, so that after a slow expression there is time to
ask for those that it held up, and less than is waited for, so that it is Prometheus that says so."""

BYTES_A_POINT = 64
BYTES_A_SERIES = 4096
"""Twice what Prometheus needs for a point, and room for labels or the words of an error."""

MOST_BYTES_OF_LABELS = 64 * 1024
"""Room for the values of a label: several hundred bounds of a histogram."""

MOST_BYTES_OF_NAMES = 1024 * 1024
"""About 30,000 metric names; where there are more, only the known ones are asked for."""

_Result = TypeVar("_Result")

_GAP_REASONS = {
    FailureKind.DEADLINE: GapReason.DEADLINE,
    FailureKind.REFUSED: GapReason.UNREACHABLE,
    FailureKind.NO_ROUTE: GapReason.UNREACHABLE,
    FailureKind.NAME: GapReason.UNREACHABLE,
}


@dataclass(slots=True)
class PrometheusMetrics:
    """A `MetricsSource` over HTTP. `discover` starts the deadline and the allowance that `collect` shares."""

    source: PrometheusSource
    deadline_s: float = DEADLINE_S
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _deadline: Deadline = field(init=False)
    _allowance: Allowance = field(init=False)
    _session: GuardedSession = field(init=False)
    _client: PrometheusConnect = field(init=False)
    _posting_client: PrometheusConnect = field(init=False)
    _may_post: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        address = read_address(self.source, self.environment)
        self._begin()
        self._session = GuardedSession(lambda: self._deadline, lambda: self._allowance)
        self._session.auth = Authentication(origin_of(address.url), dict(address.headers))
        if address.ca_file:
            self._session.verify = address.ca_file
        if address.certificate:
            self._session.cert = address.certificate
        self._client = PrometheusConnect(url=address.url, session=self._session)
        self._posting_client = PrometheusConnect(url=address.url, session=self._session, method="POST")

    def _begin(self) -> None:
        self._deadline = Deadline.after(self.deadline_s)
        self._allowance = Allowance()

    def discover(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        """See `MetricsSource.discover`; `UsageError` when Prometheus refuses the selector."""
        self._begin()
        finder = Finder(self._names, self._instant, self._deadline)
        try:
            found = finder.find(dialects, selection, at_s)
        except TransportError as error:
            raise _as_known(error, selection.selector) from error
        return replace(found, clock_ahead_s=self._session.clock_ahead_s)

    def collect(self, queries: Sequence[RangeQuery]) -> Readings:
        """See `MetricsSource.collect`. Expressions over the same points are asked together, in a few requests."""
        groups = groups_of(queries)
        late: list[Elements] = []
        answered = run_side_by_side(self._ask, groups, self._deadline, late)
        elements = {
            (text, group.window, group.step_s): answer
            for group, answers in zip(groups, answered, strict=True)
            for text, answer in zip(group.texts, answers, strict=False)
        }
        used_up = TransportError(FailureKind.DEADLINE, "the time for all queries was used up")
        pairs = [_reading(query, elements.get((query.query, query.window, query.step_s), used_up)) for query in queries]
        return Readings(
            series=tuple(answer.series for _, answer in pairs if answer.series is not None),
            facts=tuple(fact for _, answer in pairs for fact in answer.facts),
            gaps=tuple(answer.gap for _, answer in pairs if answer.gap is not None),
            queries=tuple(record for record, _ in pairs),
        )

    def _ask(self, group: Group) -> list[Elements]:
        return ask_together(lambda query, count: self._range(query, group, count), group.texts)

    def _range(self, query: str, group: Group, count: int) -> list[object]:
        """One range."""
        left_s = min(SHARE_OF_TIME * self._deadline.left_s, SLOWEST_QUERY_S)
        times = {
            # The client rounds both ends to whole seconds, which would shift every point: ours come last.
            "start": repr(group.window.start_s),
            "end": repr(group.window.end_s),
            "timeout": f"{max(left_s, 0.001):.3f}",
        }
        start, end = (datetime.fromtimestamp(at_s, UTC) for at_s in (group.window.start_s, group.window.end_s))
        points = round(group.window.length_s / group.step_s) + 2
        labels = MOST_BYTES_OF_LABELS if group.lists else 0
        with self._session.at_most(count * (points * BYTES_A_POINT + BYTES_A_SERIES + labels)):
            return _listed(
                self._posted(
                    lambda client: client.custom_query_range(query, start, end, repr(group.step_s), params=times)
                )
            )

    def _names(self, matchers: str, start_s: float, end_s: float) -> list[object]:
        params: dict[str, str] = {"start": repr(start_s), "end": repr(end_s)}
        if matchers:
            params["match[]"] = "{" + matchers + "}"
        with self._session.at_most(MOST_BYTES_OF_NAMES):
            return _listed(_guarded(lambda: self._client.get_label_values("__name__", params=params)))

    def _instant(self, query: str, at_s: float, count: int) -> list[object]:
        del count
        with self._session.at_most(MOST_BYTES_OF_NAMES):
            return _listed(self._posted(lambda client: client.custom_query(query, params={"time": repr(at_s)})))

    def _posted(self, ask: Callable[[PrometheusConnect], _Result]) -> _Result:
        """Posted, because combined queries are long; read-only roles may only GET, and then that is tried."""
        if self._may_post:
            try:
                return _guarded(lambda: ask(self._posting_client))
            except TransportError as error:
                if error.status not in (requests.codes.forbidden, requests.codes.method_not_allowed):
                    raise
                self._may_post = False
        return _guarded(lambda: ask(self._client))


@dataclass(frozen=True, slots=True)
class Group:
    """Expressions that one request asks for: they share their points. `lists` says that labels are wanted of them."""

    texts: tuple[str, ...]
    window: Window
    step_s: float
    lists: bool = False


def groups_of(queries: Sequence[RangeQuery]) -> list[Group]:
    """The queries as few requests; an expression that several signals share is asked once."""
    by_points: dict[tuple[Window, float, bool], dict[str, None]] = {}
    for query in queries:
        by_points.setdefault((query.window, query.step_s, bool(query.by)), {})[query.query] = None
    return [
        Group(tuple(texts), window, step_s, lists)
        for (window, step_s, lists), held in by_points.items()
        for texts in share_out(list(held), MOST_GROUPS)
    ]


def _guarded(ask: Callable[[], _Result]) -> _Result:
    """Ask, and turn what the client raises over a strange answer into our own words."""
    try:
        return ask()
    except ValueError as error:
        # Not only of JSON that is none: also of numbers without an end, and of an encoding that decodes nothing.
        raise TransportError(FailureKind.BROKEN, "the JSON is cut off or broken") from error
    except (KeyError, TypeError, IndexError) as error:
        raise TransportError(FailureKind.NOT_JSON, "the server sent JSON that is not Prometheus's") from error
    except RecursionError as error:
        raise TransportError(FailureKind.BROKEN, "the JSON is nested too deeply") from error


def _listed(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    raise TransportError(FailureKind.NOT_JSON, "the server sent JSON that is not Prometheus's")


def _reading(query: RangeQuery, elements: Elements) -> tuple[QueryRecord, RangeAnswer]:
    if isinstance(elements, TransportError):
        late = elements.status == requests.codes.unavailable and "timed out" in elements.detail
        reason = GapReason.DEADLINE if late else _GAP_REASONS.get(elements.kind, GapReason.BAD_ANSWER)
        answer = RangeAnswer(None, Gap(query.signal, reason, str(elements)), 0)
    else:
        answer = read_range(query, elements)
    outcome = answer.gap.reason.value if answer.gap else "ok"
    return QueryRecord(SOURCE, query.query, outcome, answer.series_count), answer


def _as_known(error: TransportError, selector: str) -> LatencyDoctorError:
    """What a failed discovery means: configured wrongly (exit 1), a bad selector (2), or not answering (4)."""
    message, hint = said(PROMETHEUS, error), next_step(PROMETHEUS, error)
    if error.kind in CONFIGURED_WRONGLY:
        return SourceError(message, hint=hint)
    if error.kind is FailureKind.STATUS and error.status == requests.codes.bad_request:
        if selector:
            shape = 'A selector is a list of label matchers, such as namespace="prod",cluster="eu".'
            return UsageError(f"Prometheus refuses the selector: {error.detail}", hint=shape)
        return SourceError(message, hint="Is it a Prometheus 2.24 or newer?")
    return CannotTell(message, hint=hint)
