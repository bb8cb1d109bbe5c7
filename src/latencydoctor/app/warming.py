"""The steps of a change beside its settings: answers written into a cache, and taken out of it again.

Each batch's ids are in the journal before it is sent, and what was written after. Undoing needs neither: it removes
whatever still carries the run's tag, so it may be done twice, and by a recovery that knows nothing but the run's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from latencydoctor.app.ports import AnswerCache, Progress, RunLog
from latencydoctor.app.treatment import Tools
from latencydoctor.errors import KnownError
from latencydoctor.model.popular import WarmBatch, WarmedBatch
from latencydoctor.model.remedy import RunEvent
from latencydoctor.remedy.cache_warmup import Warming, lives_s

BATCH = 200
"""Ids a batch: writing so many known answers takes the gateway some ten milliseconds."""

PAUSE_S = 0.05
"""Between two batches, so that the gateway's one event loop answers questions."""

COMPUTED_AT_ONCE = 4
"""Answers computed in one go, one after another: they join batches that are under way."""

COMPUTE_PAUSE_S = 0.2
"""Between two goes of computing, which makes at most twenty inferences a second."""

WAIT_LIMIT_MS = 50.0
"""Queue time is healthy below this (the mission's table); above it nothing is computed."""

PATIENCE_S = 10.0
"""How long computing waits for the queue to shrink. What is left then the traffic brings in by itself."""


@dataclass(frozen=True, slots=True)
class Warmth:
    """What a warm-up did, by number of answers: written, found there, left to the traffic."""

    written: int
    present: int
    left: int


def cache_of(tools: Tools) -> AnswerCache:
    """The cache that a plan writes to; KnownError where the target has none."""
    if tools.cache is None:
        raise KnownError("this target has no cache that answers can be written to", hint="Plan for the bundled stack.")
    return tools.cache


def warm(warming: Warming, tools: Tools, log: RunLog) -> Warmth:
    """Write the missing answers: those that are known first, then those that have to be computed.

    Raises KnownError when the gateway or its cache stops answering or someone asks to stop; what was written by then is
    for the caller to remove.
    """
    batches = [warming.ids[at : at + BATCH] for at in range(0, len(warming.ids), BATCH)]
    tools.observer(Progress("warm", f"writing the answers to {len(warming.ids)} popular questions"))
    found = [_send(ids, 0, warming, tools, log) for ids in batches]
    written, present = (sum(len(getattr(one, name)) for one in found) for name in ("written", "present"))
    pending = [name for one in found for name in one.pending]
    gone = sum(len(one.gone) for one in found)
    computed, left = _compute(pending, warming, tools, log)
    told = f"{written + computed} answers written, {present} were there, {gone + left} are left to the traffic"
    tools.observer(Progress("warm", told, 1.0))
    return Warmth(written + computed, present, gone + left)


def _send(ids: Sequence[str], compute: int, warming: Warming, tools: Tools, log: RunLog) -> WarmedBatch:
    if tools.cancelled():
        raise KnownError("interrupted while answers were written ahead")
    entries = tuple((name, lives_s(warming, name)) for name in ids)
    log.record(RunEvent.WARM_INTENT, ids=list(ids), compute=compute)
    done = cache_of(tools).warm(WarmBatch(log.run_id, entries, compute, WAIT_LIMIT_MS))
    log.record(RunEvent.WARM_DONE, written=list(done.written), present=len(done.present), waits_ms=done.waits_ms)
    tools.clock.sleep(PAUSE_S)
    return done


def _compute(pending: Sequence[str], warming: Warming, tools: Tools, log: RunLog) -> tuple[int, int]:
    """Computes while nothing queues; how many were written, and how many were left."""
    waiting, written = list(pending), 0
    give_up_s = tools.clock.now_s() + PATIENCE_S
    while waiting and tools.clock.now_s() < give_up_s:
        go, rest = waiting[:COMPUTED_AT_ONCE], waiting[COMPUTED_AT_ONCE:]
        done = _send(go, COMPUTED_AT_ONCE, warming, tools, log)
        written += len(done.written)
        if len(done.pending) < len(go):
            give_up_s = tools.clock.now_s() + PATIENCE_S
        # What could not be computed goes to the end, so that one question without an answer holds up no other.
        waiting = [*rest, *done.pending]
        tools.clock.sleep(COMPUTE_PAUSE_S)
    return written, len(waiting)


def cool(run_id: str, tools: Tools) -> int:
    """Remove what is still the run's own and prove that nothing is left; KnownError when that cannot be shown."""
    cache = cache_of(tools)
    dropped = cache.drop(run_id)
    left = cache.tagged(run_id)
    if left:
        raise KnownError(
            f"{len(left)} entries of run {run_id} are still in the cache", hint="Is its gateway restarted?"
        )
    return dropped
