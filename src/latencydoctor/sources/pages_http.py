"""Reads one metrics page over HTTP, once, within a deadline: its text, or why there is none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from latencydoctor.errors import SourceError, UsageError
from latencydoctor.evidence.promql import PageError
from latencydoctor.evidence.promql.page import is_openmetrics
from latencydoctor.evidence.redact import plain
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.sources.address import Address, read_address
from latencydoctor.sources.allowance import Allowance
from latencydoctor.sources.transport import (
    Authentication,
    Deadline,
    FailureKind,
    GuardedSession,
    TransportError,
    origin_of,
)

DEFAULT_PATH = "/metrics"
"""Where a page is looked for when an address names a host alone, as a Prometheus would."""

MOST_PAGES = 64
"""Each has a thread of its own while it is read."""

MAX_PAGE_BYTES = 32 * 1024 * 1024
"""A page of 100,000 series with long labels has about 20 MB."""

_ACCEPT = "text/plain;version=0.0.4;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.1"
_TEXT = ("text/plain", "application/openmetrics-text", "application/octet-stream", "")
_OPENMETRICS = "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is, and the `instance` under which its series are kept."""

    address: Address
    instance: str


def places_of(urls: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[Place, ...]:
    """The pages named, each once; `SourceError` or `UsageError` for an address that cannot be one."""
    addresses: dict[str, Address] = {}
    for url in urls:
        address = _address(url, environment)
        addresses.setdefault(address.url, address)
    if len(addresses) > MOST_PAGES:
        raise UsageError(
            f"{len(addresses)} metrics pages are more than the {MOST_PAGES} that are read at a time",
            hint="Name one service's pages only, or ask the Prometheus that scrapes them.",
        )
    hosts = [_host(address.url) for address in addresses.values()]
    return tuple(
        Place(address, host if hosts.count(host) == 1 else host + urlsplit(address.url).path)
        for address, host in zip(addresses.values(), hosts, strict=True)
    )


def _address(url: str, environment: Mapping[str, str]) -> Address:
    try:
        found = read_address(PrometheusSource(url), environment)
    except SourceError as error:
        message = error.message.replace("the Prometheus URL", "a metrics page's URL")
        raise SourceError(message, hint="It should look like http://server.example:8002/metrics.") from error
    if urlsplit(found.url).path:
        return found
    return Address(found.url + DEFAULT_PATH, found.headers, found.ca_file, found.certificate)


def _host(url: str) -> str:
    scheme, host, port = origin_of(url)
    del scheme
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(slots=True)
class PageReader:
    """One page's connection, kept between its scrapes; `reads` says how many there will be at most."""

    place: Place
    reads: int
    _session: GuardedSession = field(init=False)
    _deadline: Deadline = field(init=False, default_factory=Deadline)

    def __post_init__(self) -> None:
        # Redirects on the same host count as requests too.
        allowance = Allowance(4 * self.reads, self.reads * MAX_PAGE_BYTES)
        self._session = GuardedSession(
            lambda: self._deadline, lambda: allowance, MAX_PAGE_BYTES, connections=1, json_only=False
        )
        address = self.place.address
        self._session.auth = Authentication(origin_of(address.url), dict(address.headers))
        self._session.headers["Accept"] = _ACCEPT

    def read(self, within: Deadline) -> str | TransportError | PageError:
        """The page's text, or the failure."""
        self._deadline = within
        try:
            response = self._session.get(self.place.address.url)
            return _text(response.content, response.headers.get("content-type", ""))
        except (TransportError, PageError) as error:
            return error


def _text(body: bytes, content_type: str) -> str:
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in _TEXT:
        raise PageError(0, f"the server sent {plain(kind, 60)}, which is no metrics page")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise PageError(body.count(b"\n", 0, error.start) + 1, "this is no UTF-8 text") from error
    if kind == _OPENMETRICS and not is_openmetrics(text):
        raise PageError(0, "the page breaks off: it does not end with # EOF")
    return text


CONFIGURED_WRONGLY = {
    FailureKind.TLS: "Check the certificate, and that the address is right.",
    FailureKind.CREDENTIALS: "Write credentials into the address: https://user:password@host/metrics.",
    FailureKind.NOT_FOUND: "Check the address's path: most servers have their page at /metrics.",
    FailureKind.REDIRECT: "Give the address that it redirects to, if you trust it.",
    FailureKind.TOO_LARGE: "Ask the Prometheus that scrapes this page (--prometheus URL).",
}
"""Failures that no second try will change, and what to do."""
