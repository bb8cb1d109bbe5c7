"""The gateway's admin API over its Unix socket: one request, and what settings would compile to."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from http.client import HTTPConnection

from latencydoctor.errors import ContentError, KnownError
from latencydoctor.targets.exchange import FAILURES, exchange

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1 << 20


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Connects to the socket's path; the host name only fills the header."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass(frozen=True, slots=True)
class Rendered:
    """What settings compile to: the configuration of all replicas but a canary, and each replica's own."""

    compiled: str
    replicas: tuple[str, ...]


def render(socket_path: str, settings_text: str) -> Rendered:
    """The compiled configuration for these settings. ContentError when the stack refuses them, KnownError when the
    admin API does not answer; nothing is applied either way."""
    status, body = asked(socket_path, "POST", "/render", settings_text.encode())
    try:
        answer = json.loads(body)
        errors, compiled = answer.get("errors", []), answer.get("config_pbtxt")
        own = tuple(str(text) for text in answer.get("replicas", [compiled]))
    except (ValueError, AttributeError, TypeError) as error:
        raise KnownError(
            f"the admin API at {socket_path} answered {status} with something else than JSON",
            hint="Is the socket the gateway's of this version?",
        ) from error
    if errors:
        raise ContentError(
            f"the stack refuses these settings: {'; '.join(str(item) for item in errors)}",
            hint="Choose values that the stack can serve.",
        )
    if status != 200 or not isinstance(compiled, str) or not compiled:
        raise KnownError(
            f"the admin API at {socket_path} answered {status} without a configuration",
            hint="See `latencydoctor stack logs gateway`.",
        )
    return Rendered(compiled, own)


def asked(socket_path: str, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
    """One request to the admin API: its status and its answer; KnownError when there is none."""
    try:
        response, answer = exchange(_UnixConnection(socket_path), method, path, body, max_bytes=MAX_ANSWER_BYTES)
    except FAILURES as error:
        raise KnownError(
            f"the gateway's admin API at {socket_path} does not answer: {error}",
            hint="Is the stack up? See `latencydoctor stack status`.",
        ) from error
    if len(answer) > MAX_ANSWER_BYTES:
        raise KnownError(
            f"the admin API at {socket_path} answered more than {MAX_ANSWER_BYTES} bytes",
            hint="See `latencydoctor stack logs gateway`.",
        )
    return response.status, answer
