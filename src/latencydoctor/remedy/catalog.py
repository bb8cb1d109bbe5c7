"""The fixes there are: one row and one module each.

A row says which settings its fix may touch and within which bounds. `apply` checks a saved plan against the row again,
so nothing that a plan file says can widen it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from latencydoctor.errors import UsageError
from latencydoctor.model.remedy import NothingToDo, TargetState
from latencydoctor.remedy import batch_floor
from latencydoctor.remedy.batch_floor import BatchFloor, Change

MAX_BATCH = 1024
MAX_WAIT_MICROS = 10_000_000


@dataclass(frozen=True, slots=True)
class Bound:
    """What one setting may be set to: one of `words`, or a whole number from `low` to `high`."""

    key: str
    low: int = 0
    high: int = 0
    words: tuple[str, ...] = ()

    def admits(self, value: str) -> bool:
        """Whether the value is allowed."""
        if self.words:
            return value in self.words
        return value.isascii() and value.isdecimal() and self.low <= int(value) <= self.high


Propose = Callable[[TargetState, BatchFloor, float | None], Change | NothingToDo]


@dataclass(frozen=True, slots=True)
class Fix:
    """One row: what the fix is called, how it decides what to change, and the bounds of what it may change."""

    id: str
    title: str
    propose: Propose
    bounds: tuple[Bound, ...]
    blast_radius: str

    def bound(self, key: str) -> Bound | None:
        """The bound of a setting, None for a setting this fix may not touch."""
        return next((bound for bound in self.bounds if bound.key == key), None)


FIXES: dict[str, Fix] = {
    fix.id: fix
    for fix in (
        Fix(
            id=batch_floor.FIX_ID,
            title="Let requests share executions: a preferred batch size with a bounded wait",
            propose=batch_floor.propose,
            bounds=(
                Bound(batch_floor.ENABLED, words=("true",)),
                Bound(batch_floor.PREFERRED, 1, MAX_BATCH),
                Bound(batch_floor.MAXIMUM, 1, MAX_BATCH),
                Bound(batch_floor.WAIT, 0, MAX_WAIT_MICROS),
            ),
            blast_radius="one settings file and one model on one server: all of that model's traffic",
        ),
    )
}


def find(fix_id: str) -> Fix:
    """The fix of that id; UsageError naming those there are."""
    if fix_id not in FIXES:
        raise UsageError(f"there is no fix {fix_id!r}", hint=f"Known fixes: {', '.join(sorted(FIXES))}.")
    return FIXES[fix_id]
