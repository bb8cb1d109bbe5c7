"""Parses what Prometheus answers: foreign JSON in, typed values or a reason out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from latencydoctor.model.evidence import LARGEST_VALUE, Fact, Gap, GapReason, Proof, Series
from latencydoctor.model.readings import RangeQuery
from latencydoctor.sources.transport import FailureKind, TransportError

ON_TIME_S = 0.001
"""Prometheus prints times to the millisecond."""

MAX_POINTS = 12_000
"""More than Prometheus itself gives for one range query (11,000)."""


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """One range query's outcome: a series, or facts of its labels, or the gap that says why there is neither."""

    series: Series | None
    gap: Gap | None
    series_count: int
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Labelled:
    """One element of an instant answer: its labels, and its samples as (seconds, value)."""

    labels: dict[str, str]
    samples: tuple[tuple[float, float], ...]


def parse_elements(result: object) -> tuple[Labelled, ...]:
    """The elements of a vector or matrix; `TransportError` when it is neither."""
    if not isinstance(result, list):
        raise _strange()
    return tuple(_element(item) for item in result)


def read_range(query: RangeQuery, elements: Sequence[Labelled]) -> RangeAnswer:
    """The one series a range query must give; points that are no finite numbers or were not asked for are left out."""
    if not elements:
        return RangeAnswer(None, Gap(query.signal, GapReason.NO_SERIES, "the query gave nothing"), 0)
    count = len(elements)
    if query.by:
        return _labels(query, elements)
    if count > 1:
        detail = f"the query gave {count} series instead of one"
        return RangeAnswer(None, Gap(query.signal, GapReason.BAD_ANSWER, detail), count)
    finite = [(time, value) for time, value in elements[0].samples if abs(value) <= LARGEST_VALUE]
    if not finite:
        detail = "every point is NaN or infinite"
        return RangeAnswer(None, Gap(query.signal, GapReason.NOT_A_NUMBER, detail), count)
    finite = _asked_for(query, finite)
    if not finite or any(later <= earlier for (earlier, _), (later, _) in pairwise(finite)):
        detail = "the points are not those of the range that was asked for"
        return RangeAnswer(None, Gap(query.signal, GapReason.BAD_ANSWER, detail), count)
    series = Series(
        signal=query.signal,
        unit=query.unit,
        times_s=tuple(time for time, _ in finite),
        values=tuple(value for _, value in finite),
        proof=Proof("prometheus", query.query),
        simulated=query.simulated,
    )
    return RangeAnswer(series, None, count)


def _labels(query: RangeQuery, elements: Sequence[Labelled]) -> RangeAnswer:
    """The numbers that a label has, each once; one that is no finite number (`+Inf`, a word) is left out."""
    numbers = {number for one in elements if (number := _number(one.labels.get(query.by, ""))) is not None}
    if not numbers:
        return RangeAnswer(None, Gap(query.signal, GapReason.NOT_A_NUMBER, f"no label {query.by} is a number"), 0)
    proof = Proof("prometheus", query.query)
    facts = tuple(Fact(query.signal, query.unit, number, proof, query.simulated) for number in sorted(numbers))
    return RangeAnswer(None, None, len(elements), facts)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) <= LARGEST_VALUE else None


def _asked_for(query: RangeQuery, points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points at the query's moments.

    VictoriaMetrics and the front ends of Thanos move a range back to whole steps, which their caches hold: such a point
    stands for the moment less than a step after it.
    """
    start_s, step_s = query.window.start_s, query.step_s
    last = round(query.window.length_s / step_s)
    kept: list[tuple[float, float]] = []
    for time_s, value in points:
        index = math.ceil((time_s - ON_TIME_S - start_s) / step_s)
        if 0 <= index <= last:
            moment_s = start_s + index * step_s
            kept.append((time_s if abs(time_s - moment_s) <= ON_TIME_S else moment_s, value))
    return kept


def _element(item: object) -> Labelled:
    if not isinstance(item, dict):
        raise _strange()
    labels = item.get("metric", {})
    pairs = item.get("values") if "values" in item else [item.get("value")]
    if not isinstance(labels, dict) or not isinstance(pairs, list):
        raise _strange()
    if len(pairs) > MAX_POINTS:
        raise TransportError(FailureKind.TOO_LARGE, f"more than {MAX_POINTS} points in one series")
    texts = {str(name): str(value) for name, value in labels.items()}
    return Labelled(texts, tuple(_sample(pair) for pair in pairs))


def _sample(pair: object) -> tuple[float, float]:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], int | float):
        raise _strange()
    try:
        # Values are text in Prometheus's JSON, because JSON has no NaN.
        time_s, value = float(pair[0]), float(str(pair[1]))
    except (ValueError, OverflowError) as error:
        raise _strange() from error
    if not math.isfinite(time_s):
        raise _strange()
    return time_s, value


def _strange() -> TransportError:
    return TransportError(FailureKind.NOT_JSON, "the server sent JSON that is not Prometheus's")
