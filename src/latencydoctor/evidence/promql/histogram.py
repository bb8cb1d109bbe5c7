"""`histogram_quantile` over classic buckets, by the rules of Prometheus 2."""

from __future__ import annotations

import math

from latencydoctor.evidence.promql.values import NAME, Element, Labels, Vector, drop

BUCKET = "le"

_Bucket = tuple[float, float]
"""Upper bound and cumulative count."""


def histogram_quantile(share: float, vector: Vector) -> Vector:
    """One quantile for each set of buckets that differ in `le` alone; elements without a usable bound are left out."""
    groups: dict[Labels, list[_Bucket]] = {}
    for element in vector:
        bound = _bound(element.get(BUCKET))
        if bound is not None:
            groups.setdefault(drop(element.labels, (NAME, BUCKET)), []).append((bound, element.value))
    return [Element(labels, bucket_quantile(share, buckets)) for labels, buckets in groups.items()]


def bucket_quantile(share: float, buckets: list[_Bucket]) -> float:
    """The quantile by linear interpolation inside its bucket; NaN when the buckets do not tell."""
    if math.isnan(share):
        return math.nan
    if not 0 <= share <= 1:
        return math.copysign(math.inf, share)
    bounds, counts = _tidy(buckets)
    if bounds[-1] != math.inf or len(bounds) < 2:
        return math.nan
    observed = counts[-1]
    if observed == 0:
        return math.nan
    rank = share * observed
    index = next((i for i, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if index == len(counts) - 1:
        # Beyond the last finite bound nothing is known but that bound.
        return bounds[-2]
    if index == 0 and bounds[0] <= 0:
        return bounds[0]
    start = bounds[index - 1] if index else 0.0
    below = counts[index - 1] if index else 0.0
    inside = counts[index] - below
    return start + (bounds[index] - start) * ((rank - below) / inside) if inside else math.nan


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound


def _tidy(buckets: list[_Bucket]) -> tuple[list[float], list[float]]:
    """Bounds ascending and distinct; counts that never fall, as scrapes and rates may be torn."""
    bounds: list[float] = []
    counts: list[float] = []
    for bound, count in sorted(buckets, key=lambda bucket: bucket[0]):
        if bounds and bounds[-1] == bound:
            counts[-1] += count
        else:
            bounds.append(bound)
            counts.append(count)
    highest = counts[0]
    for index, count in enumerate(counts):
        # Neither comparison holds for a NaN, which Prometheus leaves as it is.
        if count > highest:
            highest = count
        elif count < highest:
            counts[index] = highest
    return bounds, counts
