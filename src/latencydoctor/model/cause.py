"""Cause rules as records: what confirms a cause, what refutes it, and what it would explain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from latencydoctor.model.playbook import Condition


class CauseKind(StrEnum):
    """What a rule may be: an answer, something that only makes matters worse, or a doubt about the data."""

    CAUSE = "cause"
    CONTRIBUTOR = "contributor"
    DATA_QUALITY = "data quality"


class Undo(StrEnum):
    """What a cause has changed, as a queue model knows it: what setting it back would undo."""

    BATCHING = "batching"
    HIT_RATIO = "hit ratio"
    RATE = "rate"
    EXECUTION_TIME = "execution time"


class Scaling(StrEnum):
    """What more replicas would do: cure it, be the wrong reflex, or help only until the cause is dealt with."""

    CURES = "cures"
    WRONG = "wrong"
    BUYS_TIME = "buys time"


@dataclass(frozen=True, slots=True)
class CauseRule:
    """One cause and how it is told.

    `confirm` must hold and `refute` (None when nothing would) must not. `order` is the place in the order of
    evaluation, upstream first: of two causes that hold and do not explain each other the one with the smaller order is
    named. `explains` are causes that look true as artefacts of this one and are then folded under it; `symptoms` are
    signals that it moves. `is_event` marks what happens rather than lasts (a restart): that it also happened before the
    onset does not speak against it. `is_generic` marks one that says where the time goes and not why. `signature` is
    its number in the catalogue of signatures, empty where it has none. `thresholds` belong to this rule alone; a
    deployment overrides them by `<id>.<name>`. `undo` is what a forecast sets back to ask whether that would cure it.
    """

    id: str
    signature: str
    title: str
    kind: CauseKind
    order: int
    thresholds: tuple[tuple[str, float], ...]
    confirm: Condition
    refute: Condition | None
    scaling: Scaling
    meaning: str
    advice: str
    not_this: str
    fix: str
    symptoms: tuple[str, ...]
    explains: tuple[str, ...]
    references: tuple[str, ...]
    is_event: bool = False
    is_generic: bool = False
    undo: Undo | None = None
