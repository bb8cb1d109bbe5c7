"""A change as a value: a plan with its before, its after and its inverse, and the judgement afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from latencydoctor.model.kept import KeptGeneration
from latencydoctor.model.reached import BatchesRun, Reached


class OperationKind(StrEnum):
    """The operations a plan may list; the executor accepts no others."""

    SET_SETTING = "set setting"
    RESTORE_SETTINGS = "restore settings"
    WARM_CACHE = "warm cache"
    SERVE_BUILD = "serve build"


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of one key of one object: `key` is a dotted path, values are YAML scalars in canonical text.

    For RESTORE_SETTINGS the whole file becomes that of an earlier generation: its number is the key, the values are the
    digests before and after. For WARM_CACHE the object is a cache and the value after is the ids of the entries to add;
    there is none before. For SERVE_BUILD it is the digest of a rebuilt model, which the settings then name.
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
    """A thing the plan touches, with the digest (SHA-256, hex) its 'before' must still have at apply time.

    `generation` counts its changes where somebody does; 0 where nobody does, and the digest alone decides.
    """

    name: str
    generation: int
    digest: str


@dataclass(frozen=True, slots=True)
class TargetState:
    """What a target looked like when it was read: settings by dotted key, the settings file's exact text, digests.

    `effective` are the same settings as the server itself reports them, where it does; `compiled` is the server
    configuration the settings compile to (config.pbtxt text for Triton). `not_in_effect` says in words where the
    server runs something else than the settings ask for; empty when they agree. The first object is the settings.
    `deadline_ms` is how long a request may wait at most, None where nothing bounds it. `kept` are the settings that
    were in effect before, oldest first, as far as the target keeps them. `settable` are the keys that can be set here,
    None where any can that the settings may state; `limits` say in words what cannot be set, and why.
    `costs` are (key, words): what setting that key brings with it here, whatever the fix. `compiled_name` is what
    `compiled` is called in a diff.
    """

    target: str
    objects: tuple[TargetObject, ...]
    settings: tuple[tuple[str, str], ...]
    settings_text: str
    effective: tuple[tuple[str, str], ...]
    compiled: str
    not_in_effect: tuple[str, ...] = ()
    deadline_ms: float | None = None
    kept: tuple[KeptGeneration, ...] = field(default=(), compare=False)
    settable: frozenset[str] | None = None
    limits: tuple[str, ...] = ()
    costs: tuple[tuple[str, str], ...] = ()
    compiled_name: str = "config.pbtxt"

    def can_set(self, key: str) -> bool:
        """Whether the target can set this key."""
        return self.settable is None or key in self.settable

    def setting(self, key: str) -> str | None:
        """A setting's canonical text, None when absent."""
        return dict(self.settings).get(key)

    def in_use(self, key: str) -> str | None:
        """A setting's value in use: what the file says, else what the server reports (a default), else None."""
        return dict(self.settings).get(key, dict(self.effective).get(key))

    @property
    def settings_object(self) -> str:
        """What the settings are called among the objects."""
        return self.objects[0].name

    @property
    def digest(self) -> str:
        """The digest of the settings' content, a generation line left out."""
        return self.objects[0].digest

    @property
    def generation(self) -> int:
        """The settings' generation, 0 where nobody counts them."""
        return self.objects[0].generation


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


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """The answer in place of a plan when the target already is as the fix would make it, or the fix cannot help."""

    fix: str
    reason: str
    notes: tuple[str, ...] = ()


class Decision(StrEnum):
    """What the judge says after a change."""

    KEEP = "keep"
    ROLL_BACK = "roll back"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a verification window showed, unjudged. None means no data; `note` says why, when it is known.

    `requests` is how many requests the window holds, `memory_bytes` the accelerator's memory in use, `hit_ratio` the
    share of lookups that the cache answered. `also` are further signals by name.
    """

    p99_ms: float | None
    error_ratio: float | None
    memory_bytes: float | None
    requests: float | None
    note: str = ""
    hit_ratio: float | None = None
    also: tuple[tuple[str, float], ...] = ()


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
    hit_ratio: float | None = None
    also: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks after a change, the decision drawn from them, and why.

    `reached` holds each predicted effect beside what was measured, `batches` the batch sizes that ran since the change,
    None where the server does not tell them.
    """

    decision: Decision
    reason: str
    checks: tuple[Check, ...]
    reached: tuple[Reached, ...] = ()
    batches: BatchesRun | None = None


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
    """One journalled run as `runs` lists it.

    `kind` is "apply" or "rollback"; `of` names the run that a rollback undoes. `damage` says where the journal's chain
    breaks, empty when it holds; a tail that was being written when the process died is no damage.
    """

    run_id: str
    fix: str
    target: str
    state: RunState
    started_s: float
    ended_s: float | None
    path: str
    kind: str = "apply"
    of: str = ""
    damage: str = ""


class RunEvent(StrEnum):
    """What a journal's records say, in the order in which they come.

    An intent is on disk before its step, the word that it is done only after what was asked for was read back.
    COMMITTED separates what recovery undoes from what it completes.
    """

    STARTED = "run started"
    CANARY_INTENT = "canary intent"
    CANARY_DONE = "canary done"
    CANARY_WINDOW = "canary window"
    CANARY_DECISION = "canary decision"
    WRITE_INTENT = "write intent"
    WRITE_DONE = "write done"
    WARM_INTENT = "warm intent"
    WARM_DONE = "warm done"
    COMMITTED = "committed"
    CHECK = "check"
    DECISION = "decision"
    UNDO_INTENT = "undo intent"
    COOL_INTENT = "cool intent"
    COOL_DONE = "cool done"
    UNDO_DONE = "undo done"
    UNDO_FAILED = "undo failed"
    RECOVERY = "recovery"
    ENDED = "run ended"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One record of a journal: its place in the chain, when, what happened, and plain JSON values with it."""

    seq: int
    at_s: float
    event: str
    fields: Mapping[str, object]
