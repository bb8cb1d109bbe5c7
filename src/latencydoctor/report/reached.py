"""The batches that ran since a change, in words."""

from __future__ import annotations

from latencydoctor.model.reached import BatchesRun
from latencydoctor.report.units import amount


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
