"""HTTP servers that answer as a Prometheus should not: each is a function from a request to raw bytes on the wire."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from latencydoctor.evidence.combine import MARK

Answer = Callable[["Asked"], None]


@dataclass(slots=True)
class Asked:
    """One request as it arrived, and the connection to answer on."""

    connection: socket.socket
    head: str
    body: str = ""

    @property
    def form(self) -> dict[str, str]:
        """What was posted."""
        return dict(urllib.parse.parse_qsl(self.body))

    @property
    def path(self) -> str:
        return self.head.split(" ", 2)[1]

    def header(self, name: str) -> str:
        for line in self.head.splitlines()[1:]:
            key, _, value = line.partition(":")
            if key.strip().lower() == name.lower():
                return value.strip()
        return ""

    def reply(self, body: bytes, status: str = "200 OK", kind: str = "application/json", **more: str) -> None:
        """A complete answer; `more` are further headers, `_` for `-`."""
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **more}
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status}\r\n{lines}\r\n"
        self.connection.sendall(head.encode() + body)


@dataclass(slots=True)
class Stranger:
    """A listening server and what it was asked."""

    url: str
    asked: list[Asked] = field(default_factory=list)


@contextlib.contextmanager
def stranger(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Stranger]:
    """Serve `answer` on a loopback port, one thread a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Stranger(f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}")

        def talk(connection: socket.socket) -> None:
            # Whoever asked may give up at any time: that is what the tests are about.
            with contextlib.suppress(OSError), connection, _secured(connection, tls) as talking:
                data = b""
                # A TLS client says nothing that ends so.
                while b"\r\n\r\n" not in data and data[:1] != b"\x16" and (piece := talking.recv(65536)):
                    data += piece
                if data:
                    asked = _whole(talking, data)
                    server.asked.append(asked)
                    answer(asked)
                    talking.shutdown(socket.SHUT_RDWR)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            # Closing alone does not wake accept() on Linux.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=5)


def _whole(talking: socket.socket, data: bytes) -> Asked:
    """The request with all of its body: what is left unread when a connection is closed takes the answer with it."""
    head, _, body = data.partition(b"\r\n\r\n")
    asked = Asked(talking, head.decode("latin-1"))
    length = int(asked.header("content-length") or 0)
    while len(body) < length and (piece := talking.recv(65536)):
        body += piece
    asked.body = body.decode("latin-1")
    return asked


def _secured(connection: socket.socket, tls: ssl.SSLContext | None) -> socket.socket:
    if tls is None:
        return connection
    talking = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
    try:
        talking.do_handshake()
    except ssl.SSLError:
        # A client may have sent its request already: closing at once would reset the connection before it has read why.
        with contextlib.suppress(OSError), talking:
            talking.shutdown(socket.SHUT_WR)
            while talking.recv(65536):
                pass
        raise
    return talking


def marked(asked: Asked, result: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """This result for each of the expressions that a query combines, as a Prometheus would mark them."""
    query = asked.form.get("query", "")
    marks = re.findall(rf'"{MARK}", "(\d+)"', query)
    return [one | {"metric": one["metric"] | {MARK: mark}} for mark in marks for one in result] if marks else result


def prometheus_json(result: object, kind: str = "vector") -> bytes:
    """A well-formed answer of Prometheus's query API."""
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def names_json(*names: str) -> bytes:
    """A well-formed answer of the label-values API."""
    return json.dumps({"status": "success", "data": list(names)}).encode()


def drip(asked: Asked, every_s: float = 0.05) -> None:
    """A correct head, then a body that arrives a byte at a time and never ends."""
    asked.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
    while True:
        asked.connection.sendall(b" ")
        time.sleep(every_s)


def drip_head(asked: Asked) -> None:
    """Not even the head ends."""
    asked.connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        asked.connection.sendall(b"a")
        time.sleep(0.05)


def endless(asked: Asked) -> None:
    """A chunked body without an end, as fast as the connection takes it."""
    asked.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"[" * 0x10000 + b"\r\n"
    while True:
        asked.connection.sendall(chunk)
