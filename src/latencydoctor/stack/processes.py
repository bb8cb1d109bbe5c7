"""Finds and ends the processes of one stack, and removes the shared memory they leave.

Every process of a stack carries the stack's marker in its environment, so that they are found even when supervisord,
which knows them, has been killed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from latencydoctor.stack.programs import MARKER

SHARED_MEMORY = Path("/dev/shm")

STUB_NAME = "triton_python_backend_stub"

TERM_GRACE_S = 5.0
KILL_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Member:
    """One live process of a stack."""

    pid: int
    command: str


def members(identity: str) -> tuple[Member, ...]:
    """The live processes that carry the marker of this stack, without the caller and its ancestors."""
    return tuple(Member(found.pid, _command(found)) for found in _marked(identity))


def _marked(identity: str) -> list[psutil.Process]:
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        if process.pid in own:
            continue
        try:
            if process.environ().get(MARKER) == identity and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            # Ended meanwhile, or another user's: not one of ours.
            continue
    return found


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.Error, OSError):
        return ""


def end_members(identity: str) -> tuple[Member, ...]:
    """Ends every process of the stack, first with SIGTERM, then with SIGKILL; returns what was found running."""
    found = _marked(identity)
    ended = tuple(Member(process.pid, _command(process)) for process in found)
    _end(found)
    # A supervisor that died between our look and its last act may have started one more.
    _end(_marked(identity))
    return ended


def _end(found: Iterable[psutil.Process]) -> None:
    alive = list(found)
    for process in alive:
        _signal(process, kill=False)
    _, alive = psutil.wait_procs(alive, timeout=TERM_GRACE_S)
    for process in alive:
        _signal(process, kill=True)
    psutil.wait_procs(alive, timeout=KILL_GRACE_S)


def _signal(process: psutil.Process, *, kill: bool) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        (process.kill if kill else process.terminate)()


def wait_gone(identity: str, timeout_s: float) -> bool:
    """Whether every process of the stack ended by itself within `timeout_s`."""
    end = time.monotonic() + timeout_s
    while _marked(identity):
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def stubs(prefix: str) -> tuple[int, ...]:
    """The process ids of the model's Python processes whose shared memory starts with `prefix`."""
    return tuple(process.pid for process in _stubs(prefix))


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits for its parent to notice does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _stubs(prefix: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        command = _command(process)
        if STUB_NAME in command and prefix in command:
            found.append(process)
    return found


def clear_triton_leftovers(prefix: str) -> None:
    """Ends stubs whose Triton is gone and removes the shared memory whose name starts with `prefix`."""
    left = _stubs(prefix)
    for process in left:
        _signal(process, kill=True)
    psutil.wait_procs(left, timeout=KILL_GRACE_S)
    remove_shared_memory(prefix)


def remove_shared_memory(prefix: str) -> tuple[str, ...]:
    """Removes this stack's segments and returns their names."""
    found = shared_memory(prefix)
    for name in found:
        (SHARED_MEMORY / name).unlink(missing_ok=True)
    return found


def shared_memory(prefix: str) -> tuple[str, ...]:
    """The names of the segments that start with `prefix`."""
    return tuple(sorted(path.name for path in SHARED_MEMORY.glob(f"{prefix}*")))
