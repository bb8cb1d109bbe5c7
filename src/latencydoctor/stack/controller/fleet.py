"""Starts and ends Tritons while the stack runs, so that those take traffic which the settings ask for.

Nothing here waits: each call brings the fleet one step nearer and says NotYetError while there is more to come. All
it goes by is outside of it (what supervisord runs, the file that says who serves), so a controller that was killed in
the middle goes on where the last one stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol

from latencydoctor.errors import KnownError
from latencydoctor.stack.controller.loop import NotYetError, Served, Server
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.logs import last_reason
from latencydoctor.stack.replicas import load_serving, save_serving, save_targets
from latencydoctor.stack.supervisor import Supervised

START_S = 20.0
"""How long a Triton may take until it answers; about 3 s, on a machine that is busy with an incident up to 10 s."""

FAILED_LOOKS = 8
"""A program that supervisord found ended in so many looks, two a second, has failed to start three times."""

UNSCRAPED_S = 6.0
"""Prometheus takes up to 5 s to notice that a target is gone; one that ended before would look as if it had died."""

DRAIN_SLACK_S = 1.0
"""Beyond the deadline of a request: what the gateway needs to notice that a replica is to get no more."""

SUPERVISOR_GONE_S = 3.0
"""How long supervisord may be silent, while it is needed, until it counts as dead."""

REVIVAL_S = 60.0
"""How long bringing it back may take before it is tried again; it ends this controller, too."""

ENDED = ("BACKOFF", "EXITED", "FATAL", "UNKNOWN")
"""What supervisord calls a program that has ended by itself."""


class Supervising(Protocol):
    """What is needed of supervisord; KnownError when it does not answer."""

    def programs(self) -> Sequence[Supervised]: ...

    def start_program(self, name: str) -> None: ...

    def stop_program(self, name: str) -> None: ...


class Asked(Protocol):
    """What is needed of the gateway."""

    def busy(self, address: str) -> bool | None: ...


@dataclass(frozen=True, slots=True)
class Place(Generic[Server]):
    """Where one Triton runs when it does: its name among the parts, its clients, and how to ask it for an inference.

    `probe` says what is wrong, "" when it answers. `clean` removes what it leaves when it has ended.
    """

    name: str
    address: str
    log: Path
    served: Served[Server]
    probe: Callable[[], str]
    clean: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Around:
    """What the fleet works with: supervisord, the gateway, the two files, and how to bring a dead supervisord back."""

    supervisor: Supervising
    gateway: Asked
    endpoints: Endpoints
    serving: Path
    targets: Path
    revive: Callable[[], None]
    clock: Callable[[], float] = time.monotonic


class Standing(Generic[Server]):
    """Tritons that run by themselves, in a stack without supervisord; there are neither more nor fewer."""

    def __init__(self, servers: Sequence[Served[Server]]) -> None:
        self._servers = tuple(servers)

    def running(self, replicas: int) -> tuple[Served[Server], ...]:
        """All of them."""
        return self._servers[:replicas]

    def grow(self, replicas: int) -> None:
        """KnownError for another number."""
        if replicas != len(self._servers):
            raise KnownError(
                f"inference.replicas is {replicas}, {len(self._servers)} run", hint="Nothing here starts or ends them."
            )

    def serve(self, replicas: int) -> None:
        """They take traffic already."""

    def release(self, replicas: int, deadline_s: float) -> None:
        """There are no others."""

    def retreat(self) -> None:
        """Nothing was started."""


class Fleet(Generic[Server]):
    """The Tritons of one stack, the first of which always runs."""

    def __init__(self, places: Sequence[Place[Server]], around: Around) -> None:
        self._places = tuple(places)
        self._around = around
        self._starting: dict[str, float] = {}
        self._ending: dict[str, float] = {}
        self._ended_looks: dict[str, int] = {}
        self._silent_since_s: float | None = None

    def running(self, replicas: int) -> tuple[Served[Server], ...]:
        """The clients of the first so many."""
        return tuple(place.served for place in self._places[:replicas])

    def grow(self, replicas: int) -> None:
        """Returns once the first so many run and those that are new have made an inference.

        NotYetError until then; KnownError when one does not start.
        """
        if replicas > len(self._places):
            raise KnownError(
                f"inference.replicas is {replicas}, and this stack has ports for {len(self._places)}",
                hint="Run `latencydoctor stack down`, then `latencydoctor stack up`.",
            )
        known, serving = self._known(), load_serving(self._around.serving)
        for number, place in enumerate(self._places[:replicas], start=1):
            if number not in serving:
                self._start(place, known[place.name].state)

    def serve(self, replicas: int) -> None:
        """From now on the first so many take traffic, and no others. OSError passes."""
        wanted = tuple(range(1, replicas + 1))
        if load_serving(self._around.serving) != wanted:
            # Those that are to end are scraped no longer at once: see UNSCRAPED_S.
            save_targets(self._around.targets, self._around.endpoints, wanted)
            save_serving(self._around.serving, wanted)
        for place in self._places[:replicas]:
            self._forget(place)

    def release(self, replicas: int, deadline_s: float) -> None:
        """Returns once all after the first so many have answered what they were asked, and have ended.

        NotYetError until then. What is in flight ends with its deadline, so the wait has an end.
        """
        known = self._known()
        for place in self._places[replicas:]:
            self._end(place, known[place.name].state, deadline_s)

    def retreat(self) -> None:
        """Ends what was started and does not serve; KnownError when supervisord does not answer."""
        serving = load_serving(self._around.serving)
        for number, place in enumerate(self._places, start=1):
            if number not in serving:
                self._forget(place)
                self._around.supervisor.stop_program(place.name)

    def _start(self, place: Place[Server], state: str) -> None:
        now_s = self._around.clock()
        waited_s = now_s - self._starting.setdefault(place.name, now_s)
        problem = ""
        if state == "STOPPED":
            self._around.supervisor.start_program(place.name)
        elif state in ENDED:
            self._ended_looks[place.name] = self._ended_looks.get(place.name, 0) + 1
            if state == "FATAL" or self._ended_looks[place.name] >= FAILED_LOOKS:
                raise self._not_started(place, "ends as soon as it is started", last_reason(place.log))
        elif state != "STOPPING":
            problem = place.probe()
            if not problem:
                return
        if waited_s > START_S:
            raise self._not_started(place, f"did not answer within {START_S:.0f} s", problem or last_reason(place.log))
        raise NotYetError(f"{place.name} is starting")

    def _not_started(self, place: Place[Server], what: str, reason: str) -> KnownError:
        self._forget(place)
        return KnownError(f"{place.name} {what}: {reason}", hint=f"Its log is {place.log}.")

    def _end(self, place: Place[Server], state: str, deadline_s: float) -> None:
        now_s = self._around.clock()
        # One that has EXITED by itself is started anew the next moment.
        if state in ("STOPPED", "FATAL"):
            if place.name in self._ending:
                place.clean()
            self._forget(place)
            return
        waited_s = now_s - self._ending.setdefault(place.name, now_s)
        if state == "STOPPING":
            raise NotYetError(f"{place.name} is ending")
        # A gateway that does not answer may still have questions there; they end with their deadline.
        drained = self._around.gateway.busy(place.address) is False or waited_s > deadline_s + DRAIN_SLACK_S
        if drained and waited_s > UNSCRAPED_S:
            self._around.supervisor.stop_program(place.name)
        raise NotYetError(f"{place.name} is ending" if drained else f"{place.name} answers what it was asked")

    def _forget(self, place: Place[Server]) -> None:
        for noted in (self._starting, self._ending, self._ended_looks):
            noted.pop(place.name, None)

    def _known(self) -> dict[str, Supervised]:
        """What supervisord says of each program; one that stays silent is dead, and is brought back."""
        try:
            found = {one.name: one for one in self._around.supervisor.programs()}
        except KnownError as error:
            now_s = self._around.clock()
            if self._silent_since_s is None:
                self._silent_since_s = now_s
            elif now_s - self._silent_since_s > SUPERVISOR_GONE_S:
                self._silent_since_s = now_s + REVIVAL_S
                self._around.revive()
            raise NotYetError(error.message) from error
        self._silent_since_s = None
        never = Supervised("", "STOPPED", 0, 0.0, "")
        return {place.name: found.get(place.name, never) for place in self._places}
