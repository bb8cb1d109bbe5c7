"""Passes requests on to a Prometheus and counts them, and the bytes of the answers once unpacked."""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSED_ON = ("content-type", "accept", "accept-encoding", "user-agent")


@dataclass(slots=True)
class Counted:
    """What went through: requests as (method, path with query, body, seconds), and unpacked bytes."""

    url: str
    requests: list[tuple[str, str, str, float]] = field(default_factory=list)
    bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def clear(self) -> None:
        self.requests.clear()
        self.bytes = 0

    @property
    def slowest_s(self) -> float:
        return max((seconds for *_, seconds in self.requests), default=0.0)


@contextlib.contextmanager
def counting_proxy(target: str, refuse_post: int = 0) -> Iterator[Counted]:
    """A proxy on a loopback port; `refuse_post` is the status that it answers whatever is posted with."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() in PASSED_ON}
            request = urllib.request.Request(target + self.path, body or None, headers, method=self.command)
            started_s = time.monotonic()
            if self.command == "POST" and refuse_post:
                status, kind, encoding, data = refuse_post, "text/plain", "", b"no"
            else:
                status, kind, encoding, data = _fetched(request)
            seconds = time.monotonic() - started_s
            with counted.lock:
                counted.requests.append((self.command, self.path, body.decode(), seconds))
                counted.bytes += len(gzip.decompress(data) if encoding == "gzip" else data)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if encoding:
                self.send_header("Content-Encoding", encoding)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = pass_on  # noqa: N815  # the standard library looks these names up

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the method overridden
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        counted = Counted(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield counted
        finally:
            server.shutdown()
            thread.join(timeout=5)


def _fetched(request: urllib.request.Request) -> tuple[int, str, str, bytes]:
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return (
                answer.status,
                answer.headers["content-type"],
                answer.headers["content-encoding"] or "",
                answer.read(),
            )
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.headers["content-encoding"] or "", error.read()
