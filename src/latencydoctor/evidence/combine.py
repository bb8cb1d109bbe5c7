"""Several PromQL expressions in one query: each marked with its number, so that one answer can be taken apart again.

A Prometheus is asked a handful of questions instead of one for each signal. What is shown as proof stays the single
expression, which can be asked by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

MARK = "ld_signal"
"""The label that says which expression a series of the answer belongs to."""

FEWEST_TOGETHER = 4
"""Below this, splitting saves no time worth a request."""

Part = TypeVar("Part")


def combine(expressions: Sequence[str]) -> str:
    """One query for all; a single expression is asked as it is."""
    if len(expressions) == 1:
        return expressions[0]
    # The line breaks end a comment that an expression (a selector, that is) may end with.
    parts = [
        f'label_replace(\n{expression}\n, "{MARK}", "{index}", "", "")' for index, expression in enumerate(expressions)
    ]
    return "\nor ".join(parts)


def share_out(parts: Sequence[Part], most: int) -> list[list[Part]]:
    """Even groups, in order: at most `most`, and none smaller than `FEWEST_TOGETHER` unless it is the only one."""
    groups = min(most, max(len(parts) // FEWEST_TOGETHER, 1))
    return [list(parts[len(parts) * at // groups : len(parts) * (at + 1) // groups]) for at in range(groups)]
