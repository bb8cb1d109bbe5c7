"""Faults done to a running stack, for rehearsals: each is the real thing, and the doctor is told nothing of it."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable
from pathlib import Path

from valkey import Valkey
from valkey.exceptions import ValkeyError

from latencydoctor.errors import KnownError
from latencydoctor.stack.files import write_atomically
from latencydoctor.stack.layout import Layout

_ANSWER_WITHIN_S = 5.0

_GAP_S = 0.2
"""Between two stalls the cache server works for so long. It looks only ten times a second whether a stall is over, and
a new one that comes before that is served ahead of those who wait."""

_FREE_S = 0.005
"""A neighbour leaves the device free for so long: a lock may go to the one who has just given it back."""


def throttle(layout: Layout, clock_mhz: float) -> None:
    """Lowers the clock of the simulated device from its next execution on; OSError passes."""
    write_atomically(layout.device_clock(), f"{clock_mhz:g}\n")


class CacheTrouble:
    """Something done to the cache server again and again, from the first moment until `end`."""

    def __init__(self, socket_path: str, do: Callable[[Valkey], object], every_s: float) -> None:
        if not Path(socket_path).exists():
            raise KnownError("the cache server is not running", hint="See `latencydoctor stack status`.")
        self._client = Valkey(unix_socket_path=socket_path, socket_timeout=_ANSWER_WITHIN_S)
        self._do = do
        self._every_s = every_s
        self._ended = threading.Event()
        try:
            do(self._client)
        except (ValkeyError, OSError) as error:
            raise KnownError(
                f"the cache server does not answer: {error}", hint="See `latencydoctor stack status`."
            ) from error
        # A daemon: a drill that is killed must not be kept alive by the fault that it made.
        self._thread = threading.Thread(target=self._go_on, name="cache-trouble", daemon=True)
        self._thread.start()

    def _go_on(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self._do(self._client)
            except (ValkeyError, OSError):
                # The server has been ended, and the trouble with it.
                return

    def end(self) -> None:
        """No more of it; a stall that has begun passes by itself. May be called again."""
        self._ended.set()
        self._thread.join(_ANSWER_WITHIN_S)
        self._client.connection_pool.disconnect()


def stall_cache(socket_path: str, stall_s: float) -> CacheTrouble:
    """The cache server stands still for `stall_s`, works for a moment, and stands still again."""
    return CacheTrouble(
        socket_path, lambda client: client.client_pause(round(stall_s * 1000), all=True), stall_s + _GAP_S
    )


def flush_cache(socket_path: str, every_s: float) -> CacheTrouble:
    """The cache is emptied every `every_s`, as by a server that crashes and restarts, or a job that runs wild."""
    return CacheTrouble(socket_path, lambda client: client.flushall(), every_s)


RENEWED_S = 3600
"""How long entries live from each visit of the job that renews them."""


def renew_cache(socket_path: str, every_s: float) -> CacheTrouble:
    """A job beside the gateway gives every entry another hour, every `every_s`: what hides a time to live that is too
    short. Ending it and emptying the cache uncovers that."""
    return CacheTrouble(socket_path, _renew, every_s)


# One round trip, though there are some thousand entries.
_RENEW = "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('EXPIRE', key, ARGV[1]) end"


def _renew(client: Valkey) -> None:
    client.eval(_RENEW, 0, str(RENEWED_S))


def empty_cache(socket_path: str) -> None:
    """Empties the cache once; KnownError when it does not answer."""
    client = Valkey(unix_socket_path=socket_path, socket_timeout=_ANSWER_WITHIN_S)
    try:
        client.flushall()
    except (ValkeyError, OSError) as error:
        raise KnownError(
            f"the cache server does not answer: {error}", hint="See `latencydoctor stack status`."
        ) from error
    finally:
        client.connection_pool.disconnect()


class BusyNeighbour:
    """Another user of a simulated device, who holds it for `hold_s` whenever he gets it, until `end`."""

    def __init__(self, lock: Path, hold_s: float) -> None:
        self._lock = lock
        self._hold_s = hold_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="busy-neighbour", daemon=True)
        self._thread.start()

    def _go_on(self) -> None:
        with self._lock.open("a") as stream:
            while not self._ended.is_set():
                fcntl.flock(stream.fileno(), fcntl.LOCK_EX)
                self._ended.wait(self._hold_s)
                fcntl.flock(stream.fileno(), fcntl.LOCK_UN)
                self._ended.wait(_FREE_S)

    def end(self) -> None:
        """Leaves the device alone. May be called again."""
        self._ended.set()
        self._thread.join(_ANSWER_WITHIN_S)
