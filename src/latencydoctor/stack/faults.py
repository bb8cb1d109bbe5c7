"""Faults done to a running stack, for rehearsals: each is the real thing, and the doctor is told nothing of it."""

from __future__ import annotations

import threading
from pathlib import Path

from valkey import Valkey
from valkey.exceptions import ValkeyError

from latencydoctor.errors import KnownError
from latencydoctor.stack.files import write_atomically
from latencydoctor.stack.layout import Layout

_ANSWER_WITHIN_S = 5.0

_GAP_S = 0.05
"""Between two stalls the cache server works for so long: enough to answer all that has gathered."""


def throttle(layout: Layout, clock_mhz: float) -> None:
    """Lowers the clock of the simulated device from its next execution on; OSError passes."""
    write_atomically(layout.device_clock, f"{clock_mhz:g}\n")


def shrink_cache(socket_path: str, spare_bytes: int) -> None:
    """Empties the cache server and leaves it `spare_bytes` to hold anything, as a restart with a wrong limit does."""
    with _connect(socket_path) as client:
        try:
            client.flushall(asynchronous=False)
            client.config_set("maxmemory", int(client.info("memory")["used_memory"]) + spare_bytes)
        except (ValkeyError, OSError) as error:
            raise _unreachable(error) from error


class StalledCache:
    """A cache server that stands still for `stall_s`, works for a moment, and stands still again, until `end`."""

    def __init__(self, socket_path: str, stall_s: float) -> None:
        self._client = _connect(socket_path)
        self._stall_s = stall_s
        self._ended = threading.Event()
        self._stall()
        # A daemon: a drill that is killed must not be kept alive by the fault that it made.
        self._thread = threading.Thread(target=self._go_on, name="stalled-cache", daemon=True)
        self._thread.start()

    def _stall(self) -> None:
        try:
            self._client.client_pause(round(self._stall_s * 1000), all=True)
        except (ValkeyError, OSError) as error:
            raise _unreachable(error) from error

    def _go_on(self) -> None:
        while not self._ended.wait(self._stall_s + _GAP_S):
            try:
                self._stall()
            except KnownError:
                # The server has been ended, and the stall with it.
                return

    def end(self) -> None:
        """No further stall; the last one passes by itself. May be called again."""
        self._ended.set()
        self._thread.join(_ANSWER_WITHIN_S)
        self._client.connection_pool.disconnect()


def _connect(socket_path: str) -> Valkey:
    if not Path(socket_path).exists():
        raise KnownError("the cache server is not running", hint="See `latencydoctor stack status`.")
    return Valkey(unix_socket_path=socket_path, socket_timeout=_ANSWER_WITHIN_S)


def _unreachable(error: Exception) -> KnownError:
    return KnownError(f"the cache server does not answer: {error}", hint="See `latencydoctor stack status`.")
