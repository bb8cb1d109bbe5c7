"""Who holds a lock: written into the lock's file by its holder, read by whoever is refused."""

from __future__ import annotations

import getpass
import json
import os
import socket
from datetime import UTC, datetime


def myself(run_id: str) -> bytes:
    """This process as the holder, for `run_id`."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    told = {"run": run_id, "user": _user(), "host": socket.gethostname(), "pid": os.getpid(), "since": since}
    return json.dumps(told).encode()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this number, as in some containers
        return str(os.getuid())


def named(content: bytes) -> str:
    """Who holds the lock, in words; empty while nobody is named who could still hold it."""
    try:
        told = json.loads(content)
        words = [f"{name} {told[name]}" for name in ("run", "user", "host", "pid")]
        gone = told["host"] == socket.gethostname() and not _alive(int(told["pid"]))
        return "" if gone else f"{', '.join(words)}, since {told['since']}"
    except (ValueError, KeyError, TypeError):
        return ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
