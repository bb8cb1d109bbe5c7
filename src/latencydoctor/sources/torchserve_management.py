"""Asks TorchServe's management API for what its metrics page leaves out: batching, workers and the job queue.

None of it has a history: facts, not series, and true of the one server asked. TorchServe describes a model's default
version unless told otherwise, and runs `nvidia-smi` once for each worker on a GPU while it does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from latencydoctor.evidence.redact import plain
from latencydoctor.model.configuration import TorchServeSource
from latencydoctor.model.evidence import Gap, GapReason, Proof, QueryRecord, Selection
from latencydoctor.model.readings import Readings
from latencydoctor.sources.address import Address
from latencydoctor.sources.allowance import Allowance
from latencydoctor.sources.authentication import Authentication, origin_of
from latencydoctor.sources.failing import Server, said
from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.torchserve_address import torchserve_address
from latencydoctor.sources.torchserve_description import SIGNALS, facts_of
from latencydoctor.sources.transport import CIRCLE, Deadline, FailureKind, GuardedSession, TransportError

SOURCE = "torchserve"
DEADLINE_S = 3.0
"""For all questions together: without GPUs TorchServe answers within milliseconds, also under load (threads of its own
serve this API), with them within a fraction of a second for each worker."""

MOST_REQUESTS = 4
"""The description, the list of models where no model is known, and a redirect for either."""

MAX_ANSWER_BYTES = 512 * 1024
"""A description has 0.7 kB and 0.2 kB for each worker; a list of 100 models, the most that is given, about 20 kB."""

MOST_NAMES_SHOWN = 10

_UNREACHABLE = frozenset({FailureKind.REFUSED, FailureKind.NO_ROUTE, FailureKind.NAME})
_NEEDS_ADDRESS = "TorchServe's management address, port 8081 by default (--torchserve URL)"
_SERVER = Server("TorchServe's management API", "--torchserve URL", _NEEDS_ADDRESS, "sources.torchserve")
_NEEDS_CA = "the CA of its certificate: sources.torchserve.ca_file in the configuration"
_NEEDS_TOKEN = (
    "the management key, at the management address (port 8081 by default): sources.torchserve.bearer_file in the "
    "configuration, such as TorchServe's own key_file.json (its keys expire, by default after an hour)"
)


@dataclass(slots=True)
class TorchServeManagement:
    """A `FactSource` over one TorchServe's management API; `SourceError` when it is configured wrongly."""

    source: TorchServeSource
    deadline_s: float = DEADLINE_S
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _address: Address = field(init=False)

    def __post_init__(self) -> None:
        self._address = torchserve_address(self.source, self.environment)

    def read(self, selection: Selection) -> Readings:
        """Settings, workers and queue of the selected model, or of the only one there; the rest are gaps."""
        deadline = Deadline.after(min(self.deadline_s, DEADLINE_S))
        late = _failed("models", TransportError(FailureKind.DEADLINE, "it had not answered when its time was up"))
        session = _Session(self._address, deadline)
        # In a thread, because nothing else ends a name lookup or a head that arrives a byte at a time.
        return run_side_by_side(session.read, [selection.model], deadline, late)[0]


class _Session:
    """The questions put to one server within one deadline."""

    def __init__(self, address: Address, deadline: Deadline) -> None:
        allowance = Allowance(MOST_REQUESTS, MOST_REQUESTS * MAX_ANSWER_BYTES)
        self._url = address.url
        self._http = GuardedSession(lambda: deadline, lambda: allowance, MAX_ANSWER_BYTES, connections=1)
        self._http.auth = Authentication(origin_of(address.url), dict(address.headers))
        self._http.headers["Accept"] = "application/json"
        self._http.cert = address.certificate
        self._ca = address.ca_file or True

    def read(self, model: str) -> Readings:
        """What is told of a model, or of the only one there if it has no name; never raises."""
        if model:
            return self._described(model)
        try:
            names, more = self._names()
        except TransportError as error:
            return _failed("GET /models", error)
        if len(names) == 1 and not more:
            described = self._described(names[0])
            return replace(described, queries=(QueryRecord(SOURCE, "GET /models", "ok", 1), *described.queries))
        detail = "no model is registered"
        if names:
            detail = f"several models are registered and none was selected: {_listed(names, more=more)}"
        return _gaps("GET /models", Gap("", GapReason.NOT_CONFIGURED, detail, "--model"))

    def _described(self, model: str) -> Readings:
        path = f"/models/{quote(model, safe='')}"
        query = f"GET {plain(path)}"
        try:
            told = self._get(path)
            described = facts_of(told, model)
        except TransportError as error:
            return self._unknown(model, query) if error.kind is FailureKind.NOT_FOUND else _failed(query, error)
        facts = tuple(one.fact(Proof(SOURCE, f"{query} {one.field} ({described.version})")) for one in described.told)
        return Readings(facts=facts, gaps=described.gaps, queries=(QueryRecord(SOURCE, query, "ok", len(facts)),))

    def _unknown(self, model: str, query: str) -> Readings:
        """For a model that is not there: the models that are, if this is a management API at all."""
        try:
            names, more = self._names()
        except TransportError as error:
            return _failed("GET /models", error)
        there = f"registered are: {_listed(names, more=more)}" if names else "none is registered"
        detail = f"it has no model {plain(model, 60)!r}; {there}"
        return _gaps(query, Gap("", GapReason.BAD_ANSWER, detail, "--model with a name that TorchServe knows"))

    def _names(self) -> tuple[tuple[str, ...], bool]:
        """The registered models, and whether there are more than one answer names."""
        told = self._get("/models")
        listed = told.get("models") if isinstance(told, dict) else None
        if not isinstance(told, dict) or not isinstance(listed, list):
            raise _strange()
        names = [item.get("modelName") if isinstance(item, dict) else None for item in listed]
        texts = tuple(name for name in names if isinstance(name, str) and name)
        if len(texts) != len(listed):
            raise _strange()
        return texts, bool(told.get("nextPageToken"))

    def _get(self, path: str) -> object:
        try:
            # Said for each request: a session's own is overruled by $REQUESTS_CA_BUNDLE.
            content = self._http.get(self._url + path, verify=self._ca).content
        except OSError as error:
            # What the HTTP library says of an address before anything is sent.
            raise TransportError(FailureKind.NAME, plain(str(error))) from error
        try:
            told: object = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise TransportError(FailureKind.BROKEN, "the JSON is cut off or broken") from error
        return told


def _listed(names: Iterable[str], *, more: bool) -> str:
    shown = [plain(name, 60) for name in names]
    rest = ", …" if more or len(shown) > MOST_NAMES_SHOWN else ""
    return ", ".join(shown[:MOST_NAMES_SHOWN]) + rest


def _strange() -> TransportError:
    return TransportError(FailureKind.NOT_JSON, "the server sent JSON that is not TorchServe's")


def _failed(query: str, error: TransportError) -> Readings:
    if error.kind is FailureKind.DEADLINE:
        gap = Gap("", GapReason.DEADLINE, "TorchServe's management API did not answer in time")
    else:
        # What a server answers with while it starts, ends or has broken down says nothing against the configuration.
        is_down = error.kind in _UNREACHABLE or error.status >= 500
        reason = GapReason.UNREACHABLE if is_down else GapReason.BAD_ANSWER
        gap = Gap("", reason, said(_SERVER, error), _needs(error))
    return _gaps(query, gap)


def _needs(error: TransportError) -> str:
    if error.kind is FailureKind.CREDENTIALS or _is_about_the_token(error):
        return _NEEDS_TOKEN
    if error.kind is FailureKind.REDIRECT and CIRCLE not in error.detail:
        return "the address that it redirects to, if you trust it"
    return _NEEDS_CA if error.kind is FailureKind.TLS else _NEEDS_ADDRESS


def _is_about_the_token(error: TransportError) -> bool:
    """TorchServe answers 400, not 401, to a token that is missing, wrong or expired."""
    return error.status == 400 and "Token Authorization" in error.detail


def _gaps(query: str, gap: Gap) -> Readings:
    record = QueryRecord(SOURCE, query, gap.reason.value, 0)
    gaps = tuple(Gap(signal, gap.reason, gap.detail, gap.needs) for signal in SIGNALS)
    return Readings(gaps=gaps, queries=(record,))
