"""What a change was expected to do beside what it did, and the batches that the server ran since."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions of one model by batch size since it was loaded, smallest size first.

    `floor` is the preferred size in effect, None where none is.
    """

    by_size: tuple[tuple[int, int], ...]
    floor: int | None


@dataclass(frozen=True, slots=True)
class BatchesRun:
    """Which batch sizes a server ran from the change on, and how far the floor was reached; it is a wish, no minimum.

    `share_at_floor_ratio` is the share of executions that held at least `floor` requests, None without a floor.
    """

    floor: int | None
    executions: tuple[tuple[int, int], ...]
    count: int
    mean_size: float
    share_at_floor_ratio: float | None


@dataclass(frozen=True, slots=True)
class Reached:
    """One predicted effect beside what verification measured of it; None where nothing measures it.

    `within` says whether it lies inside the predicted interval, None where there is no interval or no measurement.
    """

    signal: str
    unit: str
    predicted: float | None
    low: float | None
    high: float | None
    measured: float | None
    within: bool | None
