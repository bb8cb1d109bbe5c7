"""Executions by batch size as a target's servers count them, through the sources that a diagnosis reads as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from latencydoctor.app.ports import FactSource
from latencydoctor.forecast.situation import batch_times
from latencydoctor.model.evidence import Selection
from latencydoctor.model.reached import Executions

LEAST_FLOOR = 2
"""A preferred size below this asks for nothing."""


def executed(servers: Iterable[FactSource], selection: Selection) -> Executions | None:
    """The sum over all servers; None where one of them does not tell, since a part would pass for the whole."""
    counts: Counter[int] = Counter()
    floors: list[float] = []
    for server in servers:
        facts = server.read(selection).facts
        times = batch_times(facts)
        floor = next((fact.value for fact in facts if fact.signal == "config_preferred_batch_size"), None)
        if not times or floor is None:
            return None
        counts.update({one.size: one.executions for one in times})
        floors.append(floor)
    if not floors:
        return None
    floor = min(floors)
    return Executions(tuple(sorted(counts.items())), round(floor) if floor >= LEAST_FLOOR else None)
