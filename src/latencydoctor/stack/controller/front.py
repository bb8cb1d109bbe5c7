"""The gateway as the controller asks it: whether a replica that is to end still has questions to answer."""

from __future__ import annotations

import http.client
import json

from latencydoctor.stack.unix_http import UnixConnection

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


def _state(path: str) -> dict[str, list[dict[str, object]]]:
    connection = UnixConnection(path, TIMEOUT_S)
    try:
        connection.request("GET", "/state")
        found: dict[str, list[dict[str, object]]] = json.loads(connection.getresponse().read(MAX_ANSWER_BYTES))
        return found
    finally:
        connection.close()
