"""One HTTP request and its whole answer, within a time and a size, whatever the server does.

http.client's own time-out holds for each wait: a server that drips bytes is waited for without end. And it takes an
answer that breaks off for a whole one.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse

FAILURES = (OSError, HTTPException)
"""What `exchange` raises where there is no whole answer."""


def exchange(
    connection: HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    max_bytes: int,
) -> tuple[HTTPResponse, bytes]:
    """The answer and its body, cut after one byte more than `max_bytes`; the connection is closed.

    One of FAILURES when it is not there as a whole within the connection's time-out.
    """
    try:
        connection.connect()
        late = _Late(connection)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            content = response.read(max_bytes + 1)
            # A cut looks like an end; so does an end before all has come that was promised.
            if late.fired or (len(content) <= max_bytes and response.length):
                raise HTTPException(f"the answer breaks off after {len(content)} bytes")
        except FAILURES as error:
            if late.fired:
                raise TimeoutError(f"no whole answer within {connection.timeout:g} s") from error
            raise
        finally:
            late.cancel()
        return response, content
    finally:
        connection.close()


class _Late(threading.Timer):
    """Cuts a connection once its time is over, so that whoever reads from it is woken."""

    def __init__(self, connection: HTTPConnection) -> None:
        super().__init__(connection.timeout or 0.0, self._cut, [connection.sock])
        self.fired = False
        self.daemon = True
        self.start()

    def _cut(self, connected: socket.socket) -> None:
        self.fired = True
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
