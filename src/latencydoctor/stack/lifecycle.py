"""Bringing a stack up and down. `up` twice is one stack; after `down` no process, port or shared memory is left."""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack import endpoints, host, prepare, processes, supervisor
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.prepare import Observer, UpOptions
from latencydoctor.stack.probes import probes
from latencydoctor.stack.programs import MARKER, package_folder
from latencydoctor.stack.readiness import wait_ready
from latencydoctor.stack.replicas import load_serving
from latencydoctor.stack.settings import Settings

STOP_S = 20.0
"""How long supervisord may take to stop its programs; each gets 6 s before it is killed."""

LOCK_S = 120.0
"""How long to wait for another `up` or `down` on the same state folder."""

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def silent(part: str, line: str, /) -> None:
    """The observer of whoever wants no progress."""


def up(layout: Layout, options: UpOptions | None = None, tell: Observer = silent) -> Endpoints:
    """Starts the stack, or finds it running, and returns once every part answers.

    Raises KnownError (ContentError for settings) with one line for whatever is in the way: an unsupported machine, a
    missing program, a port in use, broken settings, a full disk, a part that does not become ready in time. What this
    call started is ended again then.
    """
    options = options or UpOptions()
    with _disk_errors(layout.state):
        prepare.check_host(layout)
        settings = prepare.wanted_settings(layout, options)
        with _locked(layout, tell):
            running = _running(layout)
            if running is None:
                started = _start(layout, settings, options, tell)
                _warn_of_others(tell)
                return started
            if settings != stack_settings.load(layout.settings):
                raise KnownError(
                    f"the stack in {layout.state} is running with other settings",
                    hint=f"Edit {layout.settings} (and raise its generation), or run `latencydoctor stack down` first.",
                )
            tell("stack", "is running already")
            parts = probes(running, load_serving(layout.serving))
            for name in supervisor.Supervisor(running.supervisor_socket).start_given_up(parts):
                tell(name, "had ended again and again and is started once more")
            wait_ready(layout, running, options.deadline_s, tell)
            return running


def _warn_of_others(tell: Observer) -> None:
    """Triton's API loads code, and a port on loopback is open to every user of the machine."""
    others = host.other_people(pwd.getpwall(), os.getuid())
    if others:
        names = ", ".join(others[:3]) + (" ..." if len(others) > 3 else "")
        tell(
            "stack", f"this machine has other users ({names}): they can reach its ports on loopback, Triton's included"
        )


def _running(layout: Layout) -> Endpoints | None:
    """The endpoints of the stack when its supervisor answers."""
    try:
        found = endpoints.load(layout.endpoints)
    except KnownError:
        # No stack here yet, or a damaged file: what runs all the same is found by its marker.
        return None
    return found if supervisor.Supervisor(found.supervisor_socket).alive() else None


def _start(layout: Layout, settings: Settings, options: UpOptions, tell: Observer) -> Endpoints:
    _clean(layout, tell)
    ready = False
    try:
        inputs = prepare.gather(layout, settings, options, os.environ, tell)
        prepare.write_files(inputs, settings)
        supervisor.start(layout.supervisor_config, child_environment(layout, os.environ))
        wait_ready(layout, inputs.endpoints, options.deadline_s, tell)
        ready = True
    finally:
        # Also on Ctrl-C: a stack that was never ready is of no use to anyone.
        if not ready:
            _stop(layout, silent)
    return inputs.endpoints


def revive(layout: Layout, tell: Observer = silent) -> bool:
    """Starts a stack again whose supervisord was killed, with its settings as they are; whether there was one.

    Does not wait until it is ready. Nothing to do where supervisord answers after all, or where the stack has been
    taken down meanwhile. KnownError as for `up`.
    """
    with _disk_errors(layout.state), _locked(layout, tell):
        if _running(layout) is not None or not processes.members(layout.identity):
            return False
        options = UpOptions()
        settings = prepare.wanted_settings(layout, options)
        _clean(layout, tell)
        inputs = prepare.gather(layout, settings, options, os.environ, tell)
        prepare.write_files(inputs, settings)
        supervisor.start(layout.supervisor_config, child_environment(layout, os.environ))
        return True


def child_environment(layout: Layout, environment: Mapping[str, str]) -> dict[str, str]:
    """What the parts inherit: the caller's environment, the stack's marker, and where this package is."""
    path = os.pathsep.join(part for part in (str(package_folder()), environment.get("PYTHONPATH", "")) if part)
    return {**environment, MARKER: layout.identity, "PYTHONPATH": path}


def down(layout: Layout, tell: Observer = silent, *, purge: bool = False) -> bool:
    """Ends the stack, or what is left of one; returns whether there was anything to end.

    Settings, logs and metrics stay unless `purge`. KnownError when a process cannot be ended.
    """
    if not layout.state.is_dir():
        return False
    # Other folders have a `run` as well, `/` and `/var` for two; all of it would go with `purge`.
    if not all(folder.is_dir() for folder in (layout.run, layout.models, layout.valkey)):
        raise KnownError(f"{layout.state} is not the state folder of a stack", hint="Name another one with --state.")
    with _disk_errors(layout.state):
        with _locked(layout, tell):
            ended = _stop(layout, tell)
        if purge:
            shutil.rmtree(layout.state)
    return ended


def _stop(layout: Layout, tell: Observer) -> bool:
    """Stops the programs through supervisord where it answers, then ends whatever still carries the marker."""
    running = _running(layout)
    if running is not None:
        tell("stack", "stopping")
        supervisor.Supervisor(running.supervisor_socket).shut_down()
        processes.wait_gone(layout.identity, STOP_S)
    return _clean(layout, tell) or running is not None


def _clean(layout: Layout, tell: Observer) -> bool:
    """Ends processes without a supervisor, removes shared memory and sockets; whether there was a process."""
    ended = processes.end_members(layout.identity)
    if ended:
        tell("stack", f"ended {len(ended)} processes that had lost their supervisor")
    left = processes.members(layout.identity)
    if left:
        pids = ", ".join(str(member.pid) for member in left)
        raise KnownError(f"these processes of the stack do not end: {pids}", hint="End them by hand, then try again.")
    processes.remove_shared_memory(layout.shm_prefix)
    layout.remove_sockets()
    layout.supervisor_pid.unlink(missing_ok=True)
    return bool(ended)


@contextmanager
def _locked(layout: Layout, tell: Observer) -> Iterator[None]:
    """One `up` or `down` at a time on a state folder; the lock is free at once when its holder dies."""
    end = time.monotonic() + LOCK_S
    with layout.lock.open("a") as stream:
        waiting = False
        while not _try_lock(stream.fileno()):
            if time.monotonic() > end:
                raise KnownError(f"another `stack up` or `down` holds {layout.lock}", hint="Wait for it, or end it.")
            if not waiting:
                tell("stack", "waiting for another `stack up` or `down` on this state folder")
            waiting = True
            time.sleep(0.1)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _disk_errors(state: Path) -> Iterator[None]:
    """Turns the operating system's refusal to write into one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        where = error.filename or state
        if error.errno in DISK_ERRORS:
            raise KnownError(f"the disk is full: {where}: {reason}", hint="Free some space, or use --state.") from error
        raise KnownError(f"cannot use {where}: {reason}", hint="Choose another place with --state.") from error
