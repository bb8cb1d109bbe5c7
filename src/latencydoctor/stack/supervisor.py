"""Talks to supervisord over its Unix socket: start it, ask it, stop it."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from xmlrpc.client import Error as XmlRpcError
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport

from latencydoctor.errors import KnownError
from latencydoctor.stack.programs import GROUP
from latencydoctor.stack.unix_http import UnixConnection

ANSWER_S = 10.0
"""supervisord answers at once; one that is silent for so long is stopped, or stuck. A busy machine takes seconds."""

START_S = 30.0
"""It is in the background within a second."""

SPAWNED = re.compile(r"spawned: '([a-z0-9_-]+)' with pid")
STARTED = re.compile(r"supervisord started with pid")


class _Transport(SupervisorTransport):  # type: ignore[misc]  # supervisor is untyped
    """supervisor's own waits for ever."""

    def __init__(self, path: str) -> None:
        super().__init__(None, None, f"unix://{path}")
        self._get_connection = lambda: UnixConnection(path, ANSWER_S)


@dataclass(frozen=True, slots=True)
class Supervised:
    """What supervisord says of one program; `state` is its word (RUNNING, STARTING, BACKOFF, FATAL ...)."""

    name: str
    state: str
    pid: int
    uptime_s: float
    problem: str

    @property
    def is_given_up(self) -> bool:
        """Whether it ended so often that supervisord starts it no more."""
        return self.state == "FATAL"


class Supervisor:
    """The supervisor of one stack; every method raises KnownError when it is not there."""

    def __init__(self, socket: str) -> None:
        self._socket = socket

    def _call(self, method: str, *arguments: object, known: frozenset[int] = frozenset()) -> object:
        """The answer; None for a refusal whose code is among `known`."""
        proxy = ServerProxy("http://127.0.0.1", _Transport(self._socket))
        try:
            with proxy:
                return getattr(proxy.supervisor, method)(*arguments)
        except Fault as fault:
            if fault.faultCode in known:
                return None
            raise KnownError(
                f"supervisord refuses: {fault.faultString}", hint="See `latencydoctor stack logs supervisord`."
            ) from fault
        except (OSError, http.client.HTTPException, XmlRpcError) as error:
            raise KnownError("supervisord does not answer", hint="See `latencydoctor stack status`.") from error

    def alive(self) -> bool:
        """Whether supervisord answers and is not about to end."""
        try:
            state = self._call("getState")
        except KnownError:
            return False
        return isinstance(state, dict) and state.get("statename") == "RUNNING"

    def programs(self) -> tuple[Supervised, ...]:
        """Every program's state."""
        found = self._call("getAllProcessInfo")
        return tuple(_supervised(info) for info in found) if isinstance(found, list) else ()

    def start_program(self, name: str) -> None:
        """Has one program started, and kept running; returns before it is. Nothing to do where it runs already."""
        self._call("startProcess", f"{GROUP}:{name}", False, known=frozenset({Faults.ALREADY_STARTED}))

    def start_given_up(self, names: Collection[str]) -> tuple[str, ...]:
        """Has those of these programs started again that ended so often that they are started no more; their names."""
        given_up = tuple(one.name for one in self.programs() if one.is_given_up and one.name in names)
        for name in given_up:
            self.start_program(name)
        return given_up

    def stop_program(self, name: str) -> None:
        """Has one program ended for good; returns before it is. Nothing to do where it does not run."""
        self._call("stopProcess", f"{GROUP}:{name}", False, known=frozenset({Faults.NOT_RUNNING}))

    def shut_down(self) -> None:
        """Asks supervisord to stop all programs, last started first, and to end; returns before it has."""
        self._call("shutdown")


def _supervised(info: Mapping[str, object]) -> Supervised:
    state = str(info["statename"])
    running = state in ("RUNNING", "STARTING")
    return Supervised(
        name=str(info["name"]),
        state=state,
        pid=int(str(info["pid"])),
        uptime_s=float(int(str(info["now"])) - int(str(info["start"]))) if running else 0.0,
        problem=str(info["spawnerr"]),
    )


def start(config: Path, environment: Mapping[str, str]) -> None:
    """Starts supervisord, which puts itself into the background; KnownError with its own words when it does not."""
    command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(config)]
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            cwd=config.parent,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=START_S,
        )
    except subprocess.TimeoutExpired as error:
        raise KnownError(
            f"supervisord did not start within {START_S:g} s", hint="Is the machine, or its disk, overloaded?"
        ) from error
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if line.strip()]
        reason = said[0] if said else f"exit status {done.returncode}"
        raise KnownError(f"supervisord did not start: {reason}", hint=f"Its configuration is {config}.")


def restarts(log: Path) -> dict[str, int]:
    """How often each program was started again since supervisord's last start, read from its log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    starts = list(STARTED.finditer(text))
    since = text[starts[-1].start() :] if starts else text
    return {name: times - 1 for name, times in Counter(SPAWNED.findall(since)).items()}
