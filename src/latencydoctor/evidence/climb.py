"""How often a level rises from one window to the next: what leaks climbs all the time, what was added steps up once."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from latencydoctor.evidence.incident import Judgement
from latencydoctor.evidence.series import Grid, Points
from latencydoctor.model.evidence import Measure, Proof
from latencydoctor.model.rule import SignalName

CLIMBS = {"accelerator_memory_climb_ratio": "accelerator_memory_used_bytes"}
"""Each climb and the signal it is of."""

FEWEST_WINDOWS = 6
"""Of fewer pairs of neighbours no share can be told."""

LEAST_RISE_RATIO = 0.0005
"""A rise by less is no rise: of an 80 GB device 40 MB, which allocators move by themselves."""


def climbs(
    points: Mapping[str, Points], names: Mapping[str, SignalName], grid: Grid, judgement: Judgement
) -> list[Measure]:
    """The share of neighbouring windows that rise, in the stretch looked at and in its baseline."""
    found: list[Measure] = []
    for climb, signal in CLIMBS.items():
        held, name = points.get(signal), names.get(climb)
        value = _climb(held.inside(judgement.first, judgement.last)) if held else None
        before = _climb(held.inside(*judgement.baseline)) if held and judgement.baseline else None
        if held is None or name is None or (value is None and before is None):
            continue
        shown = before if value is None else value
        assert shown is not None
        found.append(
            Measure(
                signal=climb,
                unit=name.unit,
                value=shown,
                baseline=before,
                worst=shown,
                window=grid.window(judgement.first, judgement.last),
                baseline_window=grid.window(*judgement.baseline) if before is not None and judgement.baseline else None,
                proof=Proof("derived", f"share of windows higher than the one before of {held.series.proof.query}"),
                simulated=held.series.simulated,
                family=name.family.value,
            )
        )
    return found


def _climb(values: list[float]) -> float | None:
    if len(values) < FEWEST_WINDOWS:
        return None
    pairs = list(itertools.pairwise(values))
    return sum(after > before * (1 + LEAST_RISE_RATIO) for before, after in pairs) / len(pairs)
