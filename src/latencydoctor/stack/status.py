"""What state a stack is in: every part asked, its restarts counted, the settings in effect named."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.stack import endpoints as addresses
from latencydoctor.stack import processes, supervisor
from latencydoctor.stack.controller.state import Progress
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.logs import clean
from latencydoctor.stack.probes import ask_controller, probes
from latencydoctor.stack.programs import REPLICA


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part. `state` is ready, starting (its process runs, its probe fails) or down."""

    name: str
    state: str
    pid: int
    uptime_s: float
    restarts: int
    """How often it was started again since `up`; for Triton the model's process counts as well."""
    address: str
    problem: str
    """What the probe said when it is not ready."""


@dataclass(frozen=True, slots=True)
class StackStatus:
    """A whole stack. `supervised` is False for one that is down, or whose supervisor was killed."""

    state: Path
    supervised: bool
    accelerator: str
    simulated: bool
    generation: int
    """Of the settings in effect; 0 when the controller cannot say."""
    settings_error: str
    """Why the newest settings are not in effect, "" when they are."""
    parts: tuple[PartStatus, ...]
    orphans: tuple[int, ...]
    """Process ids that run without a supervisor."""

    @property
    def running(self) -> bool:
        """Whether any process of the stack runs."""
        return self.supervised or bool(self.orphans)

    @property
    def ready(self) -> bool:
        """Whether the supervisor and every part answer."""
        return self.supervised and all(part.state == "ready" for part in self.parts)


def status(layout: Layout) -> StackStatus:
    """Asks every part; KnownError when the state folder never had a stack."""
    endpoints = addresses.load(layout.endpoints)
    server = supervisor.Supervisor(endpoints.supervisor_socket)
    supervised = server.alive()
    known = {found.name: found for found in server.programs()} if supervised else {}
    orphans = () if supervised else tuple(member.pid for member in processes.members(layout.identity))
    problems = _ask(endpoints) if supervised or orphans else dict.fromkeys(probes(endpoints), "not running")
    progress = (ask_controller(endpoints) if supervised or orphans else None) or Progress()
    counts = Counter(supervisor.restarts(layout.log("supervisord")) if supervised else {})
    counts["triton"] += progress.model_restarts
    return StackStatus(
        state=layout.state,
        supervised=supervised,
        accelerator=endpoints.accelerator,
        simulated=endpoints.accelerator.startswith("sim:"),
        generation=progress.generation,
        settings_error=clean(progress.error),
        parts=tuple(
            _part(name, problem, known.get(name), counts[name], endpoints) for name, problem in problems.items()
        ),
        orphans=orphans,
    )


def _ask(endpoints: Endpoints) -> dict[str, str]:
    found = probes(endpoints)
    with ThreadPoolExecutor(len(found), thread_name_prefix="probe") as pool:
        asked = {name: pool.submit(probe) for name, probe in found.items()}
        return {name: answer.result() for name, answer in asked.items()}


def _part(
    name: str, problem: str, found: supervisor.Supervised | None, restarts: int, endpoints: Endpoints
) -> PartStatus:
    alive = found is not None and found.state in ("RUNNING", "STARTING")
    state = "ready" if not problem else "starting" if alive else "down"
    return PartStatus(
        name=name,
        state=state,
        pid=found.pid if found else 0,
        uptime_s=found.uptime_s if found else 0.0,
        restarts=restarts,
        address=addresses_of(endpoints)[name],
        problem=clean(problem),
    )


def addresses_of(endpoints: Endpoints) -> dict[str, str]:
    """Where each part listens."""
    return {
        "valkey": endpoints.valkey_socket,
        "triton": endpoints.triton_grpc,
        REPLICA: endpoints.replica_grpc,
        "controller": endpoints.controller_metrics,
        "gateway": endpoints.gateway,
        "prometheus": endpoints.prometheus,
        "alertmanager": endpoints.alertmanager,
    }
