"""What state a stack is in: every part asked, its restarts counted, the settings in effect named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import LatencyDoctorError
from latencydoctor.stack import endpoints as addresses
from latencydoctor.stack import processes, supervisor
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.controller_state import Progress
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.logs import clean
from latencydoctor.stack.probes import ask_controller, probes
from latencydoctor.stack.programs import triton_name
from latencydoctor.stack.replicas import load_serving


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
    given_up: bool = False
    """Whether it ended so often that supervisord starts it no more; `up` does."""


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
    canary: str
    """What a part of the traffic tries, "" when nothing does."""
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
    parts = probes(endpoints, _replicas(layout, endpoints, known))
    problems = _ask(parts) if supervised or orphans else dict.fromkeys(parts, "not running")
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
        canary=_canary(layout),
        parts=tuple(
            _part(name, problem, known.get(name), counts[name], endpoints) for name, problem in problems.items()
        ),
        orphans=orphans,
    )


def _canary(layout: Layout) -> str:
    try:
        settings = stack_settings.load(layout.settings)
    except LatencyDoctorError:
        return ""  # Settings that cannot be read are told of as such.
    return settings.canary.told(settings.inference.replicas) if settings.canary is not None else ""


def _replicas(layout: Layout, endpoints: Endpoints, known: Mapping[str, supervisor.Supervised]) -> list[int]:
    """The Tritons that take traffic, and those on their way in or out; one that is not asked for is no part."""
    serving = load_serving(layout.serving)
    numbers = range(1, len(endpoints.tritons) + 1)
    running = {one.name for one in known.values() if one.state not in ("STOPPED", "EXITED")}
    return [number for number in numbers if number in serving or triton_name(number) in running]


def _ask(found: Mapping[str, Callable[[], str]]) -> dict[str, str]:
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
        address=addresses_of(endpoints, range(1, len(endpoints.tritons) + 1))[name],
        problem=clean(problem),
        given_up=found is not None and found.is_given_up,
    )


def addresses_of(endpoints: Endpoints, replicas: Iterable[int]) -> dict[str, str]:
    """Where each part of a stack with these Tritons listens."""
    return {
        "valkey": endpoints.valkey_socket,
        **{triton_name(number): endpoints.tritons[number - 1].grpc for number in replicas},
        "controller": endpoints.controller_metrics,
        "gateway": endpoints.gateway,
        "prometheus": endpoints.prometheus,
        "alertmanager": endpoints.alertmanager,
    }
