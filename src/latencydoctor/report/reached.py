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
