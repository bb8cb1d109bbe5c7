"""What sources are asked and what they answer, before it becomes one `Collected` record."""

from __future__ import annotations

from dataclasses import dataclass, field

from latencydoctor.model.evidence import Fact, Gap, LogEvent, QueryRecord, Series, Window


@dataclass(frozen=True, slots=True)
class RangeQuery:
    """One signal's PromQL over a window, one point every `step_s` seconds; the answer must be a single series.

    With `by` any number of series may answer, and what is wanted of them is that label: each finite number among its
    values is a fact called `signal`, in `unit`.
    """

    signal: str
    unit: str
    query: str
    window: Window
    step_s: float
    simulated: bool = False
    by: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A service that the metrics could mean: its model and the matchers that pick it out from the others.

    `model_label` is the label its server's dialect names models by, where it is known.
    """

    model: str
    selector: str
    model_label: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one metrics source holds at a moment: metric names, the services there, the time between samples.

    `names` are those under the user's selector, `shared_names` those without it (accelerators, cache servers).
    `one_copy` is the matcher that leaves one of several Prometheus servers that scrape the same targets, empty when
    there is one. `clock_ahead_s` is how far the source's clock is ahead of this machine's, None when it does not say.
    """

    names: frozenset[str]
    candidates: tuple[Candidate, ...]
    scrape_interval_s: float | None
    newest_sample_s: float | None
    queries: tuple[QueryRecord, ...]
    gaps: tuple[Gap, ...]
    shared_names: frozenset[str] = frozenset()
    one_copy: str = ""
    clock_ahead_s: float | None = None


@dataclass(frozen=True, slots=True)
class Readings:
    """What a source gave: some values, some gaps, and every query it was asked.

    `levels` are how many log lines have which level, worst first, where that was asked for. `quiet` are the kinds
    of loud log lines that no rule knows and that came in no burst, worst and most frequent first.
    """

    series: tuple[Series, ...] = ()
    facts: tuple[Fact, ...] = ()
    log_events: tuple[LogEvent, ...] = ()
    gaps: tuple[Gap, ...] = ()
    queries: tuple[QueryRecord, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()
    quiet: tuple[LogEvent, ...] = ()
