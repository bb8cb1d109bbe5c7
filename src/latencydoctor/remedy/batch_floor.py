"""The fix `batch-floor`: let requests wait briefly so that they share executions.

Triton has no minimum batch size. What comes closest is a preferred size together with a bounded wait: a batch leaves
at the preferred size, or with whatever is there once its oldest request has waited that long. It is met only if the
wait is long enough for the requests to arrive: (size - 1) / rate. Without a wait a preferred size below the maximum is
a ceiling instead, and a backlog is cut into pieces of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from latencydoctor.model.remedy import NothingToDo, TargetState
from latencydoctor.remedy.batching_lint import WAIT_MARGIN, Around, lint, needed_wait_ms, of_settings
from latencydoctor.remedy.change import Change

FIX_ID = "batch-floor"

ENABLED = "inference.batching.enabled"
PREFERRED = "inference.batching.preferred_batch_size"
MAXIMUM = "inference.batching.max_batch_size"
WAIT = "inference.batching.timeout_micros"


@dataclass(frozen=True, slots=True)
class BatchFloor:
    """What is wished for; the defaults are the mission's: 16 preferred, at most 32, waiting at most 100 ms."""

    preferred_batch_size: int = 16
    max_batch_size: int = 32
    max_wait_ms: float = 100.0


DEFAULT = BatchFloor()


def propose(state: TargetState, wanted: BatchFloor, arrival_rps: float | None) -> Change | NothingToDo:
    """What differs from the wish, for the rate at which requests reach the server (None: not known).

    A setting that already does at least as much is left alone. At a rate too low to fill the preferred batch within
    the longest wait, the floor is lowered to what can be filled, and below two there is nothing to gain.
    """
    floor = reachable_floor(wanted, arrival_rps)
    if floor < 2:
        return NothingToDo(
            FIX_ID,
            f"at {arrival_rps:.3g} requests/s no second request arrives within {wanted.max_wait_ms:g} ms, "
            "so a batch floor would only add that wait",
        )
    target = _target(state, floor, wanted, arrival_rps)
    values = tuple((key, value) for key, value in target if state.in_use(key) != value)
    if not values:
        return NothingToDo(FIX_ID, "batching already is as this fix would set it", _notes(floor, wanted, arrival_rps))
    notes = (*_notes(floor, wanted, arrival_rps), *_costs(dict(target)))
    return Change(values, notes)


def noted(found: Change | NothingToDo, state: TargetState, around: Around) -> Change | NothingToDo:
    """What a fix found, with the remarks on the settings as they are before it."""
    batcher = of_settings({**dict(state.effective), **dict(state.settings)})
    remarks = tuple(f"As it is: {one}." for one in lint(batcher, around)) if batcher is not None else ()
    if isinstance(found, NothingToDo):
        return replace(found, notes=(*found.notes, *remarks))
    return replace(found, grounds=(*found.grounds, *remarks))


def reachable_floor(wanted: BatchFloor, arrival_rps: float | None) -> int:
    """The preferred size, or the largest one that arrivals at this rate fill within the longest wait."""
    if arrival_rps is None:
        return wanted.preferred_batch_size
    # The leader is there at time 0; the others arrive during the wait.
    reachable = 1 + math.floor(arrival_rps * wanted.max_wait_ms / 1000 / WAIT_MARGIN)
    return min(wanted.preferred_batch_size, reachable)


def _target(
    state: TargetState, floor: int, wanted: BatchFloor, arrival_rps: float | None
) -> tuple[tuple[str, str], ...]:
    if state.can_set(WAIT) and not state.can_set(PREFERRED):
        return _without_preferred(state, floor, wanted, arrival_rps)
    maximum = max(wanted.max_batch_size, _whole(state.in_use(MAXIMUM)), floor)
    preferred = _whole(state.in_use(PREFERRED))
    if not floor <= preferred <= maximum:
        preferred = floor
    wait = _wait_micros(state, preferred, wanted, arrival_rps)
    return ((ENABLED, "true"), (PREFERRED, str(preferred)), (MAXIMUM, str(maximum)), (WAIT, str(wait)))


def _without_preferred(
    state: TargetState, floor: int, wanted: BatchFloor, arrival_rps: float | None
) -> tuple[tuple[str, str], ...]:
    """Where a batch waits until it is full, the maximum is the floor: a larger one would only be waited for longer."""
    maximum = max(_whole(state.in_use(MAXIMUM)), floor)
    wait = _wait_micros(state, maximum, wanted, arrival_rps)
    return ((ENABLED, "true"), (MAXIMUM, str(maximum)), (WAIT, str(wait)))


def _wait_micros(state: TargetState, size: int, wanted: BatchFloor, arrival_rps: float | None) -> int:
    """The wait as it is where that is long enough to fill `size` and not too long, else the longest wished for."""
    wait = _whole(state.in_use(WAIT))
    longest = round(wanted.max_wait_ms * 1000)
    needed = longest if arrival_rps is None else needed_wait_ms(size, arrival_rps) * WAIT_MARGIN * 1000
    return wait if min(needed, longest) <= wait <= longest else longest


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


def _notes(floor: int, wanted: BatchFloor, arrival_rps: float | None) -> tuple[str, ...]:
    if arrival_rps is None:
        return ("The arrival rate is not known, so it was not checked that the batch fills within the wait.",)
    fills_ms = needed_wait_ms(floor, arrival_rps)
    filled = (
        f"At {arrival_rps:.4g} requests/s a batch of {floor} fills in about {fills_ms:.0f} ms "
        f"of the {wanted.max_wait_ms:g} ms allowed."
    )
    if floor == wanted.preferred_batch_size:
        return (filled,)
    need_ms = needed_wait_ms(wanted.preferred_batch_size, arrival_rps) * WAIT_MARGIN
    lowered = (
        f"A batch of {wanted.preferred_batch_size} would need a wait of {need_ms:.0f} ms, so the floor is {floor}."
    )
    return (filled, lowered)


def _costs(target: dict[str, str]) -> tuple[str, ...]:
    wait_ms = _whole(target[WAIT]) / 1000
    costs = [
        f"When traffic is low, a request may wait up to {wait_ms:g} ms for company.",
        "Larger batches need more memory for activations.",
    ]
    if PREFERRED not in target:
        return tuple(costs)
    costs[1:1] = [
        "The model is loaded anew while the old copy serves: for a moment memory holds both.",
        "Triton's statistics by batch size start from zero.",
    ]
    if _whole(target[PREFERRED]) < _whole(target[MAXIMUM]):
        costs.append(
            f"Until the oldest request has waited {wait_ms:g} ms, a backlog leaves in batches of exactly "
            f"{target[PREFERRED]}; after that in batches of up to {target[MAXIMUM]}."
        )
    return tuple(costs)
