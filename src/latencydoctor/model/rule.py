"""Rules as records: log signatures and metric dialects, as read from `rules/`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from latencydoctor.model.evidence import Severity


@dataclass(frozen=True, slots=True)
class NumberGate:
    """A condition on the number that named group `group` parsed from the line; a line that fails it does not count.

    The number must be above `above` and below `below`, where they are given, or at least as large as the group
    `at_least_group`, or larger than `above_group`. `counts_when_absent` says what holds when a number is not there.
    """

    group: str
    above: float | None = None
    below: float | None = None
    at_least_group: str = ""
    above_group: str = ""
    counts_when_absent: bool = False


@dataclass(frozen=True, slots=True)
class Burst:
    """Fewer than `count` events within `within_s` seconds are no news, such as a probe that fails once."""

    count: int
    within_s: float


@dataclass(frozen=True, slots=True)
class Sequel:
    """A line whose coming, at most `within_s` seconds away, decides what an earlier or later one meant."""

    patterns: tuple[str, ...]
    within_s: float


@dataclass(frozen=True, slots=True)
class LogRule:
    """One class of the log pyramid, or (`benign`) a set of lines that mean nothing to any class.

    `patterns` are regular expressions in the common subset of hyperscan and re2, judged on the message without its
    wrappers and head, any of which makes a line a candidate; `unless` are patterns that make the same line benign.
    Each of `numbers` parses figures from the line (a regular expression with named groups) and `gate` decides on one.

    Which records count: `level_at_least` and `level_at_most` compare with the record's own level, `programs` with the
    program that wrote it, where they are known; `statuses` is the range that an access line's HTTP status must be in.
    Which events count: at least a `burst` of them; those whose number `climbs` grew since the last; those after a line
    of the same source that matches `only_after`, not those soon `not_after` one; not those that `recovered_by` takes
    back; with `real_when` only those that have such a line beside them. Lines that match `echoes` tell again of an
    event that a line of `patterns` close by tells; alone they are one event. What comes soon after an event of a rule
    in `echo_of` is told with it.

    `variants` are further ways in which the same class shows, each with conditions of its own; all add to one count.
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
    benign: bool = False
    level_at_least: Severity | None = None
    level_at_most: Severity | None = None
    programs: tuple[str, ...] = ()
    statuses: tuple[int, int] | None = None
    burst: Burst | None = None
    climbs: str = ""
    only_after: tuple[str, ...] = ()
    echoes: tuple[str, ...] = ()
    not_after: Sequel | None = None
    recovered_by: Sequel | None = None
    real_when: Sequel | None = None
    echo_of: tuple[str, ...] = ()
    variants: tuple[LogRule, ...] = ()


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
class Arms:
    """Label matchers that tell a front end's requests apart: those a canary answered, and those its peers did."""

    canary: str
    baseline: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """A server's metric names mapped to normalised signals. `detect` are names any of which proves its presence.

    `verified` names the recorded real page its names were checked against, empty if none was. `model_label` is the
    label that tells models apart, empty when the dialect has none. `missing` are the signals that the server cannot
    give; `unrecorded` are signals it has an expression for whose metrics the recorded page lacks (no GPU there, say).
    `arms` is None where the metrics do not tell a canary's requests apart.
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
    arms: Arms | None = None


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
