"""Speaks to a gateway as its clients do: HTTP over TCP, HTTP over the admin's Unix socket."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.body)
        return values


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("admin", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(self._path)


def _exchange(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None) -> Reply:
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, headers, answer.read())
    finally:
        connection.close()


def call(port: int, method: str, path: str, body: bytes | None = None) -> Reply:
    """One request to the gateway."""
    return _exchange(http.client.HTTPConnection("127.0.0.1", port, timeout=10), method, path, body)


def ask(port: int, question: str, **more: str) -> Reply:
    """One question."""
    return call(port, "POST", "/v1/answer", json.dumps({"question": question, **more}).encode())


def admin(socket_path: str, method: str, path: str, values: object = None) -> Reply:
    """One request to the admin API; bytes go as they are, other values as JSON."""
    body = values if isinstance(values, bytes) else None if values is None else json.dumps(values).encode()
    return _exchange(_UnixConnection(socket_path), method, path, body)


def metrics(port: int) -> dict[str, float]:
    """All series of the metrics page by their name and labels."""
    lines = call(port, "GET", "/metrics").body.decode().splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


def eventually(true: Callable[[], object], what: str, timeout_s: float = 5.0) -> None:
    """Returns once something holds; fails the test when it does not in time."""
    until_s = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until_s, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)
