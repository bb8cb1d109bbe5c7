"""The fix `cache-warmup`: put the answers to popular questions into the cache before they are asked again.

It helps where questions repeat and the cache lacks their answers: it was emptied, or it loses them too soon. Warming
alone lasts no longer than an entry does, so a setting that makes the cache lose them is put right in the same plan.
Traffic whose questions do not repeat has nothing to warm.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.configuration import Slo
from latencydoctor.model.popular import Popularity, PopularQuestion
from latencydoctor.model.remedy import NothingToDo, Operation, OperationKind, Prediction, Requirement, TargetState
from latencydoctor.percent import percent
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.hit_ratio import Reach, Room, entries_needed, reach, steady
from latencydoctor.remedy.judge import LATENCY_MARGIN, MISSES, P99

FIX_ID = "cache-warmup"

ENABLED = "cache.enabled"
TTL = "cache.ttl_seconds"
ENTRIES = "cache.max_entries"
SINGLE_FLIGHT = "cache.single_flight"

CACHE_OBJECT = "answer cache"
"""The cache's name among the objects of a plan."""

MAX_ENTRIES = 10_000_000
"""The largest cache that this fix asks for."""

TTL_S = 300
"""The mission's: what warmed entries live, and what a too short setting is raised to."""

MAX_QUESTIONS = 2000
"""So many are warmed at most; the ids of all stand in the plan, which may have a megabyte."""

TOLERANCE = 0.05
"""The reached hit ratio must come this close to the predicted one; a setting that costs as much is broken."""

LEAST_GAIN = 0.01
"""Below one point the cache counts as warm."""

SOON_S = 30.0
"""An entry that has less left to live is as good as missing."""

JITTER = 0.10
"""Warmed entries live up to this much longer or shorter, so that they do not all expire at once."""

_ID = re.compile(r"[0-9a-f]{16}")
_TTL_KEY = re.compile(r"warm for ([1-9][0-9]{0,6}) s")


@dataclass(frozen=True, slots=True)
class Warming:
    """Which questions' answers to write, most asked first, and how long they live (before jitter)."""

    ids: tuple[str, ...]
    ttl_s: int


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What the fix would do: settings to put right, answers to write, and the hit ratio before and after."""

    values: tuple[tuple[str, str], ...]
    warming: Warming | None
    reach: Reach
    notes: tuple[str, ...]


def propose(state: TargetState, popularity: Popularity, hit_ratio: float | None) -> WarmUp | NothingToDo:
    """What would raise the hit ratio; `hit_ratio` is the one measured now, None where only the front end counts.

    Nothing to do where questions do not repeat, or where what repeats is in the cache and stays there.
    """
    if not popularity.questions or not popularity.asked:
        return NothingToDo(
            FIX_ID,
            f"none of {popularity.asked} questions of the last {popularity.window_s:.0f} s was asked twice, so there "
            "is nothing to warm",
        )
    values = repairs(state, popularity)
    room = _room(dict(values), state, popularity)
    missing = [one for one in popularity.questions if one.left_s is None or one.left_s < SOON_S][:MAX_QUESTIONS]
    warming = Warming(tuple(one.id for one in missing), round(room.ttl_s)) if missing else None
    found = reach(popularity, warming.ids if warming else (), room)
    share = sum(one.asked for one in missing) / popularity.asked
    if not values and share < LEAST_GAIN:
        here = len(popularity.questions) - len(missing)
        return NothingToDo(
            FIX_ID,
            f"the cache is warm: it holds {here} of the {len(popularity.questions)} questions that were asked more "
            f"than once, and the others are {percent(share, 1)} of the traffic",
        )
    return WarmUp(values, warming, found, (*_told(popularity, missing, hit_ratio), *_why(values, state, popularity)))


def repairs(state: TargetState, popularity: Popularity) -> tuple[tuple[str, str], ...]:
    """Settings that make the cache lose what is asked again, with what they should be.

    A time to live or a size counts as broken when this very traffic would find at least five points more with
    a larger one; otherwise it is left as it is, because somebody may want answers to be fresh.
    """
    found: list[tuple[str, str]] = []
    in_use = _in_use(state, popularity)
    if in_use[ENABLED] == "false":
        found.append((ENABLED, "true"))
    room = Room(float(in_use[TTL]), int(in_use[ENTRIES]))
    if room.ttl_s < TTL_S:
        longer = Room(float(TTL_S), room.max_entries)
        if steady(popularity, longer) - steady(popularity, room) >= TOLERANCE:
            found.append((TTL, str(TTL_S)))
            room = longer
    needed = min(entries_needed(popularity, room, LEAST_GAIN), MAX_ENTRIES)
    if steady(popularity, Room(room.ttl_s, needed)) - steady(popularity, room) >= TOLERANCE:
        found.append((ENTRIES, str(needed)))
    if in_use[SINGLE_FLIGHT] == "false":
        found.append((SINGLE_FLIGHT, "true"))
    return tuple(found)


def _in_use(state: TargetState, popularity: Popularity) -> dict[str, str]:
    defaults = {ENABLED: "true", TTL: str(TTL_S), ENTRIES: "10000", SINGLE_FLIGHT: "true"}
    told = defaults | dict(popularity.settings)
    return {key: state.setting(key) or value for key, value in told.items()}


def _room(changed: dict[str, str], state: TargetState, popularity: Popularity) -> Room:
    values = _in_use(state, popularity) | changed
    return Room(float(values[TTL]), int(values[ENTRIES]))


def _told(popularity: Popularity, missing: Sequence[PopularQuestion], hit_ratio: float | None) -> tuple[str, ...]:
    asked = popularity.asked
    repeated = sum(one.asked for one in popularity.questions)
    now = popularity.hit_ratio if hit_ratio is None else hit_ratio
    share = sum(one.asked for one in missing)
    known = sum(one.known for one in missing)
    counted = (
        f"{len(popularity.questions)} questions were asked more than once in the last {popularity.window_s:.0f} s: "
        f"{percent(repeated / asked, 1)} of {asked} lookups; the cache answers {percent(now or 0, 1)}."
    )
    lacking = (
        f"{len(missing)} of them are missing in the cache: {percent(share / asked, 1)} of the traffic. "
        f"The answers to {known} are known from a moment ago and cost no inference, "
        f"{len(missing) - known} have to be computed."
    )
    return (counted, lacking)


def _why(values: tuple[tuple[str, str], ...], state: TargetState, popularity: Popularity) -> tuple[str, ...]:
    before = _in_use(state, popularity)
    told = {
        ENABLED: "The cache is off.",
        TTL: f"Entries live {before[TTL]} s, too short for questions that come back: at {TTL_S} s they are found.",
        ENTRIES: f"{before[ENTRIES]} entries are too few: popular ones are put out before they are asked for again.",
        SINGLE_FLIGHT: "Single flight is off: each question that misses is computed as often as it is asked meanwhile.",
    }
    return tuple(told[key] for key, _ in values)


def change(
    state: TargetState, slo: Slo, measured: Mapping[str, float], popularity: Popularity | None
) -> Change | NothingToDo:
    """The proposal as a plan takes it, with what verification will demand: the hit ratio, and a p99 not worse."""
    if popularity is None:
        raise KnownError(
            "what is asked most is not known: this target has no front end that counts it",
            hint="Warm its cache by its own means.",
        )
    before = measured.get("cache_hit_ratio", popularity.hit_ratio)
    found = propose(state, popularity, before)
    if isinstance(found, NothingToDo):
        return found
    return Change(
        values=found.values,
        side_effects=side_effects(found),
        operations=() if found.warming is None else (operation_of(found.warming),),
        grounds=found.notes,
        predictions=(prediction(found, before),),
        requirements=(
            Requirement(P99, "ms", _worst_p99_ms(slo, measured.get(P99))),
            Requirement(MISSES, "ratio", min(1.0, 1 - found.reach.ratio + TOLERANCE)),
        ),
    )


def _worst_p99_ms(slo: Slo, before_ms: float | None) -> float:
    """In an incident the SLO; else no worse than it was, but for the noise of a window."""
    return slo.p99_ms if before_ms is None else min(slo.p99_ms, before_ms * LATENCY_MARGIN)


def side_effects(found: WarmUp) -> tuple[str, ...]:
    """What a reader of the plan has to know beside the effect."""
    notes = []
    if found.warming is not None:
        low, high = (round(found.warming.ttl_s * (1 + sign * JITTER)) for sign in (-1, 1))
        notes.append(
            f"Up to {len(found.warming.ids)} entries are written where there is none, and live {low} to {high} s. "
            "A rollback removes those that are still the run's own."
        )
        notes.append("What has to be computed is asked at the lowest level, and only while no questions queue.")
    if any(key == TTL for key, _ in found.values):
        notes.append(f"An answer may be up to {TTL_S} s old.")
    return tuple(notes)


def prediction(found: WarmUp, before: float | None) -> Prediction:
    """The hit ratio before and after, for the plan."""
    count = len(found.warming.ids) if found.warming else 0
    return Prediction(
        "cache_hit_ratio",
        "ratio",
        before=before,
        after=found.reach.ratio,
        low=found.reach.low,
        high=found.reach.high,
        method=f"how often each question was asked, less its own last time, with {count} answers warmed; "
        "interval: 95 % of samples, its lower end without what the traffic brings in by itself",
    )


def operation_of(warming: Warming) -> Operation:
    """The warming as a plan's operation. The values are ids: where there is an entry already, nothing is written."""
    return Operation(OperationKind.WARM_CACHE, CACHE_OBJECT, f"warm for {warming.ttl_s} s", "", " ".join(warming.ids))


def read_operation(operation: Operation) -> Warming:
    """The warming of a plan's operation; Refused for anything that this fix would not plan."""
    told, ids = _TTL_KEY.fullmatch(operation.key), operation.after.split(" ")
    if operation.object != CACHE_OBJECT or operation.before or told is None or not 1 <= int(told[1]) <= 604_800:
        raise Refused(f"{FIX_ID} may not do {operation.key!r} to {operation.object!r}", hint="Make a new plan.")
    if not 1 <= len(ids) <= MAX_QUESTIONS or len(set(ids)) != len(ids) or not all(map(_ID.fullmatch, ids)):
        raise Refused(
            f"the plan does not name 1 to {MAX_QUESTIONS} different questions to warm", hint="Make a new plan."
        )
    return Warming(tuple(ids), int(told[1]))


def lives_s(warming: Warming, name: str) -> int:
    """How long one warmed entry lives, whole seconds: the same for the same id, spread evenly over the ids."""
    spread = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) / 0xFFFFFFFF
    return max(1, round(warming.ttl_s * (1 - JITTER + 2 * JITTER * spread)))
