"""Rules as records: log signatures and metric dialects, as read from `rules/`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from latencydoctor.model.evidence import Severity


@dataclass(frozen=True, slots=True)
class NumberGate:
    """A condition on the number that named group `group` parsed from the line; a line that fails it does not count.

    The number must be above `above`, or at least as large as the group `at_least_group` where one is named;
    `counts_when_absent` says what holds when a number is not in the line.
    """

    group: str
    above: float = 0.0
    at_least_group: str = ""
    counts_when_absent: bool = False


@dataclass(frozen=True, slots=True)
class LogRule:
    """One class of the log pyramid.

    `patterns` are regular expressions in the common subset of hyperscan and re2, any of which makes a line a
    candidate; `unless` are patterns that make the same line benign. `number` parses a figure from the line
    (a regular expression with one named group) and `gate` decides on it.
    """

    id: str
    title: str
    status: str
    level: Severity
    patterns: tuple[str, ...]
    unless: tuple[str, ...]
    numbers: tuple[str, ...]
    gate: NumberGate | None
    meaning: str
    falsepositives: tuple[str, ...]
    remedy: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SignalExpression:
    """How one dialect gives one normalised signal.

    `requires` are metric names that must all be present; `expr` is PromQL with `{sel}` for the label matchers of the
    service with its model, `{front}` for the user's matchers alone (a front end does not carry the server's labels),
    both without braces and possibly empty, so they stand last, `{window}` for the rate window and `{twice}` for two of
    them (to see what happens on the border between windows). The metrics of
    `shared` expressions lie outside the service (an accelerator, a cache server): they are looked for without a
    selector, and the expression itself joins them with what is the service's.
    """

    signal: str
    unit: str
    expr: str
    requires: tuple[str, ...]
    shared: bool
    simulated: bool


@dataclass(frozen=True, slots=True)
class AbsentSignal:
    """A signal that a dialect does not give, or gives only where the recorded page was not, and why."""

    signal: str
    reason: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """A server's metric names mapped to normalised signals. `detect` are names any of which proves its presence.

    `verified` names the recorded real page its names were checked against, empty if none was. `model_label` is the
    label that tells models apart, empty when the dialect has none. `missing` are the signals that the server cannot
    give; `unrecorded` are signals it has an expression for whose metrics the recorded page lacks (no GPU there, say).
    """

    id: str
    title: str
    status: str
    verified: str
    detect: tuple[str, ...]
    model_label: str
    signals: tuple[SignalExpression, ...]
    missing: tuple[AbsentSignal, ...] = ()
    unrecorded: tuple[AbsentSignal, ...] = ()


class Summary(StrEnum):
    """How the windows of an incident become one value: the typical one, the largest (resets), the last (a setting)."""

    MEDIAN = "median"
    LARGEST = "largest"
    LATEST = "latest"


class Family(StrEnum):
    """The witness a signal comes from. What one part says of itself twice is said once, for it may be wrong twice."""

    FRONT_END = "front_end"
    SERVER = "server"
    ENGINE = "engine"
    ACCELERATOR = "accelerator"
    CACHE = "cache"
    CONFIG = "config"
    HOST = "host"
    PLATFORM = "platform"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class SignalName:
    """A normalised signal: its unit, whether more of it is worse, and what would have to be there to see it.

    `family` says which other signals are no second opinion.
    """

    id: str
    unit: str
    title: str
    needs: str
    higher_is_worse: bool
    summary: Summary = Summary.MEDIAN
    family: Family = Family.SERVER
