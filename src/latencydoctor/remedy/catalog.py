"""The fixes there are: one row and one module each.

A row says which settings its fix may touch and within which bounds. `apply` checks a saved plan against the row again,
so nothing that a plan file says can widen it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from latencydoctor.errors import UsageError
from latencydoctor.model.builds import ModelBuild
from latencydoctor.model.canary import CanaryKind
from latencydoctor.model.configuration import Slo
from latencydoctor.model.kept import Onset
from latencydoctor.model.popular import Popularity
from latencydoctor.model.remedy import NothingToDo, TargetState
from latencydoctor.remedy import batch_floor, cache_warmup, int8, revert_change, scale_out, vip_priority
from latencydoctor.remedy.batch_floor import BatchFloor
from latencydoctor.remedy.batching_lint import Around
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.vip_priority import Supply

MAX_BATCH = 1024
MAX_WAIT_MICROS = 10_000_000

_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}")


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
        # As YAML writes it: 010 would be eight there.
        return _WHOLE.fullmatch(value) is not None and self.low <= int(value) <= self.high


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a fix decides on beside the target's settings; None where it is not known, or not asked for by the fix."""

    slo: Slo
    measured: Mapping[str, float]
    arrival_rps: float | None = None
    wanted: BatchFloor = batch_floor.DEFAULT
    popularity: Popularity | None = None
    onset: Onset | None = None
    need: scale_out.Need = scale_out.UNKNOWN
    insisted: bool = False
    supply: Supply | None = None
    build: ModelBuild | None = None


Propose = Callable[[TargetState, Circumstances], Change | NothingToDo]


@dataclass(frozen=True, slots=True)
class Fix:
    """One row: what the fix is called, how it decides what to change, and the bounds of what it may change.

    `canary` says what tries it before all traffic gets it, `warms` that it may write entries of the cache, too, and
    decides on what is popular, `rebuilds` that it decides on a rebuilt model, `restores` that it may put the whole
    settings of an earlier generation back and nothing else. Unless a person insists, a fix that `scales` is refused
    where the diagnosis says that more replicas are the wrong answer, one with `causes` where it found another.
    """

    id: str
    title: str
    propose: Propose
    bounds: tuple[Bound, ...]
    blast_radius: str
    canary: CanaryKind = CanaryKind.NONE
    warms: bool = False
    rebuilds: bool = False
    restores: bool = False
    scales: bool = False
    causes: tuple[str, ...] = ()

    def bound(self, key: str) -> Bound | None:
        """The bound of a setting, None for a setting this fix may not touch."""
        return next((bound for bound in self.bounds if bound.key == key), None)


FIXES: dict[str, Fix] = {
    fix.id: fix
    for fix in (
        Fix(
            id=batch_floor.FIX_ID,
            title="Let requests share executions: a preferred batch size with a bounded wait",
            propose=lambda state, now: batch_floor.noted(
                batch_floor.propose(state, now.wanted, now.arrival_rps),
                state,
                Around(now.slo.p99_ms, state.deadline_ms, now.arrival_rps),
            ),
            bounds=(
                Bound(batch_floor.ENABLED, words=("true",)),
                Bound(batch_floor.PREFERRED, 1, MAX_BATCH),
                Bound(batch_floor.MAXIMUM, 1, MAX_BATCH),
                Bound(batch_floor.WAIT, 0, MAX_WAIT_MICROS),
            ),
            blast_radius="one settings file and one model on one server: all of that model's traffic",
            canary=CanaryKind.REPLICA,
        ),
        Fix(
            id=cache_warmup.FIX_ID,
            title="Put the answers to popular questions into the cache, and keep them there",
            propose=lambda state, now: cache_warmup.change(state, now.slo, now.measured, now.popularity),
            bounds=(
                Bound(cache_warmup.ENABLED, words=("true",)),
                Bound(cache_warmup.TTL, words=(str(cache_warmup.TTL_S),)),
                Bound(cache_warmup.ENTRIES, 1, cache_warmup.MAX_ENTRIES),
                Bound(cache_warmup.SINGLE_FLIGHT, words=("true",)),
            ),
            blast_radius="one settings file and missing entries of one cache: the answers to popular questions",
            warms=True,
            causes=("cache-ineffective", "cache-flushed", "cache-evicting", "cache-stampede"),
        ),
        Fix(
            id=scale_out.FIX_ID,
            title="Add replicas, or instances where one server is all there is, so that each gets less of the traffic",
            propose=lambda state, now: scale_out.propose(state, now.need, now.measured, insisted=now.insisted),
            bounds=(
                Bound(scale_out.REPLICAS, 2, scale_out.MOST),
                Bound(scale_out.INSTANCES, 2, scale_out.MOST_INSTANCES),
            ),
            blast_radius="the Tritons behind one gateway, or one model's instances on one server: those that run go on",
            scales=True,
        ),
        Fix(
            id=revert_change.FIX_ID,
            title="Put the last settings back that were in effect before the incident began",
            propose=lambda state, now: revert_change.propose(state, now.onset, now.measured, insisted=now.insisted),
            bounds=(),
            blast_radius="one whole settings file: everything that was changed since that generation",
            restores=True,
        ),
        # No canary: with levels on one replica alone, VIP requests would still queue on the others.
        Fix(
            id=vip_priority.FIX_ID,
            title="Serve VIP requests first, and turn standard ones away that have waited too long",
            propose=lambda state, now: vip_priority.propose(state, now.slo, now.measured, now.supply),
            bounds=(
                Bound(vip_priority.BATCHING, words=("true",)),
                Bound(vip_priority.LEVELS, words=("true",)),
                Bound(vip_priority.VIP, words=("1",)),
                Bound(vip_priority.STANDARD, words=("2",)),
                Bound(vip_priority.LIMIT, 1, vip_priority.MAX_LIMIT_MS),
            ),
            blast_radius="one settings file and one model on every replica: standard requests wait, or are turned away",
        ),
        Fix(
            id=int8.FIX_ID,
            title="Serve the model in INT8, as a version that some sessions try first",
            propose=lambda state, now: int8.propose(state, now.build, now.measured),
            bounds=(Bound(int8.PRECISION, words=("int8",)),),
            blast_radius="one settings file and a version of one model: a share of the sessions, then all",
            rebuilds=True,
            canary=CanaryKind.VERSION,
        ),
    )
}


def find(fix_id: str) -> Fix:
    """The fix of that id; UsageError naming those there are."""
    if fix_id not in FIXES:
        raise UsageError(f"there is no fix {fix_id!r}", hint=f"Known fixes: {', '.join(sorted(FIXES))}.")
    return FIXES[fix_id]
