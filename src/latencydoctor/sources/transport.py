"""HTTP for reading from strangers: one deadline for all, no retries, bounded answers, credentials for one host only.

prometheus-api-client retries for six seconds on a closed port, mounts its own adapter over a session's and reads an
answer of any size. `GuardedSession` is handed to it and keeps all of this in `send`, where nothing can go around it.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, LocationParseError, NameResolutionError, NewConnectionError, ReadTimeoutError
from urllib3.response import BaseHTTPResponse

from latencydoctor.evidence.redact import plain
from latencydoctor.sources.allowance import Allowance
from latencydoctor.sources.authentication import Authentication, origin_of

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Largest decompressed answer. 720 points of one series are 30 kB; a list of 100,000 metric names is 4 MB."""

CHUNK_BYTES = 16 * 1024
"""Read so much at a time: also compressed a thousand to one, a chunk stays below 17 MB once unpacked."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""No proxy that the environment names leads to these: its own are others."""

MAX_REDIRECTS = 3
CIRCLE = "times in a row"
SLOWEST_READ_S = 10.0


class FailureKind(StrEnum):
    """How a request can fail, as far as the user must act differently."""

    REFUSED = "connection refused"
    NO_ROUTE = "cannot be reached"
    NAME = "host name not found"
    TLS = "TLS failed"
    DEADLINE = "deadline passed"
    TOO_LARGE = "answer too large"
    COST = "cost limit reached"
    BROKEN = "answer broke off"
    REDIRECT = "redirected"
    CREDENTIALS = "credentials refused"
    NOT_FOUND = "not found"
    STATUS = "error status"
    NOT_JSON = "not JSON"


class TransportError(Exception):
    """One failed request: its kind, and a detail in plain text without secrets."""

    def __init__(self, kind: FailureKind, detail: str, status: int = 0) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind.value)
        self.kind = kind
        self.detail = detail
        self.status = status


@dataclass(slots=True)
class Deadline:
    """A moment on the monotonic clock that several threads share."""

    ends_s: float = 0.0

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds left, never negative."""
        return max(self.ends_s - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise `TransportError` once it has passed."""
        if self.left_s <= 0:
            raise TransportError(FailureKind.DEADLINE, "the time for all queries was used up")


class GuardedSession(requests.Session):
    """A session whose every request obeys deadline and allowance and follows no one to another host.

    `clock_ahead_s` is how far the server's clock was ahead of ours at its last answer, None when it did not say.
    """

    def __init__(
        self,
        deadline: Callable[[], Deadline],
        allowance: Callable[[], Allowance],
        max_bytes: int = MAX_ANSWER_BYTES,
        connections: int = 8,
        json_only: bool = True,
    ) -> None:
        super().__init__()
        self._json_only = json_only
        self.clock_ahead_s: float | None = None
        self._deadline = deadline
        self._allowance = allowance
        self._max_bytes = max_bytes
        self._limit = threading.local()
        self._guarded = HTTPAdapter(pool_maxsize=connections, max_retries=0)

    @contextmanager
    def at_most(self, max_bytes: int) -> Iterator[None]:
        """A smaller limit for the answers that this thread gets meanwhile."""
        self._limit.bytes = min(max_bytes, self._max_bytes)
        try:
            yield
        finally:
            del self._limit.bytes

    def get_adapter(self, url: str | bytes) -> requests.adapters.BaseAdapter:
        """Always our own adapter: prometheus-api-client mounts one that retries."""
        del url
        return self._guarded

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """As the library's; what it says of an address before anything is sent is a failure like any other."""
        try:
            return super().request(*args, **kwargs)
        except (requests.RequestException, HTTPError, ValueError) as error:
            raise TransportError(FailureKind.NAME, plain(str(error))) from error

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        """What is posted goes into a form: the client puts it into the address, whatever its length."""
        if request.method == "POST" and not request.data:
            request.data, request.params = request.params, {}
        return super().prepare_request(request)

    def resolve_redirects(self, *_args: Any, **_kwargs: Any) -> Iterator[Any]:
        """None: `send` follows them itself, and the library's own way breaks at an address that is none."""
        return iter(())

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send within the deadline and return an answer that was read completely; `TransportError` otherwise."""
        for _ in range(MAX_REDIRECTS + 1):
            response = self._send_once(request, kwargs)
            self.clock_ahead_s = _clock_ahead_s(response)
            if not response.is_redirect:
                _refuse_errors(response, self._hide, json_only=self._json_only)
                return response
            request = _redirected(request, response)
        raise TransportError(FailureKind.REDIRECT, f"more than {MAX_REDIRECTS} {CIRCLE}")

    def _hide(self, text: str) -> str:
        return self.auth.hide(text) if isinstance(self.auth, Authentication) else text

    def _send_once(self, request: requests.PreparedRequest, settings: dict[str, Any]) -> requests.Response:
        deadline = self._deadline()
        deadline.check()
        if not self._allowance().take_request():
            raise TransportError(FailureKind.COST, "the requests that one diagnosis may send are used up")
        guarded = {"timeout": min(deadline.left_s, SLOWEST_READ_S), "allow_redirects": False, "stream": True}
        if urlsplit(request.url or "").hostname in LOOPBACK:
            settings = {**settings, "proxies": {}}
        try:
            response = super().send(request, **{**settings, **guarded})
            # requests reads `raw` again on first use of `content`: hand it what was read under guard.
            response.raw = io.BytesIO(self._read(response, deadline))
        except requests.RequestException as error:
            raise translate(error, deadline) from error
        except (HTTPError, OSError) as error:
            raise translate(error, deadline) from error
        return response

    def _read(self, response: requests.Response, deadline: Deadline) -> bytes:
        raw = response.raw
        body = bytearray()
        most = getattr(self._limit, "bytes", self._max_bytes)
        try:
            while True:
                deadline.check()
                # read1 returns what has arrived; read would wait for a full chunk from a server that drips bytes.
                chunk = raw.read1(CHUNK_BYTES, decode_content=True) if isinstance(raw, BaseHTTPResponse) else b""
                if not chunk:
                    break
                body += chunk
                allowed = self._allowance().take_bytes(len(chunk))
                if len(body) > most:
                    raise TransportError(FailureKind.TOO_LARGE, f"more than {_size(most)}")
                if not allowed:
                    raise TransportError(FailureKind.COST, "the bytes that one diagnosis may read are used up")
        except TransportError:
            # The rest of the answer is still on its way; a connection in that state cannot be used again.
            response.close()
            raise
        _refuse_short(response, raw)
        return bytes(body)


def _size(count: int) -> str:
    return f"{count // 1024**2} MiB" if count >= 1024**2 else f"{count // 1024} KiB"


def _clock_ahead_s(response: requests.Response) -> float | None:
    """From the header Date, which has whole seconds."""
    try:
        said_s = parsedate_to_datetime(response.headers.get("date", "")).timestamp()
    except (ValueError, OverflowError):
        return None
    return said_s + 0.5 - time.time()


def _refuse_short(response: requests.Response, raw: object) -> None:
    left = getattr(raw, "length_remaining", None)
    if isinstance(left, int) and left > 0:
        response.close()
        raise TransportError(FailureKind.BROKEN, f"{left} bytes are missing")


def _redirected(request: requests.PreparedRequest, response: requests.Response) -> requests.PreparedRequest:
    try:
        target = urljoin(request.url or "", response.headers["location"])
        elsewhere = origin_of(target) != origin_of(request.url or "")
    except ValueError as error:
        raise TransportError(FailureKind.REDIRECT, "to what is no address; it was not followed") from error
    if elsewhere:
        host = plain(urlsplit(target).hostname or "nowhere", 100)
        raise TransportError(FailureKind.REDIRECT, f"to another host ({host}); it was not followed")
    following = request.copy()
    following.url = target
    return following


def _refuse_errors(response: requests.Response, hide: Callable[[str], str], *, json_only: bool) -> None:
    status = response.status_code
    if status == requests.codes.ok:
        if json_only and response.content[:1] not in (b"{", b"["):
            raise TransportError(FailureKind.NOT_JSON, _looks_like(response, hide), status)
        return
    detail = f"HTTP {status}{_reason(response, hide)}"
    if status in (401, 403, 407):
        raise TransportError(FailureKind.CREDENTIALS, detail, status)
    if status in (404, 405, 410):
        raise TransportError(FailureKind.NOT_FOUND, detail, status)
    raise TransportError(FailureKind.STATUS, detail, status)


def _reason(response: requests.Response, hide: Callable[[str], str]) -> str:
    """The server's own words, where it says them in Prometheus's form or TorchServe's."""
    try:
        answer = response.json()
    except (ValueError, RecursionError):
        return ""
    message = (answer.get("error") or answer.get("message")) if isinstance(answer, dict) else None
    return f": {plain(hide(message))}" if isinstance(message, str) and message else ""


def _looks_like(response: requests.Response, hide: Callable[[str], str]) -> str:
    kind = plain(hide(response.headers.get("content-type", "")), 60) or "an answer without a type"
    return f"the server sent {kind}" if response.content else "the server sent an empty answer"


def translate(error: Exception, deadline: Deadline) -> TransportError:
    """What a library's exception means for the user."""
    if isinstance(error, TransportError):
        return error
    causes = list(_causes(error))
    if deadline.left_s <= 0:
        return TransportError(FailureKind.DEADLINE, "the time for all queries was used up")
    if any(isinstance(cause, requests.Timeout | ReadTimeoutError | TimeoutError) for cause in causes):
        return TransportError(FailureKind.DEADLINE, f"no answer within {SLOWEST_READ_S:g} s")
    if any(isinstance(cause, requests.exceptions.SSLError) for cause in causes):
        return TransportError(FailureKind.TLS, plain(str(causes[-1])))
    if any(isinstance(cause, NameResolutionError | LocationParseError) for cause in causes):
        return TransportError(FailureKind.NAME, "")
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return TransportError(FailureKind.REFUSED, "")
    if any(isinstance(cause, NewConnectionError) for cause in causes):
        return TransportError(FailureKind.NO_ROUTE, plain(str(causes[-1])))
    return TransportError(FailureKind.BROKEN, plain(str(causes[-1])))


def _causes(error: BaseException) -> list[BaseException]:
    """An exception and everything it wraps, outermost first; requests keeps the reason in its arguments."""
    found: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop(0)
        if current in found:
            continue
        found.append(current)
        reason = getattr(current, "reason", None)
        inner = [current.__cause__, current.__context__, reason, *current.args]
        waiting += [item for item in inner if isinstance(item, BaseException)]
    return found
