"""What was seen: windows, series, facts, log events, and the measures derived from them.

Data flows one way: a source yields `Series`, `Fact`s and `LogEvent`s, together a `Collected` record that can be saved
and replayed; `evidence/assemble.py` turns it into `Evidence`, whose measures carry their proof. Whatever could not be
read is a `Gap` with a reason, never a zero and never an exception that hides the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GapReason(StrEnum):
    """Why a value is absent."""

    UNREACHABLE = "unreachable"
    NO_SERIES = "no series"
    NOT_A_NUMBER = "not a number"
    TOO_FEW_SAMPLES = "too few samples"
    DEADLINE = "deadline passed"
    BAD_ANSWER = "bad answer"
    NOT_CONFIGURED = "not configured"
    NOT_SUPPORTED = "not supported"


class Severity(StrEnum):
    """Levels of the log pyramid, worst first."""

    CRITICAL = "CRITICAL"
    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"

    @property
    def rank(self) -> int:
        """0 is worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time, seconds since the epoch, `start_s` excluded and `end_s` included."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """How long the span is, seconds."""
        return self.end_s - self.start_s

    def holds(self, time_s: float) -> bool:
        """Whether a moment lies inside."""
        return self.start_s < time_s <= self.end_s


@dataclass(frozen=True, slots=True)
class Proof:
    """Where a value comes from: the source's name and the exact query, or a file and line."""

    source: str
    query: str


@dataclass(frozen=True, slots=True)
class Gap:
    """An absent value: which signal, why, and what would have to be there."""

    signal: str
    reason: GapReason
    detail: str = ""
    needs: str = ""


SOURCE_GAPS = frozenset({"baseline", "clock", "history", "logs", "metrics", "pages", "samples", "scrape_interval"})
"""Names of gaps that are about a source or the range as a whole, not about one signal."""

INCIDENT_SIGNALS = frozenset({"e2e_p99_ms", "e2e_mean_ms", "error_ratio", "request_rate_rps"})
"""The signals by which it is decided whether there is an incident."""


LARGEST_VALUE = 1e100
"""Nothing that is measured comes near it, in any unit; the squares of what is larger are no numbers any more."""


@dataclass(frozen=True, slots=True)
class Series:
    """One signal over time: `values[i]` was true at `times_s[i]`; absent points are left out, never filled."""

    signal: str
    unit: str
    times_s: tuple[float, ...]
    values: tuple[float, ...]
    proof: Proof
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """A single value that has no history here: a setting in effect, a limit, a count (`unit` may be empty)."""

    signal: str
    unit: str
    value: float
    proof: Proof
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One class of the log pyramid as it happened: `count` events, however many lines or copies told of each.

    `line` is the first event's line with control bytes stripped and secrets redacted; `place` is file:line of the log,
    `file_line` that of the program which wrote it. Times are seconds since the epoch, or None where the lines carry
    none; `first_s` is when the first event began, which a duration in its line may move back before its stamp.
    `busy_s` is how long events came, quiet times left out. `sources` are the pods, ranks or files that told of it, at
    most five. `echoes` counts what merely followed from these events. `unclassified` marks lines that no rule knows:
    `line` is what they have in common. `meaning` and `remedy` are the rule's words for whoever is on call.
    """

    rule: str
    severity: Severity
    count: int
    first_s: float | None
    last_s: float | None
    place: str
    line: str
    meaning: str
    numbers: tuple[tuple[str, float], ...] = ()
    echoes: int = 0
    sources: tuple[str, ...] = ()
    file_line: str = ""
    unclassified: bool = False
    busy_s: float = 0.0
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """One question put to a source and how it went; durations are left out so that a replay is byte-identical."""

    source: str
    query: str
    outcome: str
    series_count: int


@dataclass(frozen=True, slots=True)
class Selection:
    """Which service is diagnosed: the model's name and the PromQL label matchers that pick its series."""

    model: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Collected:
    """All that was read for one diagnosis, redacted; what `--bundle` stores and replays.

    `now_s` is the incident's own clock: the end of the last window. `window_s` is one window's length and
    `scrape_interval_s` the observed time between samples, None when there was no metrics source. `baseline` is the
    time that the user named as usual, and `baseline_series` the same signals over it.
    """

    now_s: float
    window_s: float
    scrape_interval_s: float | None
    selection: Selection
    dialects: tuple[str, ...]
    series: tuple[Series, ...]
    facts: tuple[Fact, ...]
    log_events: tuple[LogEvent, ...]
    queries: tuple[QueryRecord, ...]
    gaps: tuple[Gap, ...]
    baseline: Window | None = None
    baseline_series: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """A signal's value during the incident (or now) beside its baseline, with its proof.

    `baseline` is None when there is none, and then nothing may be concluded from change. `worst` is the value
    furthest from the baseline inside the window. `constant` marks a setting or limit without a history, which is taken
    to have been the same before. `family` is the observer it comes from: several of one family are one witness.
    """

    signal: str
    unit: str
    value: float
    baseline: float | None
    worst: float
    window: Window
    baseline_window: Window | None
    proof: Proof
    simulated: bool = False
    constant: bool = False
    family: str = ""


class IncidentState(StrEnum):
    """Whether there is an incident; see 'What the words mean' in the architecture page for the definition."""

    HEALTHY = "healthy"
    INCIDENT = "incident"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Incident:
    """The finding that latency or errors are out of bounds, since when, and by which series and limit."""

    state: IncidentState
    reason: str
    since_s: float | None
    signal: str | None
    value: float | None
    limit: float | None
    windows_bad: int
    windows_judged: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a diagnosis is allowed to see: measures or gaps by signal name, the log pyramid, the incident."""

    selection: Selection
    now_s: float
    window: Window
    baseline_window: Window | None
    incident: Incident
    measures: tuple[Measure, ...]
    gaps: tuple[Gap, ...]
    log_events: tuple[LogEvent, ...]
    dialects: tuple[str, ...]
    queries: tuple[QueryRecord, ...]
    first_movers: tuple[tuple[str, float], ...] = ()

    def find(self, signal: str) -> Measure | Gap:
        """The measure of a signal, else the gap that says why there is none."""
        for measure in self.measures:
            if measure.signal == signal:
                return measure
        for gap in self.gaps:
            if gap.signal == signal:
                return gap
        return Gap(signal, GapReason.NO_SERIES, "no source offers it")

    @property
    def simulated(self) -> bool:
        """Whether any figure here comes from a simulated accelerator."""
        return any(measure.simulated for measure in self.measures)
