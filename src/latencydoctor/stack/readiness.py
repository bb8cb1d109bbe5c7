"""Waits until every part of a starting stack answers, and says why when one does not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import KnownError
from latencydoctor.stack import supervisor
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.logs import last_reason
from latencydoctor.stack.prepare import Observer
from latencydoctor.stack.probes import probes
from latencydoctor.stack.replicas import load_serving

PAUSE_S = 0.05

GIVE_UP_RESTARTS = 2
"""A part that ended this often before it was ever ready will not become ready by waiting."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One part that is not ready yet."""

    name: str
    problem: str


def wait_ready(layout: Layout, endpoints: Endpoints, deadline_s: float, tell: Observer) -> None:
    """Returns once all parts answer their probes; KnownError naming the part and its last word otherwise."""
    start = time.monotonic()
    # In a stack that has run for long, what was restarted before says nothing of now.
    before = supervisor.restarts(layout.log("supervisord"))
    parts = probes(endpoints, load_serving(layout.serving))
    waiting = {name: Waiting(name, "") for name in parts}
    with ThreadPoolExecutor(len(waiting), thread_name_prefix="probe") as pool:
        while waiting:
            asked = {name: pool.submit(probe) for name, probe in parts.items() if name in waiting}
            for name, answer in asked.items():
                problem = answer.result()
                if problem:
                    waiting[name] = Waiting(name, problem)
                    continue
                del waiting[name]
                tell(name, f"ready after {time.monotonic() - start:.1f} s")
            if waiting:
                _give_up(layout, endpoints, waiting, before)
                if time.monotonic() - start > deadline_s:
                    raise _not_ready(layout, next(iter(waiting.values())), f"was not ready within {deadline_s:.0f} s")
                time.sleep(PAUSE_S)


def _give_up(layout: Layout, endpoints: Endpoints, waiting: dict[str, Waiting], before: Mapping[str, int]) -> None:
    counts = supervisor.restarts(layout.log("supervisord"))
    states = {found.name: found.state for found in supervisor.Supervisor(endpoints.supervisor_socket).programs()}
    for name, part in waiting.items():
        if counts.get(name, 0) - before.get(name, 0) >= GIVE_UP_RESTARTS or states.get(name) == "FATAL":
            raise _not_ready(layout, part, "ends as soon as it is started")


def _not_ready(layout: Layout, part: Waiting, what: str) -> KnownError:
    log: Path = layout.log(part.name)
    reason = last_reason(log) or part.problem
    return KnownError(f"{part.name} {what}: {reason}", hint=f"Its log is {log}.")
