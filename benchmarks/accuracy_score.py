"""Scores of the fault matrix: how often the cause is right, and how often a wrong one is stated with confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.faults import Case

CONFIDENT = ("high",)
"""Medium says that there is a reservation, and which; the report shows those beside."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one run was told: `ranked` are the causes in order, `removed` the metric family that was taken away."""

    case: Case
    engine: str
    seed: int
    removed: str
    state: str
    cause: str | None
    confidence: str
    scaling: str
    ranked: tuple[str, ...]
    literal: str
    largest: str | None
    unproven: int

    @property
    def accepted(self) -> frozenset[str]:
        """The causes that are right."""
        return frozenset({self.case.cause or "", *self.case.also_right})

    @property
    def right(self) -> bool:
        """Whether the cause is right: named for a fault, none for a healthy case."""
        if self.case.healthy:
            return self.state != "incident"
        return self.cause in self.accepted

    @property
    def in_three(self) -> bool:
        """Whether a right cause is among the first three."""
        return bool(self.accepted.intersection(self.ranked[:3]))

    @property
    def wrong_and_confident(self) -> bool:
        """Whether a wrong cause is stated without a reservation."""
        return self.cause is not None and not self.right and self.confidence in CONFIDENT

    @property
    def wrong_and_medium(self) -> bool:
        """Whether a wrong cause is stated with one reservation."""
        return self.cause is not None and not self.right and self.confidence == "medium"


def share(told: Iterable[Told], counts: Callable[[Told], bool]) -> float:
    """The share of runs that count; 0 of none."""
    runs = list(told)
    return sum(map(counts, runs)) / len(runs) if runs else 0.0


def figures(told: Sequence[Told]) -> dict[str, float]:
    """The last line: every figure as a share of the runs it is about."""
    whole = [one for one in told if not one.removed]
    faults = [one for one in whole if not one.case.healthy]
    healthy = [one for one in whole if one.case.healthy]
    partial = [one for one in told if one.removed]
    labels = {one.case.cause for one in faults}
    return {
        "top1": share(faults, lambda one: one.right),
        "top3": share(faults, lambda one: one.in_three),
        "false_alarm": share(healthy, lambda one: not one.right),
        "wrong_confident": share(partial, lambda one: one.wrong_and_confident),
        "scale_out_on_do_not_scale": share(
            (one for one in told if one.case.do_not_scale), lambda one: one.scaling == "cures"
        ),
        "chance": sum(len(one.accepted & labels) for one in faults) / len(faults) / len(labels) if faults else 0.0,
        "literal_tree_top1": share(faults, lambda one: one.literal in one.accepted),
        "largest_change_top1": share(faults, lambda one: one.largest in one.accepted),
    }
