"""The fix `revert-change`: where the incident began with a change of the settings, put the ones from before back.

A change is held responsible only when it came into effect at the onset, as well as that is known; one that came
earlier or later is a coincidence until somebody shows otherwise. What is put back is the newest generation from before
under which no incident began, whole and byte for byte but for its number, because a person tested it as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from latencydoctor.model.kept import KeptGeneration, Onset
from latencydoctor.model.remedy import NothingToDo, Prediction, TargetState
from latencydoctor.remedy.change import Change

FIX_ID = "revert-change"

WINDOWS_BEFORE = 3
"""So many windows before the first bad one a change may have come into effect: a backlog needs time to grow, and a
window's percentile shows it when a few windows hold it."""

WINDOWS_AFTER = 1
"""A bad window is dated by its start, and what made it bad may have come at its end."""

SAME_RATE_RATIO = 0.2
"""What was measured before says what to expect only at about the same rate of requests."""

MOST_KEYS_NAMED = 8

MAY_INSIST = "`latencydoctor plan revert-change --force` plans to take back the last change before it all the same."
INSISTED = "Beware: the incident did not begin with this change; taking it back was insisted on."
NEEDS_METRICS = "When it began is seen in metrics: --prometheus URL, or --bundle FILE with a stored diagnosis."

_RELOADS = "inference."
_BATCHING = "inference.batching."
_CANARY = "canary."


def propose(
    state: TargetState, onset: Onset | None, measured: Mapping[str, float], *, insisted: bool = False
) -> Change | NothingToDo:
    """The change back, or why no change is to be taken back. `measured` are signals during the incident.

    With `insisted` the last change before the incident is taken back where none coincides: a shorter time to live takes
    as long as the old one to show.
    """
    if onset is None:
        reason = "no incident was found whose beginning is known, so no change can be held responsible"
        return NothingToDo(FIX_ID, reason, (NEEDS_METRICS,))
    if not state.kept:
        return NothingToDo(FIX_ID, f"{state.target} keeps no settings from before that can be read")
    place = _changed_at(state.kept, onset)
    coincides = place is not None
    if place is None and insisted:
        place = _changed_before(state.kept, onset)
    if place is None:
        notes = () if _changed_before(state.kept, onset) is None else (MAY_INSIST,)
        return NothingToDo(FIX_ID, _no_coincidence(state.kept, onset), notes)
    suspect = state.kept[place]
    before, passed_over = _last_good(state.kept, place, onset)
    if before is None:
        reason = f"generation {suspect.generation} came with the incident, but there is none from before to put back"
        return NothingToDo(FIX_ID, reason, passed_over)
    if before.digest == state.digest:
        reason = f"the settings already are those of generation {before.generation}, from before the incident"
        return NothingToDo(FIX_ID, reason, passed_over)
    keys = _differing(state.settings, before.settings)
    return Change(
        values=(),
        side_effects=_costs(before, keys),
        grounds=(*_grounds(suspect, before, onset), *passed_over, *(() if coincides else (INSISTED,))),
        predictions=() if any(key.startswith(_BATCHING) for key in keys) else (_expected(before, onset, measured),),
        restores=before,
    )


def is_whole(kept: KeptGeneration) -> bool:
    """Whether a generation was meant for all traffic; one with a canary was on its way to something else."""
    return not any(key.startswith(_CANARY) for key, _ in kept.settings)


def _changed_at(kept: Sequence[KeptGeneration], onset: Onset) -> int | None:
    """The first change that came into effect at the onset, by index; None when none did."""
    earliest_s = onset.since_s - WINDOWS_BEFORE * onset.window_s
    latest_s = onset.since_s + WINDOWS_AFTER * onset.window_s
    for place in range(1, len(kept)):
        if earliest_s <= kept[place].in_effect_s <= latest_s and kept[place].digest != kept[place - 1].digest:
            return place
    return None


def _changed_before(kept: Sequence[KeptGeneration], onset: Onset) -> int | None:
    """The last change before the incident, by index."""
    places = range(len(kept) - 1, 0, -1)
    earlier = (place for place in places if kept[place].in_effect_s < onset.since_s)
    return next((place for place in earlier if kept[place].digest != kept[place - 1].digest), None)


def _no_coincidence(kept: Sequence[KeptGeneration], onset: Onset) -> str:
    since = f"the incident began at {_clock(onset.since_s)}"
    if len(kept) == 1:
        return f"{since}, and the settings have not changed since {_clock(kept[0].in_effect_s)}"
    nearest = min(kept[1:], key=lambda one: abs(one.in_effect_s - onset.since_s))
    apart_s = nearest.in_effect_s - onset.since_s
    return (
        f"{since}, and no change of the settings came into effect then: the nearest, generation {nearest.generation}, "
        f"did {_span(abs(apart_s))} {'after' if apart_s > 0 else 'before'} it"
    )


def _last_good(
    kept: Sequence[KeptGeneration], place: int, onset: Onset
) -> tuple[KeptGeneration | None, tuple[str, ...]]:
    """The newest generation before the suspect that is worth having back, and why newer ones are not."""
    passed_over: list[str] = []
    for index in range(place - 1, -1, -1):
        one = kept[index]
        if one.digest == kept[place].digest:
            passed_over.append(f"Generation {one.generation} holds the same settings as the one that is suspected.")
        elif not is_whole(one):
            passed_over.append(f"Generation {one.generation} was a canary's.")
        elif _had_trouble(one, kept[index + 1], onset):
            passed_over.append(f"An incident began under generation {one.generation} as well.")
        else:
            return one, tuple(passed_over)
    return None, tuple(passed_over)


def _had_trouble(one: KeptGeneration, following: KeptGeneration, onset: Onset) -> bool:
    """Whether a bad stretch began while it was in effect; a stretch is dated by the end of its first window."""
    return any(one.in_effect_s <= start_s + onset.window_s < following.in_effect_s for start_s in onset.earlier_s)


def _differing(now: Sequence[tuple[str, str]], then: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    held, wanted = dict(now), dict(then)
    keys = dict.fromkeys((*held, *wanted))
    return tuple(key for key in keys if key != "generation" and held.get(key) != wanted.get(key))


def _grounds(suspect: KeptGeneration, before: KeptGeneration, onset: Onset) -> tuple[str, ...]:
    apart_s = suspect.in_effect_s - onset.since_s
    by = f", written by {suspect.owner}" if suspect.owner else ""
    side = "after" if apart_s > 0 else "before"
    came = (
        f"generation {suspect.generation} came into effect at {_clock(suspect.in_effect_s)}{by}: "
        f"{_span(abs(apart_s))} {side} the first bad window of {onset.window_s:g} s began"
    )
    was = (
        f"generation {before.generation} was in effect from {_clock(before.in_effect_s)} on, "
        "and no incident is known to have begun under it"
    )
    return (came, was)


def _costs(before: KeptGeneration, keys: Sequence[str]) -> tuple[str, ...]:
    more = f" and {len(keys) - MOST_KEYS_NAMED} more" if len(keys) > MOST_KEYS_NAMED else ""
    what = ", ".join(keys[:MOST_KEYS_NAMED]) + more if keys else "only comments and order"
    found = [f"All that was changed since generation {before.generation} goes back with it: {what}."]
    if any(key.startswith(_RELOADS) for key in keys):
        found.append("The model is loaded anew while the old copy serves: for a moment memory holds both.")
        found.append("Triton's statistics by batch size start from zero.")
    return tuple(found)


def _expected(before: KeptGeneration, onset: Onset, measured: Mapping[str, float]) -> Prediction:
    """What was measured before, where it says something of now: no queue model knows what these settings do."""
    now = measured.get("e2e_p99_ms")
    usual = onset.baseline.get("e2e_p99_ms")
    rates = measured.get("request_rate_rps"), onset.baseline.get("request_rate_rps")
    if usual is None:
        return _unknown(now, "p99 was not measured before the incident")
    if rates[0] is None or rates[1] is None or abs(rates[0] / max(rates[1], 1e-9) - 1) > SAME_RATE_RATIO:
        told = " and ".join("an unknown rate" if rate is None else f"{rate:.3g} requests/s" for rate in rates)
        return _unknown(now, f"p99 was {usual:.3g} ms before, but the rates differ: {told}")
    method = f"as measured before the incident at {rates[1]:.3g} requests/s, under generation {before.generation}"
    return Prediction("e2e_p99_ms", "ms", now, usual, None, None, method)


def _unknown(now: float | None, reason: str) -> Prediction:
    return Prediction("e2e_p99_ms", "ms", now, None, None, None, f"not predicted: {reason}")


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%S UTC")


def _span(length_s: float) -> str:
    return f"{length_s:.0f} s" if length_s < 120 else f"{length_s / 60:.0f} min"
