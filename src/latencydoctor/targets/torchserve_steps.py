"""Which request comes next to bring a TorchServe from what it is to what it is to be. Pure: looks, and decides.

Every step is derived from what the server says now, never from what was done before: so a run that died anywhere is
continued, or undone, by the very same rule. Where a further archive of the model is named, the old version serves until
the new one is ready, and goes when nobody waits for it. Where there is none, TorchServe can take other batching only by
unregistering the version and registering it again, and nobody is served in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from latencydoctor.errors import KnownError, Refused
from latencydoctor.targets.torchserve_state import Registration, Served, same_version

_LOOK = "Look at the model's versions in the management API, and put right what should not be."


class Act(StrEnum):
    """What can be done next."""

    REGISTER = "register"
    SCALE = "scale"
    SET_DEFAULT = "set default"
    UNREGISTER = "unregister"
    WAIT = "wait"
    DRAIN = "drain"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Step:
    """One request, or a reason to wait; `version` is the one it is about, `why` what is waited for."""

    act: Act
    version: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """Where a run goes, and where it comes from (None: from there already)."""

    wanted: Registration
    other: Registration | None = None

    @property
    def leftover(self) -> str:
        """The version that is to be gone in the end; empty when both ends are the same version."""
        if self.other is None or same_version(self.other.version, self.wanted.version):
            return ""
        return self.other.version

    def owns(self, version: str) -> bool:
        """Whether the version is one that this run may touch."""
        ends = (self.wanted,) if self.other is None else (self.wanted, self.other)
        return any(same_version(version, end.version) for end in ends)


def next_step(now: Served, way: Way) -> Step:
    """What to do next; DONE when the server is as wanted. KnownError for a state that this run cannot have made."""
    _refuse_foreign(now, way)
    wanted = way.wanted
    found = now.version(wanted.version)
    if found is None:
        return Step(Act.REGISTER, wanted.version)
    if not found.registration.registered_like(wanted):
        return Step(Act.UNREGISTER, wanted.version)
    if found.registration != wanted:
        return Step(Act.SCALE, wanted.version)
    if found.ready < wanted.min_workers:
        return Step(Act.WAIT, wanted.version, f"{found.ready} of {wanted.min_workers} workers are ready")
    if not same_version(now.default, wanted.version):
        return Step(Act.SET_DEFAULT, wanted.version)
    old = now.version(way.leftover) if way.leftover else None
    if old is None:
        return Step(Act.DONE, wanted.version)
    if old.waiting:
        return Step(Act.DRAIN, old.name, f"{old.waiting} requests wait for version {old.name}")
    return Step(Act.UNREGISTER, old.name)


def _refuse_foreign(now: Served, way: Way) -> None:
    """TorchServe has no lock: KnownError when one of the run's versions is not as the run found or made it.

    Not `Refused`, which says that nothing was changed.
    """
    ends = [way.wanted, *([] if way.other is None else [way.other])]
    for version in now.versions:
        mine = [end for end in ends if same_version(end.version, version.name)]
        if mine and not any(version.registration.registered_like(end) for end in mine):
            raise KnownError(f"version {version.name} was registered by someone else meanwhile", hint=_LOOK)
    if now.versions and not way.owns(now.default):
        raise KnownError(f"version {now.default} was made the default by someone else meanwhile", hint=_LOOK)


def requests(now: Served, way: Way) -> str:
    """The requests that lead from `now` to `wanted`, one a line, for a plan to show; empty when nothing is to be done.

    Raises Refused where the change is one that TorchServe does not allow.
    """
    wanted, lines = way.wanted, list[str]()
    found, path = now.version(wanted.version), f"/models/{wanted.model}"
    other = way.other
    if found is not None and not found.registration.registered_like(wanted):
        if other is None or not same_version(other.version, wanted.version):
            raise Refused(
                f"version {wanted.version} of {wanted.model} is registered already",
                hint="Unregister it, or name another of the model's archives in targets.torchserve.archives.",
            )
        if len(now.versions) > 1:
            raise Refused(
                f"TorchServe unregisters the default version {wanted.version} only when it is the only one",
                hint="Name a further archive of the model in targets.torchserve.archives: it then takes over.",
            )
        lines.append(f"DELETE {path}/{wanted.version}  # nobody is served from here on")
        found = None
    if found is None:
        lines.insert(0, "# tried first: registered under another name, without workers, and taken away again")
        lines.append(
            f"POST /models?url={wanted.archive}&batch_size={wanted.batch_size}&max_batch_delay={wanted.delay_ms}"
            f"&initial_workers={wanted.min_workers}"
        )
    if found is None or found.registration != wanted:
        lines.append(f"PUT {path}/{wanted.version}?min_worker={wanted.min_workers}&max_worker={wanted.max_workers}")
    if lines:
        lines.append(f"# wait until {wanted.min_workers} workers are ready")
    if way.leftover and now.version(way.leftover) is not None:
        lines.append(f"PUT {path}/{wanted.version}/set-default")
        lines.append(f"# wait until no request waits for version {way.leftover}")
        lines.append(f"DELETE {path}/{way.leftover}")
    return "".join(f"{line}\n" for line in lines)
