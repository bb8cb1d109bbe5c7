"""The gateway as the controller asks it: whether a replica that is to end still has questions to answer."""

from __future__ import annotations

import http.client
import json
import socket

TIMEOUT_S = 2.0
MAX_ANSWER_BYTES = 256 * 1024


class Front:
    """The gateway behind its admin socket."""

    def __init__(self, admin_socket: str) -> None:
        self._socket = admin_socket

    def busy(self, address: str) -> bool | None:
        """Whether the Triton at `host:port` may still get questions, or has some in flight; None: nobody can say."""
        try:
            mine = [one for one in _state(self._socket)["replicas"] if one["address"] == address]
            return any(one["serving"] or one["inflight"] for one in mine)
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            return None


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("admin", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self._path)


def _state(path: str) -> dict[str, list[dict[str, object]]]:
    connection = _Connection(path)
    try:
        connection.request("GET", "/state")
        found: dict[str, list[dict[str, object]]] = json.loads(connection.getresponse().read(MAX_ANSWER_BYTES))
        return found
    finally:
        connection.close()
