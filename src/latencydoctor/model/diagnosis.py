"""What was concluded: the path through the tree, the cause, what was ruled out, and what could not be seen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from latencydoctor.model.evidence import Gap, Incident, LogEvent, Proof, QueryRecord, Selection, Severity, Window
from latencydoctor.model.remark import Remark


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

    `value` and `threshold` share `unit`; `value` is None when the signal is a gap, and then `gap` says why. Findings of
    one `family` are one witness: they come from the same observer.
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
    family: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One question of the path: what was asked, the answer, and the comparisons behind it."""

    node: str
    question: str
    answer: Answer
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A cause that is not the one named, with the comparisons that say how it stands.

    Folded under the cause, contributing to it, ruled out, or a doubt about the data; `standing` says which.
    """

    id: str
    title: str
    standing: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class NotEvaluable:
    """A cause that could not be looked at, and the signals that it needs."""

    id: str
    title: str
    needs: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cause that nearly holds: what speaks for it, the comparison that keeps it from holding, what is not seen."""

    id: str
    title: str
    speaking: tuple[Finding, ...]
    against: tuple[Finding, ...]
    needs: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Forecasted:
    """What a simulated queue says of a suspicion: whether undoing it alone would bring latency back, and the figures.

    UNKNOWN where the queue cannot explain what was measured, or lacks a figure; `reason` says it in words. Latencies
    are p99 in ms, None where there is no bound or nothing is known.
    """

    answer: Answer
    reason: str
    measured_p99_ms: float | None = None
    undone_p99_ms: float | None = None
    limit_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """The one cause, with what it means, what to do, what not to do, and the fix that would be planned.

    `witnesses` are the families of signals that agree, each counted once; `against` are the comparisons that would
    refute it; `folded` are causes that look true as its artefacts. `scaling` says what more replicas would do, and
    `forecast` whether undoing it would be enough.
    """

    id: str
    title: str
    meaning: str
    advice: str
    not_this: str
    fix: str
    confidence: Confidence
    evidence: tuple[Finding, ...]
    symptoms: tuple[Finding, ...]
    scaling: str = ""
    witnesses: tuple[str, ...] = ()
    against: tuple[Finding, ...] = ()
    folded: tuple[Suspect, ...] = ()
    forecast: Forecasted | None = None


@dataclass(frozen=True, slots=True)
class TreeAnswer:
    """What the playbook's tree says by itself, and whether that agrees with the cause named."""

    cause: str | None
    agrees: Answer
    note: str


class MomentKind(StrEnum):
    """What a moment is about; of those at one time the one that tends to cause the others comes first."""

    LOG = "log"
    ACCELERATOR = "accelerator"
    METRIC = "metric"
    INCIDENT = "incident"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that began at `at_s` (seconds since the epoch): a class of log events, a signal's move, the incident.

    `what` is the class or signal. `value` is the number of events, or what the signal moved to from `baseline` (of the
    incident: its limit), in `unit`. `proof` is the log's file:line or the query.
    """

    at_s: float
    kind: MomentKind
    what: str
    detail: str
    value: float | None
    baseline: float | None
    proof: str
    unit: str = ""
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One part of the mean end-to-end time, ms; None when it cannot be read. Shares are of the end-to-end mean."""

    part: str
    mean_ms: float | None
    baseline_ms: float | None
    share_ratio: float | None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole answer to 'what is wrong, since when, and how do you know'.

    `contributing` are further causes that hold, the likelier first. `deciding` is the one missing signal that would
    decide most; `candidates` are what it may be where that is not settled, the nearest first. `path` and `ruled_out`
    are the playbook's questions; `causes_ruled_out` the cause rules. `timeline` is what began when, earliest first.
    `remarks` are about the settings in effect, whatever the cause.
    """

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
    contributing: tuple[Suspect, ...] = ()
    causes_ruled_out: tuple[Suspect, ...] = ()
    not_evaluable: tuple[NotEvaluable, ...] = ()
    doubts: tuple[Suspect, ...] = ()
    tree: TreeAnswer | None = None
    deciding: Gap | None = None
    candidates: tuple[Candidate, ...] = ()
    timeline: tuple[Moment, ...] = ()
    remarks: tuple[Remark, ...] = ()
