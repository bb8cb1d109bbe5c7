"""What is worth a look in a batching configuration as it is: settings that fight each other, or the load, or the SLO.

How Triton reads them: docs of its dynamic batcher (an empty list of preferred sizes stands for the maximum; priorities
need levels, and levels a default). What a preferred size without a wait does was measured on a real Triton: a backlog
leaves in batches of exactly that size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from latencydoctor.model.remark import Remark

WAIT_MARGIN = 1.25
"""How much longer than the mean time to fill a batch the wait must be; arrivals are not evenly spaced."""

NEAR_SHARE = 0.5
"""A wait of at least this share of the SLO or the deadline leaves too little for queue and execution."""

CLASSES = ("vip", "standard")
"""The priorities that a request to the bundled gateway can name."""

FELT_SHARE = 0.1
"""A wait that costs less than this share of the SLO is not worth a word where the preferred size is not reached."""


@dataclass(frozen=True, slots=True)
class Batcher:
    """The batcher's settings. `preferred` is empty where none is; `levels` 0 where there are none, `default_level` 0
    where none is said. `classes` are the priorities that requests may name, each with its level."""

    enabled: bool
    preferred: tuple[int, ...]
    maximum: int
    wait_ms: float
    levels: int = 0
    default_level: int = 0
    classes: tuple[tuple[str, int], ...] = ()

    @property
    def largest_preferred(self) -> int:
        """The largest preferred size, 0 where none is."""
        return max(self.preferred, default=0)


@dataclass(frozen=True, slots=True)
class Around:
    """What the settings have to fit; None where it is not known. `arrival_rps` is what reaches one server."""

    slo_p99_ms: float | None = None
    deadline_ms: float | None = None
    arrival_rps: float | None = None


def lint(batcher: Batcher, around: Around) -> tuple[Remark, ...]:
    """Every remark, the graver first: what a server refuses, what limits it, what costs, what does nothing."""
    return (*_refused(batcher), *_limiting(batcher), *_costly(batcher, around), *_idle(batcher))


def needed_wait_ms(floor: int, arrival_rps: float) -> float:
    """How long the first of `floor` requests waits on average for the last, at this rate."""
    return (floor - 1) / arrival_rps * 1000


def of_settings(values: Mapping[str, str]) -> Batcher | None:
    """The batcher that settings by dotted key describe; None where they do not say its sizes."""
    prefix = "inference.batching."
    numbers = [
        int(found) if (found := values.get(prefix + name, "")).isdecimal() else None
        for name in ("preferred_batch_size", "max_batch_size", "timeout_micros")
    ]
    preferred, maximum, wait_micros = numbers
    if maximum is None or wait_micros is None:
        return None
    named = "inference.priorities."
    # Beside the levels the section holds a time.
    classes = tuple((one, int(level)) for one in CLASSES if (level := values.get(named + one, "")).isdecimal())
    levels = values.get("inference.priority_levels") == "true"
    return Batcher(
        enabled=values.get(prefix + "enabled", "true") == "true",
        preferred=(preferred,) if preferred else (),
        maximum=maximum,
        wait_ms=wait_micros / 1000,
        levels=max((level for _, level in classes), default=0) if levels else 0,
        default_level=dict(classes).get("standard", 0) if levels else 0,
        classes=classes,
    )


def _refused(batcher: Batcher) -> Iterator[Remark]:
    """What Triton does not load."""
    largest = batcher.largest_preferred
    if largest > batcher.maximum:
        yield Remark(
            "preferred-above-maximum",
            f"the preferred size of {largest} is above the maximum of {batcher.maximum}",
            "Triton refuses to load such a model",
            f"write a preferred size of at most {batcher.maximum}, or a maximum of {largest}",
        )
    if batcher.levels and not 1 <= batcher.default_level <= batcher.levels:
        yield Remark(
            "levels-without-default",
            f"there are {batcher.levels} priority levels and no default level",
            "Triton refuses to load such a model",
            f"write default_priority_level: {batcher.levels}",
        )


def _limiting(batcher: Batcher) -> Iterator[Remark]:
    """What keeps batches small."""
    largest = batcher.largest_preferred
    if not batcher.enabled and batcher.maximum > 1:
        yield Remark(
            "batching-off",
            f"batching is off, and the model takes batches of {batcher.maximum}",
            "every execution serves one request",
            "turn it on, or write a maximum of 1",
        )
    if batcher.enabled and batcher.maximum <= 1:
        yield Remark(
            "maximum-of-one",
            "batching is on with a maximum of 1",
            "there is nothing to put together, and the batcher's queue is passed all the same",
            "write a larger maximum, or turn batching off",
        )
    if batcher.enabled and 0 < largest < batcher.maximum and batcher.wait_ms <= 0:
        yield Remark(
            "preferred-size-ceiling",
            f"the preferred size is {largest} of {batcher.maximum} and there is no wait",
            f"a backlog leaves in batches of exactly {largest}, so the preferred size is a ceiling",
            f"write a wait of a few ms, or a preferred size of {batcher.maximum}",
        )


def _costly(batcher: Batcher, around: Around) -> Iterator[Remark]:
    """What is waited for longer than it is worth."""
    if not batcher.enabled:
        return
    limits = ((around.slo_p99_ms, "SLO"), (around.deadline_ms, "deadline"))
    near = [(limit, name) for limit, name in limits if limit is not None and batcher.wait_ms >= NEAR_SHARE * limit]
    if near:
        limit, name = min(near)
        yield Remark(
            "wait-near-limit",
            f"the wait of {batcher.wait_ms:g} ms is {'above' if batcher.wait_ms > limit else 'near'} the {name} of "
            f"{limit:g} ms",
            "a request that finds no company waits all of it before it is worked on",
            f"write a wait of at most {limit * FELT_SHARE:g} ms",
        )
    if batcher.wait_ms > 0 and around.arrival_rps:
        yield from _out_of_reach(batcher, around.slo_p99_ms, around.arrival_rps)
    if batcher.wait_ms > 0 and not batcher.preferred and batcher.maximum > 1:
        yield Remark(
            "wait-without-preferred",
            f"there is a wait of {batcher.wait_ms:g} ms and no preferred size",
            f"Triton then waits for the maximum of {batcher.maximum}, and every smaller batch leaves late",
            "write the size that is worth waiting for as the preferred one",
        )


def _out_of_reach(batcher: Batcher, slo_p99_ms: float | None, arrival_rps: float) -> Iterator[Remark]:
    """A preferred size that arrivals at this rate do not fill, where the wait for it is felt."""
    floor = batcher.largest_preferred
    needed_ms = needed_wait_ms(floor, arrival_rps)
    felt = slo_p99_ms is None or batcher.wait_ms > FELT_SHARE * slo_p99_ms
    if floor >= 2 and needed_ms > batcher.wait_ms and felt:
        reachable = 1 + int(arrival_rps * batcher.wait_ms / 1000 / WAIT_MARGIN)
        yield Remark(
            "preferred-out-of-reach",
            f"at {arrival_rps:.3g} requests/s a batch of {floor} takes {needed_ms:.0f} ms to fill, the wait is "
            f"{batcher.wait_ms:g} ms",
            "every batch waits to the end and leaves smaller",
            f"write a preferred size of {reachable}" if reachable > 1 else "write a wait of 0",
        )


def _idle(batcher: Batcher) -> Iterator[Remark]:
    """Priorities that put nobody first."""
    shared = {level for _, level in batcher.classes}
    names = " and ".join(name for name, _ in batcher.classes)
    if len(batcher.classes) > 1 and len(shared) == 1:
        yield Remark(
            "one-level",
            f"{names} are both on level {shared.pop()}",
            "none of them is served first",
            "write a level of its own for each, 1 being served first",
        )
    elif len(shared) > 1 and not batcher.levels:
        yield Remark(
            "priorities-without-levels",
            f"{names} have priorities and the model has no priority levels",
            "Triton serves them in the order in which they come",
            "turn the levels on if one must be served first",
        )
