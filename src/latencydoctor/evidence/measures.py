"""From points to measures: one value for the stretch looked at, one for its baseline, and the worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from latencydoctor.evidence.series import Grid, Points, median
from latencydoctor.model.evidence import Fact, Measure, Window
from latencydoctor.model.rule import Family, SignalName, Summary


def measure_series(
    held: Points, name: SignalName, grid: Grid, span: tuple[int, int], baseline: tuple[int, int] | None
) -> Measure | None:
    """A signal's measure over the windows of `span`; None when it has no value there."""
    values = held.inside(*span)
    value = _summary(values, name.summary)
    if value is None:
        return None
    before = _summary(held.inside(*baseline), name.summary) if baseline else None
    return Measure(
        signal=name.id,
        unit=name.unit,
        value=value,
        baseline=before,
        worst=_worst(values, before, name),
        window=grid.window(*span),
        baseline_window=grid.window(*baseline) if baseline and before is not None else None,
        proof=held.series.proof,
        simulated=held.series.simulated,
        family=name.family.value,
    )


def compare(measure: Measure, name: SignalName, usual: Sequence[float], window: Window) -> Measure:
    """The measure beside a baseline outside the range; as it is when there is nothing usual to compare with."""
    before = _summary(list(usual), name.summary)
    if before is None:
        return measure
    return replace(measure, baseline=before, baseline_window=window)


def measure_fact(fact: Fact, window: Window, family: Family) -> Measure:
    """A fact as a measure: it has no history here, so there is no baseline and nothing follows from change.

    A setting stays as it is until it is changed; a clock or a load read once says nothing of before.
    """
    return Measure(
        signal=fact.signal,
        unit=fact.unit,
        value=fact.value,
        baseline=None,
        worst=fact.value,
        window=window,
        baseline_window=None,
        proof=fact.proof,
        simulated=fact.simulated,
        constant=family is Family.CONFIG,
        family=family.value,
    )


def _summary(values: list[float], summary: Summary) -> float | None:
    if not values:
        return None
    if summary is Summary.LARGEST:
        return max(values)
    return values[-1] if summary is Summary.LATEST else median(values)


def _worst(values: list[float], baseline: float | None, name: SignalName) -> float:
    if baseline is None:
        return max(values) if name.higher_is_worse else min(values)
    return max(values, key=lambda value: abs(value - baseline))
