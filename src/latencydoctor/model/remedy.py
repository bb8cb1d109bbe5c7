"""A change as a value: a plan with its before, its after and its inverse, and the judgement afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OperationKind(StrEnum):
    """The operations a plan may list; the executor accepts no others."""

    SET_SETTING = "set setting"


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of one key of one object: `key` is a dotted path, values are YAML scalars in canonical text.

    The inverse is the same operation with `before` and `after` exchanged, captured before anything runs.
    """

    kind: OperationKind
    object: str
    key: str
    before: str
    after: str

    def inverse(self) -> Operation:
        """What undoes it."""
        return Operation(self.kind, self.object, self.key, self.after, self.before)


@dataclass(frozen=True, slots=True)
class TargetObject:
    """A thing the plan touches, with the digest (SHA-256, hex) its 'before' must still have at apply time."""

    name: str
    generation: int
    digest: str


@dataclass(frozen=True, slots=True)
class TargetState:
    """What a target looked like when it was read: settings by dotted key, the settings file's exact text, digests.

    `effective` are the same settings as the server itself reports them, where it does; `compiled` is the server
    configuration the settings compile to (config.pbtxt text for Triton).
    """

    target: str
    objects: tuple[TargetObject, ...]
    settings: tuple[tuple[str, str], ...]
    settings_text: str
    effective: tuple[tuple[str, str], ...]
    compiled: str

    def setting(self, key: str) -> str | None:
        """A setting's canonical text, None when absent."""
        return dict(self.settings).get(key)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The effect expected before the change runs: a value, an interval, and how it was reached. None = not computed."""

    signal: str
    unit: str
    before: float | None
    after: float | None
    low: float | None
    high: float | None
    method: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """What verification will demand: `signal` must be `at_most` this, over windows with enough requests."""

    signal: str
    unit: str
    at_most: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A saved change. `digest` covers every other field and guards against accidents, not against people."""

    schema: int
    fix: str
    title: str
    target: str
    created_s: float
    objects: tuple[TargetObject, ...]
    operations: tuple[Operation, ...]
    diff: str
    compiled_diff: str
    predictions: tuple[Prediction, ...]
    side_effects: tuple[str, ...]
    blast_radius: str
    justification: tuple[str, ...]
    requirements: tuple[Requirement, ...]
    before_values: tuple[tuple[str, float], ...]
    simulated: bool
    digest: str


class Decision(StrEnum):
    """What the judge says after a change."""

    KEEP = "keep"
    ROLL_BACK = "roll back"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Check:
    """One verification window: what was read, whether it passed, and how many requests it rests on.

    A value None means no data, which is never a pass.
    """

    at_s: float
    p99_ms: float | None
    error_ratio: float | None
    memory_bytes: float | None
    requests: float | None
    passed: bool
    conclusive: bool
    note: str


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks after a change, the decision drawn from them, and why."""

    decision: Decision
    reason: str
    checks: tuple[Check, ...]


class RunState(StrEnum):
    """How a run of apply or rollback ended; OPEN means it never wrote its end."""

    OPEN = "open"
    APPLIED = "applied"
    KEPT = "kept"
    HELD = "held"
    ROLLED_BACK = "rolled back"
    ROLLBACK_FAILED = "rollback failed"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One journalled run as `runs` lists it."""

    run_id: str
    fix: str
    target: str
    state: RunState
    started_s: float
    ended_s: float | None
    path: str
