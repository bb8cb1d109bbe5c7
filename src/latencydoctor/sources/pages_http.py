"""Reads one metrics page over HTTP, once, within a deadline: its text, or why there is none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from latencydoctor.errors import SourceError, UsageError
from latencydoctor.evidence.promql import PageError
from latencydoctor.evidence.promql.page import is_openmetrics
from latencydoctor.evidence.redact import plain
from latencydoctor.model.configuration import MetricsPage
from latencydoctor.sources.address import Address, Asked, bare_url, read_address
from latencydoctor.sources.allowance import Allowance
from latencydoctor.sources.authentication import Authentication, origin_of
from latencydoctor.sources.failing import CONFIGURED_WRONGLY, Server, next_step, said
from latencydoctor.sources.transport import Deadline, FailureKind, GuardedSession, TransportError

DEFAULT_PATH = "/metrics"
"""Where a page is looked for when an address names a host alone, as a Prometheus would."""

MOST_PAGES = 64
"""Each has a thread of its own while it is read."""

MAX_PAGE_BYTES = 32 * 1024 * 1024
"""A page of 100,000 series with long labels has about 20 MB."""

_ASKED = Asked("the metrics page", "the metrics page URL", "http://server.example:8002/metrics")
_ACCEPT = "text/plain;version=0.0.4;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.1"
_TEXT = ("text/plain", "application/openmetrics-text", "application/octet-stream", "")
_OPENMETRICS = "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is, and the `instance` under which its series are kept."""

    address: Address
    instance: str


def named_pages(urls: Sequence[str], configured: Sequence[MetricsPage]) -> tuple[MetricsPage, ...]:
    """The pages that addresses name, with the credentials of a configured page of that very address.

    Any other address takes none along, and one that carries its own is taken as it is.
    """
    known = {_page_url(page.url): page for page in reversed(configured)}
    return tuple(MetricsPage(url) if "@" in url else known.get(_page_url(url), MetricsPage(url)) for url in urls)


def places_of(pages: Sequence[MetricsPage], environment: Mapping[str, str] = os.environ) -> tuple[Place, ...]:
    """The pages named, each once; `SourceError` or `UsageError` for an address that cannot be one."""
    addresses: dict[str, Address] = {}
    for page in pages:
        address = _address(page, environment)
        if addresses.setdefault(address.url, address) != address:
            hint = "Leave one of them out: which credentials are meant cannot be told."
            raise SourceError(f"the metrics page {_host(address.url)} is named twice, and not alike", hint=hint)
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


def _address(page: MetricsPage, environment: Mapping[str, str]) -> Address:
    found = read_address(page, environment, _ASKED)
    return found if urlsplit(found.url).path else replace(found, url=found.url + DEFAULT_PATH)


def _page_url(url: str) -> tuple[tuple[str, str, int | None], str]:
    """What is the same for two ways to write one address; `SourceError` for what is none."""
    bare = bare_url(url, _ASKED)
    return origin_of(bare), urlsplit(bare).path or DEFAULT_PATH


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
        self._session.cert = address.certificate

    def read(self, within: Deadline) -> str | TransportError | PageError:
        """The page's text, or the failure."""
        self._deadline = within
        try:
            # Said for each request, because $REQUESTS_CA_BUNDLE beats what a session says.
            response = self._session.get(self.place.address.url, verify=self.place.address.ca_file or True)
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


def server_of(place: Place) -> Server:
    """A page as messages call it."""
    return Server(
        f"the page of {place.instance}",
        "--metrics-url URL",
        "most servers have their page at /metrics",
        "the page's url in sources.metrics",
    )


def failure_of(place: Place, error: TransportError) -> SourceError | None:
    """What the user must correct; None for a failure that may pass by itself."""
    server = server_of(place)
    if error.kind is FailureKind.TOO_LARGE:
        hint = "Ask the Prometheus that scrapes this page (--prometheus URL)."
        return SourceError(f"{server.name} cannot be used: {error}", hint=hint)
    if error.kind in CONFIGURED_WRONGLY:
        return SourceError(said(server, error), hint=next_step(server, error))
    return None
