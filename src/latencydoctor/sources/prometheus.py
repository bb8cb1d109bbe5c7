"""Reads a Prometheus, or what speaks its API, within one deadline; everything that cannot be read is a gap."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

import requests
from prometheus_api_client import PrometheusConnect

from latencydoctor.errors import CannotTell, LatencyDoctorError, SourceError, UsageError
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.model.evidence import Gap, GapReason, QueryRecord, Selection
from latencydoctor.model.readings import Discovery, RangeQuery, Readings
from latencydoctor.model.rule import Dialect
from latencydoctor.sources.address import read_address
from latencydoctor.sources.answers import RangeAnswer, parse_range
from latencydoctor.sources.discovery import Finder
from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.transport import (
    Authentication,
    Deadline,
    FailureKind,
    GuardedSession,
    TransportError,
    origin_of,
)

SOURCE = "prometheus"
DEADLINE_S = 20.0

_Result = TypeVar("_Result")

_CONFIGURED_WRONGLY = {
    FailureKind.TLS: "Check the certificate; name your own CA with ca_file in the configuration.",
    FailureKind.CREDENTIALS: "Check the credentials that the configuration names.",
    FailureKind.NOT_FOUND: "No Prometheus API there: check the URL's path prefix.",
    FailureKind.NOT_JSON: "That is no Prometheus API: check the URL (not a dashboard or a login page).",
    FailureKind.REDIRECT: "Give the address that it redirects to, if you trust it.",
}

_GAP_REASONS = {
    FailureKind.DEADLINE: GapReason.DEADLINE,
    FailureKind.REFUSED: GapReason.UNREACHABLE,
    FailureKind.NO_ROUTE: GapReason.UNREACHABLE,
    FailureKind.NAME: GapReason.UNREACHABLE,
}


@dataclass(slots=True)
class PrometheusMetrics:
    """A `MetricsSource` over HTTP. `discover` starts the deadline that `collect` shares."""

    source: PrometheusSource
    deadline_s: float = DEADLINE_S
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _deadline: Deadline = field(init=False)
    _client: PrometheusConnect = field(init=False)

    def __post_init__(self) -> None:
        address = read_address(self.source, self.environment)
        self._deadline = Deadline.after(self.deadline_s)
        session = GuardedSession(lambda: self._deadline)
        session.auth = Authentication(origin_of(address.url), address.authorization)
        if address.ca_file:
            session.verify = address.ca_file
        self._client = PrometheusConnect(url=address.url, session=session)

    def discover(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        """See `MetricsSource.discover`; `UsageError` when Prometheus refuses the selector."""
        self._deadline = Deadline.after(self.deadline_s)
        finder = Finder(self._names, self._instant, self._deadline)
        try:
            return finder.find(dialects, selection, at_s)
        except TransportError as error:
            raise _as_known(error, selection.selector) from error

    def collect(self, queries: Sequence[RangeQuery]) -> Readings:
        """See `MetricsSource.collect`."""
        late: RangeAnswer | TransportError = TransportError(
            FailureKind.DEADLINE, "the time for all queries was used up"
        )
        answers = run_side_by_side(self._ask, queries, self._deadline, late)
        pairs = [_reading(query, answer) for query, answer in zip(queries, answers, strict=True)]
        return Readings(
            series=tuple(answer.series for _, answer in pairs if answer.series is not None),
            gaps=tuple(answer.gap for _, answer in pairs if answer.gap is not None),
            queries=tuple(record for record, _ in pairs),
        )

    def _ask(self, query: RangeQuery) -> RangeAnswer | TransportError:
        try:
            result = _guarded(
                lambda: self._client.custom_query_range(
                    query.query,
                    datetime.fromtimestamp(query.window.start_s, UTC),
                    datetime.fromtimestamp(query.window.end_s, UTC),
                    repr(query.step_s),
                    # The client rounds both ends to whole seconds, which would shift every point: ours come last.
                    params={
                        "start": repr(query.window.start_s),
                        "end": repr(query.window.end_s),
                        "timeout": f"{max(self._deadline.left_s, 0.001):.3f}",
                    },
                )
            )
            return parse_range(query, result)
        except TransportError as error:
            return error

    def _names(self, matchers: str, start_s: float, end_s: float) -> list[object]:
        params: dict[str, str] = {"start": repr(start_s), "end": repr(end_s)}
        if matchers:
            params["match[]"] = "{" + matchers + "}"
        return _listed(_guarded(lambda: self._client.get_label_values("__name__", params=params)))

    def _instant(self, query: str, at_s: float) -> list[object]:
        return _listed(_guarded(lambda: self._client.custom_query(query, params={"time": repr(at_s)})))


def _guarded(ask: Callable[[], _Result]) -> _Result:
    """Ask, and turn what the client raises over a strange answer into our own words."""
    try:
        return ask()
    except requests.JSONDecodeError as error:
        raise TransportError(FailureKind.BROKEN, "the JSON is cut off or broken") from error
    except (KeyError, TypeError, IndexError) as error:
        raise TransportError(FailureKind.NOT_JSON, "the server sent JSON that is not Prometheus's") from error
    except RecursionError as error:
        raise TransportError(FailureKind.BROKEN, "the JSON is nested too deeply") from error


def _listed(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    raise TransportError(FailureKind.NOT_JSON, "the server sent JSON that is not Prometheus's")


def _reading(query: RangeQuery, answer: RangeAnswer | TransportError) -> tuple[QueryRecord, RangeAnswer]:
    if isinstance(answer, TransportError):
        reason = _GAP_REASONS.get(answer.kind, GapReason.BAD_ANSWER)
        answer = RangeAnswer(None, Gap(query.signal, reason, str(answer)), 0)
    outcome = answer.gap.reason.value if answer.gap else "ok"
    return QueryRecord(SOURCE, query.query, outcome, answer.series_count), answer


def _as_known(error: TransportError, selector: str) -> LatencyDoctorError:
    """What a failed discovery means: configured wrongly (exit 1), a bad selector (2), or not answering (4)."""
    if error.kind in _CONFIGURED_WRONGLY:
        return SourceError(f"Prometheus cannot be used: {error}", hint=_CONFIGURED_WRONGLY[error.kind])
    if error.kind is FailureKind.STATUS and error.status == requests.codes.bad_request:
        hint = 'A selector is a list of label matchers, such as namespace="prod",cluster="eu".'
        if selector:
            return UsageError(f"Prometheus refuses the selector: {error.detail}", hint=hint)
        return SourceError(f"Prometheus cannot be used: {error}", hint="Is it a Prometheus 2.24 or newer?")
    return CannotTell(
        f"Prometheus does not answer: {error}", hint="Check that it runs and that its URL is right (--prometheus URL)."
    )
