"""Evidence for tests, built from plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from latencydoctor.evidence.derived import derive
from latencydoctor.model.evidence import (
    Evidence,
    Gap,
    GapReason,
    Incident,
    IncidentState,
    LogEvent,
    Measure,
    Proof,
    Selection,
    Severity,
    Window,
)

NOW_S = 1_800_000_000.0
WINDOW = Window(NOW_S - 25, NOW_S)
BEFORE = Window(NOW_S - 60, NOW_S - 30)


def unit_of(signal: str) -> str:
    """The unit its name says."""
    known = {"ms": "ms", "ratio": "ratio", "rps": "requests/s", "bytes": "bytes"}
    return known.get(signal.rsplit("_", 1)[-1], "")


def measure(signal: str, value: float, baseline: float | None = None, *, simulated: bool = False) -> Measure:
    """One measure with a proof that names its signal."""
    return Measure(
        signal=signal,
        unit=unit_of(signal),
        value=value,
        baseline=baseline,
        worst=value,
        window=WINDOW,
        baseline_window=BEFORE if baseline is not None else None,
        proof=Proof("prometheus", f"query_of_{signal}"),
        simulated=simulated,
    )


def incident(state: IncidentState = IncidentState.INCIDENT) -> Incident:
    """A finding in a given state."""
    return Incident(state, "p99 latency 2,140 ms > 1,000 ms", NOW_S - 30, "e2e_p99_ms", 2140.0, 1000.0, 5, 5)


def event(rule: str, count: int = 1, line: str = "a line") -> LogEvent:
    """One event of the log pyramid."""
    return LogEvent(rule, Severity.ERROR, count, NOW_S - 20, NOW_S - 5, "gateway.log:7", line, "a meaning")


def evidence(
    *measures: Measure,
    gaps: tuple[Gap, ...] = (),
    events: tuple[LogEvent, ...] = (),
    state: IncidentState = IncidentState.INCIDENT,
) -> Evidence:
    """Evidence holding these measures and nothing else."""
    return Evidence(
        selection=Selection("faq-encoder"),
        now_s=NOW_S,
        window=WINDOW,
        baseline_window=BEFORE,
        incident=incident(state),
        measures=measures,
        gaps=gaps,
        log_events=events,
        dialects=("triton",),
        queries=(),
    )


def gap(signal: str, reason: GapReason = GapReason.NO_SERIES) -> Gap:
    """An absent signal."""
    return Gap(signal, reason, "nothing exports it", "an exporter")


def values(numbers: dict[str, float], baseline: dict[str, float] | None = None) -> tuple[Measure, ...]:
    """Measures from a mapping of signals to values."""
    before = baseline or {}
    return tuple(measure(signal, value, before.get(signal)) for signal, value in numbers.items())


def history(signals: Mapping[str, float | Sequence[float]]) -> tuple[Measure, ...]:
    """Measures from `signal: [value, baseline]`, or `signal: value` for a setting, with what is derived from them."""
    held = [
        measure(signal, numbers[0], numbers[1])
        if isinstance(numbers, Sequence)
        else replace(measure(signal, numbers), constant=True)
        for signal, numbers in signals.items()
    ]
    return (*held, *derive(held))
