"""What a rebuilt model loses: the drop of top-1 on the same held-out questions, with its upper 95 % bound.

The two models answer the same questions, so only those count that one answers rightly and the other does not. The bound
is Tango's score interval for a difference of paired shares (Statistics in Medicine 17, 1998): unlike the usual one it
is not zero where the two models happen to agree on everything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latencydoctor.percent import percent

MAX_DROP_RATIO = 0.01
"""A build whose upper bound reaches this is refused (the mission's: 1 % of top-1)."""

MIN_QUESTIONS = 1000
"""Fewer held-out questions prove nothing of the kind (the mission's)."""

Z_ONE_SIDED_95 = 1.6449
"""Standard normal quantile of 0.95."""

_STEPS = 60


@dataclass(frozen=True, slots=True)
class Loss:
    """Top-1 before and after, on so many questions; `lost` were right before and are wrong now, `won` the reverse."""

    questions: int
    right_before: int
    lost: int
    won: int

    @property
    def drop_ratio(self) -> float:
        """By how much top-1 fell, 0..1; below zero where it rose."""
        return (self.lost - self.won) / self.questions

    @property
    def drop_upper_ratio(self) -> float:
        """The upper 95 % bound of the drop, one-sided."""
        return upper_bound(self.lost, self.won, self.questions)

    @property
    def top1_before_ratio(self) -> float:
        """Share of the questions that the model before answers rightly."""
        return self.right_before / self.questions

    @property
    def top1_after_ratio(self) -> float:
        """The same for the model after."""
        return self.top1_before_ratio - self.drop_ratio


def compare(right_before: npt.NDArray[np.bool_], right_after: npt.NDArray[np.bool_]) -> Loss:
    """The loss between two models that answered the same questions, in the same order."""
    return Loss(
        questions=len(right_before),
        right_before=int(right_before.sum()),
        lost=int((right_before & ~right_after).sum()),
        won=int((~right_before & right_after).sum()),
    )


def upper_bound(lost: int, won: int, questions: int) -> float:
    """The largest drop that these counts do not contradict at 95 %, one-sided."""
    low, high = (lost - won) / questions, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _score(lost, won, questions, middle) > -Z_ONE_SIDED_95:
            low = middle
        else:
            high = middle
    return high


def _score(lost: int, won: int, questions: int, drop: float) -> float:
    """How many standard errors the counts lie above a true drop of `drop`."""
    total = 2 * questions
    linear = -lost - won + (total - lost + won) * drop
    constant = -won * drop * (1 - drop)
    q21 = (math.sqrt(max(0.0, linear * linear - 4 * total * constant)) - linear) / (2 * total)
    variance = questions * (2 * q21 + drop * (1 - drop))
    return (lost - won - questions * drop) / math.sqrt(variance) if variance > 0 else 0.0


def refusal(loss: Loss) -> str:
    """Why a build with this loss may not serve; empty when it may."""
    if loss.questions < MIN_QUESTIONS:
        return f"measured on {loss.questions} held-out questions, at least {MIN_QUESTIONS} are needed"
    if loss.drop_upper_ratio >= MAX_DROP_RATIO:
        return (
            f"top-1 drops by {percent(loss.drop_ratio, 2)}, upper 95 % bound {percent(loss.drop_upper_ratio, 2)}; "
            f"refused at {percent(MAX_DROP_RATIO, 0)}"
        )
    return ""
