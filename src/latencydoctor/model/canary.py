"""A canary as a record: what tries a change before all traffic gets it, and what its windows showed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from latencydoctor.model.remedy import Decision, Reading


class CanaryKind(StrEnum):
    """What tries a fix first: nothing, one of several equally loaded replicas, or a version for a share of sessions."""

    NONE = "none"
    REPLICA = "replica"
    VERSION = "version"


@dataclass(frozen=True, slots=True)
class CanaryCheck:
    """One window of the canary beside its peers. `note` says why it cannot be judged, empty when it can.

    `failures_in_a_row` is the journalled counter: how many windows that could be judged failed up to this one.
    """

    start_s: float
    end_s: float
    canary: Reading
    baseline: Reading
    note: str
    failures_in_a_row: int


@dataclass(frozen=True, slots=True)
class CanaryTrial:
    """All windows of a canary and the judge's decision: KEEP promotes it. `share_ratio` is its share of the sessions.

    `ratio` is canary p99 / baseline p99 with the range it plausibly lies in, None where too few windows were judged.
    """

    kind: CanaryKind
    share_ratio: float
    checks: tuple[CanaryCheck, ...]
    decision: Decision
    reason: str
    ratio: tuple[float, float, float] | None
