"""A rehearsed incident: what is to happen, what is expected of the doctor, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from latencydoctor.model.incident import IncidentRecord
from latencydoctor.model.load import Mix, WindowStats


class Blow(StrEnum):
    """What can be done to a running stack at a moment of the drill's choice; each says what its amount is."""

    THROTTLE = "throttle"
    """The device's clock falls to this many MHz."""
    FLUSH_CACHE = "flush-cache"
    """The cache is emptied every so many seconds."""
    LOSE_CACHE = "lose-cache"
    """A job renews the cache's entries every so many seconds until then; it ends, and the cache is emptied once."""
    STALL_CACHE = "stall-cache"
    """The cache server stands still for this many seconds, again and again."""
    CROWD_DEVICE = "crowd-device"
    """Somebody else holds the second replica's device for this many seconds at a time."""
    CHANGE_SETTINGS = "change-settings"
    """Somebody writes other settings into the stack's file; the amount says nothing."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault that begins when the crowd does; `told` is its line in the timeline, `settings` what is written then."""

    blow: Blow
    amount: float
    told: str
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One variant of a drill. Lengths in seconds; rates in requests a second, offered on a schedule.

    `accepted_causes` are the ids of which the diagnosis must give one; none means that the same crowd must be no
    incident. `settings` are dotted keys of the stack's settings file that differ from its defaults: the broken ones, or
    healthy ones on a smaller device. `injection` is done to the stack when the crowd arrives. For the first `warm_s` of
    the calm there are only `warm_rps`, where a cold cache at the full rate would be an incident of its own.
    `deadline_ms` is the gateway's: with the default 5 s a slow machine would time out the tail of the backlog while the
    fix drains it, and the drill would blame the fix. From the alert to the verified fix may pass `verified_within_s`:
    the scene allows an hour, a rehearsal on one machine has no excuse for more than two minutes, and one more where a
    `canary` has to try the fix first.
    `vip_p99_below_ms` is what the fix must bring VIP requests to where it serves them at the cost of the others, which
    may be turned away; None where all are to be served.
    """

    fault: str
    title: str
    accepted_causes: tuple[str, ...]
    expected_fix: str
    accelerator: str
    settings: tuple[tuple[str, str], ...]
    calm_rps: float
    crowd_rps: float
    injection: Injection | None = None
    mix: Mix = field(default_factory=Mix)
    warm_rps: float = 0.0
    warm_s: float = 0.0
    calm_s: float = 26.0
    measure_s: float = 20.0
    deadline_ms: int = 8000
    alert_within_s: float = 60.0
    verified_within_s: float = 120.0
    canary: bool = False
    seed: int = 20
    vip_p99_below_ms: float | None = None

    @property
    def settle_s(self) -> float:
        """How long after a change its effect is measured: one deadline, so that nothing sent before it is left."""
        return self.deadline_ms / 1000 + 1

    def quick(self) -> Scenario:
        """The same with shorter windows: enough to try, too short to quote."""
        return replace(self, calm_s=self.calm_s - 4.0, measure_s=self.measure_s / 2)


@dataclass(frozen=True, slots=True)
class DrillFigures:
    """The last line of a drill: None where the scenario has no such figure. Ratios are 0..1.

    `shed_after_ratio` is the share of the standard requests that were turned away and told when to come back.
    """

    p99_before_ms: float | None
    p99_after_ms: float | None
    ratio: float | None
    failed_before: int | None
    failed_after: int | None
    offered_rps: float | None
    answered_rps: float | None
    hit_ratio: float | None
    alert_to_verified_s: float | None
    cause: str | None
    accelerator: str
    vip_p99_before_ms: float | None = None
    vip_p99_after_ms: float | None = None
    vip_failed_after: int | None = None
    standard_p99_after_ms: float | None = None
    shed_after_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class DrillWindow:
    """A measured window by name, in the order they were measured."""

    label: str
    stats: WindowStats


@dataclass(frozen=True, slots=True)
class Drilled:
    """How a drill went: `misses` are sentences that say what did not go as designed, empty when all did."""

    scenario: Scenario
    figures: DrillFigures
    windows: tuple[DrillWindow, ...]
    record: IncidentRecord
    misses: tuple[str, ...]
