"""What came of a prediction, and the batches that ran since a change, in words."""

from __future__ import annotations

from collections.abc import Sequence

from latencydoctor.model.reached import BatchesRun, Reached
from latencydoctor.report.units import amount
from latencydoctor.report.wording import name

P99 = "e2e_p99_ms"

MAKE_P99 = ("network_time_ms", "request_rate_rps", "cache_hit_ratio", "batch_size_mean", "instance_busy_ratio")
"""What p99 is made of, and is both predicted and measured."""

OTHERWISE_RATIO = 0.1
"""Nearer than this to what was predicted counts as predicted."""


def why_outside(reached: Sequence[Reached]) -> str:
    """Where p99 lies outside its interval: which of the figures that make it came otherwise than predicted. Else ""."""
    if not any(one.signal == P99 and one.within is False for one in reached):
        return ""
    held = {one.signal: one for one in reached if one.predicted is not None and one.measured is not None}
    made_of = [held[signal] for signal in MAKE_P99 if signal in held]
    told = [
        f"{name(one.signal)} is {amount(one.measured, one.unit)} and not {amount(one.predicted, one.unit)}"
        for one in made_of
        if _otherwise(one)
    ]
    if told:
        return ", ".join(told)
    if not made_of:
        return "not known, nothing else that was predicted is measured"
    return f"not known, what else was predicted came as predicted: {', '.join(name(one.signal) for one in made_of)}"


def _otherwise(one: Reached) -> bool:
    predicted, measured = one.predicted or 0.0, one.measured or 0.0
    return abs(measured - predicted) > OTHERWISE_RATIO * abs(predicted)


def batches_line(ran: BatchesRun) -> str:
    """How many executions there were, how large, and how far the floor was reached, in one sentence."""
    head = f"{ran.count:,} executions since the change, {amount(ran.mean_size, 'items')} on average"
    if ran.share_at_floor_ratio is None:
        return f"batches: {head}; no floor is set"
    return f"batches: {head}; {amount(ran.share_at_floor_ratio, 'ratio')} held at least the preferred {ran.floor}"


def sizes_line(ran: BatchesRun, most: int | None = None) -> str:
    """Executions by size, smallest first; with `most` only the sizes that ran most often, and how many are left out."""
    shown = ran.executions
    if most is not None and len(shown) > most:
        shown = tuple(sorted(sorted(shown, key=lambda one: one[1], reverse=True)[:most]))
    told = ", ".join(f"{size}: {count:,}" for size, count in shown)
    left = len(ran.executions) - len(shown)
    return f"executions by size: {told}" + (f" and {left} more sizes" if left else "")
