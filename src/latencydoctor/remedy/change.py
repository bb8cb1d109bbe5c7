"""What a fix proposes, before it becomes a plan."""

from __future__ import annotations

from dataclasses import dataclass

from latencydoctor.model.kept import KeptGeneration
from latencydoctor.model.remedy import Operation, Prediction, Requirement


@dataclass(frozen=True, slots=True)
class Change:
    """The settings to set (dotted key, value), and what else a reader of the plan has to know.

    `operations` are those beside settings, `grounds` say what the fix found on the target, `predictions` and
    `requirements` are the fix's own: a requirement takes the place of the general one of its signal. `restores` is the
    earlier generation whose text becomes the whole file; then there are no values. General requirements on the signals
    of `instead_of` do not fit the fix and are left out. `standard_limit_ms` is how long a standard request may wait
    once VIP requests go first, None for any other fix.
    """

    values: tuple[tuple[str, str], ...]
    side_effects: tuple[str, ...]
    operations: tuple[Operation, ...] = ()
    grounds: tuple[str, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    restores: KeptGeneration | None = None
    instead_of: tuple[str, ...] = ()
    standard_limit_ms: float | None = None
    speedup: float | None = 1.0
    """How many times faster an execution becomes; None where that is not known before it is tried."""
