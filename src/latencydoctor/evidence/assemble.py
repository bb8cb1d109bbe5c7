"""From all that was collected to what a diagnosis is allowed to see. Pure: the same record gives the same evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from latencydoctor.evidence.course import COURSES, courses
from latencydoctor.evidence.derived import DERIVED_SIGNALS, derive
from latencydoctor.evidence.incident import Judgement, judge
from latencydoctor.evidence.measures import compare, measure_fact, measure_series
from latencydoctor.evidence.onset import first_movers
from latencydoctor.evidence.series import Grid, Points, make_grid, place
from latencydoctor.model.configuration import Slo
from latencydoctor.model.evidence import Collected, Evidence, Gap, GapReason, IncidentState, Measure
from latencydoctor.model.rule import SignalName

_ASKED_IN_VAIN = frozenset({GapReason.UNREACHABLE, GapReason.BAD_ANSWER, GapReason.DEADLINE, GapReason.NOT_CONFIGURED})


def assemble(collected: Collected, slo: Slo, signals: Sequence[SignalName]) -> Evidence:
    """Judge whether there is an incident, and measure every signal over it beside its baseline.

    Signals that `signals` does not name (a bundle of a newer release) are left out.
    """
    names = {name.id: name for name in signals}
    grid = make_grid(collected.now_s, collected.window_s, collected.series)
    points = {series.signal: place(series, grid) for series in collected.series if series.signal in names}
    usual = {series.signal: series.values for series in collected.baseline_series}
    judgement = judge(points, grid, slo, usual)
    measures, silent = _measures(points, names, grid, judgement)
    outside = collected.baseline if judgement.baseline is None and usual else None
    if outside is not None:
        measures = [
            compare(measure, names[measure.signal], usual.get(measure.signal, ()), outside) for measure in measures
        ]
    window = grid.window(judgement.first, judgement.last)
    known = {measure.signal for measure in measures}
    measures += [
        measure_fact(fact, window, names[fact.signal].family)
        for fact in collected.facts
        if fact.signal in names and fact.signal not in known
    ]
    measures += [*courses(points, names, grid, judgement), *derive(measures)]
    in_incident = judgement.incident.state is IncidentState.INCIDENT
    movers = (
        first_movers(points, grid, judgement.first, judgement.baseline) if in_incident and judgement.baseline else ()
    )
    return Evidence(
        selection=collected.selection,
        now_s=collected.now_s,
        window=window,
        baseline_window=grid.window(*judgement.baseline) if judgement.baseline else outside,
        incident=judgement.incident,
        measures=tuple(sorted(measures, key=lambda measure: measure.signal)),
        gaps=_gaps(
            [*_telling(collected.gaps), *silent, *_unoffered(signals, collected.gaps)],
            {measure.signal for measure in measures},
            names,
        ),
        log_events=collected.log_events,
        dialects=collected.dialects,
        queries=collected.queries,
        first_movers=movers,
    )


def _measures(
    points: Mapping[str, Points], names: Mapping[str, SignalName], grid: Grid, judgement: Judgement
) -> tuple[list[Measure], list[Gap]]:
    """Every signal over the stretch looked at; those that have no value there become gaps."""
    measures: list[Measure] = []
    silent: list[Gap] = []
    span = (judgement.first, judgement.last)
    for signal, held in points.items():
        measure = measure_series(held, names[signal], grid, span, judgement.baseline)
        if measure is None:
            detail = "it has values in the range, but none in the windows looked at"
            silent.append(Gap(signal, GapReason.TOO_FEW_SAMPLES, detail))
        else:
            measures.append(measure)
    return measures, silent


def _telling(gaps: Sequence[Gap]) -> list[Gap]:
    """Why a source that was asked said nothing comes before the news that metrics do not have it either."""
    return sorted(gaps, key=lambda gap: gap.reason not in _ASKED_IN_VAIN)


def _unoffered(signals: Sequence[SignalName], told: Sequence[Gap]) -> list[Gap]:
    """For signals that no source said a word about; what is known of a gap comes before these."""
    made_of = dict(reversed(DERIVED_SIGNALS))
    made_of |= {course: (signal,) for course, signal in COURSES.items()}
    away = {gap.signal for gap in told if gap.reason is GapReason.UNREACHABLE}
    while more := {signal for signal, parts in made_of.items() if away.intersection(parts)} - away:
        # What is made of these is away as well.
        away |= more
    return [
        Gap(
            name.id,
            GapReason.UNREACHABLE if name.id in away else GapReason.NOT_CONFIGURED,
            f"it follows from {' and '.join(made_of[name.id])}",
        )
        if name.id in made_of
        else Gap(name.id, GapReason.NOT_CONFIGURED, "no source that was read offers it")
        for name in signals
    ]


def _gaps(gaps: Sequence[Gap], known: set[str], names: Mapping[str, SignalName]) -> tuple[Gap, ...]:
    """One gap a signal, the first told; none for signals that another source could measure."""
    kept: dict[str, Gap] = {}
    for gap in gaps:
        if gap.signal not in known and gap.signal not in kept:
            needs = gap.needs or (names[gap.signal].needs if gap.signal in names else "")
            kept[gap.signal] = Gap(gap.signal, gap.reason, gap.detail, needs)
    return tuple(kept[signal] for signal in sorted(kept))
