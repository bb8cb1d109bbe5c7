"""What was concluded: the path through the tree, the cause, what was ruled out, and what could not be seen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from latencydoctor.model.evidence import Gap, Incident, LogEvent, Proof, QueryRecord, Selection, Window


class Answer(StrEnum):
    """The three values of every condition."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How far a cause may be trusted: several independent witnesses, one, or a branch that could not be checked."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison with everything needed to check it by hand.

    `value` and `threshold` share `unit`; `value` is None when the signal is a gap, and then `gap` says why.
    """

    signal: str
    answer: Answer
    comparison: str
    value: float | None
    threshold: float | None
    baseline: float | None
    unit: str
    window: Window
    proof: Proof | None
    gap: Gap | None = None
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One question of the path: what was asked, the answer, and the comparisons behind it."""

    node: str
    question: str
    answer: Answer
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """The one cause, with what it means, what to do, what not to do, and the fix that would be planned."""

    id: str
    title: str
    meaning: str
    advice: str
    not_this: str
    fix: str
    confidence: Confidence
    evidence: tuple[Finding, ...]
    symptoms: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One part of the mean end-to-end time, ms; None when it cannot be read. Shares are of the end-to-end mean."""

    part: str
    mean_ms: float | None
    baseline_ms: float | None
    share_ratio: float | None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole answer to 'what is wrong, since when, and how do you know'."""

    selection: Selection
    now_s: float
    window: Window
    baseline_window: Window | None
    incident: Incident
    cause: Cause | None
    path: tuple[Step, ...]
    ruled_out: tuple[Step, ...]
    missing: tuple[Gap, ...]
    ledger: tuple[LedgerRow, ...]
    log_events: tuple[LogEvent, ...]
    queries: tuple[QueryRecord, ...]
    dialects: tuple[str, ...]
    playbook: str
    next_command: str
    simulated: bool
    inconclusive: str = ""
