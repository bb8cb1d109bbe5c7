"""Conditions on events that only other lines can decide: what comes before, beside and after them, and how often.

A `Verdicts` belongs to one file. Tellings that meet their class's conditions come out of it, some of them later than
they went in; what is still undecided at the end of the file is decided by `finish`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from latencydoctor.evidence.logs.compiled import Way
from latencydoctor.evidence.logs.told import At, Told, near

_LINES = 200
"""How many lines stand for a time span where lines have no time."""

_MOST_STATES = 2048
_MOST_WAITING = 32
"""How many events wait singly; further ones are counted with the last of them."""


@dataclass(slots=True)
class _State:
    """What is known of one way of one class in one source."""

    way: Way
    after: bool = False
    not_after: At | None = None
    real: At | None = None
    waiting: list[Told] = field(default_factory=list)
    retried: list[Told] = field(default_factory=list)
    last_retry: list[Told] = field(default_factory=list)
    climbed_to: float | None = None
    climbs_from: Told | None = None
    recent: list[Told] = field(default_factory=list)
    bursting: Told | None = None


class Verdicts:
    """Decides which tellings of one file count."""

    def __init__(self) -> None:
        self._stops: dict[tuple[str, int], At] = {}
        self._states: dict[tuple[str, int, str], _State] = {}
        self.retrying: dict[tuple[str, int, str], _State] = {}
        """Those of whose events it is not sure yet that nothing takes them back."""

    def mark(self, way: Way, hits: frozenset[int], source: str, at: At) -> list[Told]:
        """Note a line that decides on others of one way; returns those that count because of it."""
        state = self._state(way, source)
        if hits & way.only_after:
            state.after = True
        if hits & way.not_after:
            state.not_after = self._stops[way.key] = at
        sequel = way.rule.recovered_by
        if sequel and hits & way.recovered:
            kept = [index for index, last in enumerate(state.last_retry) if not near(last, at, sequel.within_s, _LINES)]
            state.retried = [state.retried[index] for index in kept]
            state.last_retry = [state.last_retry[index] for index in kept]
        sequel = way.rule.real_when
        if not (sequel and hits & way.real):
            return []
        state.real = at
        told = [one for one in state.waiting if near(one, at, sequel.within_s, _LINES)]
        state.waiting.clear()
        return self._after_real(state, told)

    def minds(self, way: Way, hits: frozenset[int], source: str) -> bool:
        """Whether a line that decides on others changes anything; most of them come again and again."""
        return bool(hits & (way.marks - way.only_after)) or not self.is_after(way, source)

    def is_after(self, way: Way, source: str) -> bool:
        """Whether a line that `only_after` asks for has been seen in the source."""
        state = self._states.get((*way.key, source))
        return state is not None and state.after

    def judge(self, told: Told) -> list[Told]:
        """The tellings that count now that this one has come."""
        way = told.way
        state = self._state(way, told.source)
        if (way.only_after and not state.after) or self._too_soon(state, told):
            return []
        if told.only_echoes:
            return [told]
        coming = _climbing(state, told) if way.rule.climbs else [told]
        if way.rule.real_when is None:
            return self._after_real(state, coming)
        sure: list[Told] = []
        for one in coming:
            if state.real is not None and near(one, state.real, way.rule.real_when.within_s, _LINES):
                sure.append(one)
            else:
                _wait(state.waiting, one)
        return self._after_real(state, sure)

    def passed(self, at: At) -> list[Told]:
        """The retries that nothing has taken back by the time of this line."""
        sure: list[Told] = []
        for state in [*self.retrying.values()]:
            sequel = state.way.rule.recovered_by
            if sequel is not None and state.last_retry and not near(state.last_retry[-1], at, sequel.within_s, _LINES):
                sure += self._give_up(state)
        return sure

    def finish(self) -> list[Told]:
        """The retries that nothing took back before the file ended."""
        return [told for state in [*self.retrying.values()] for told in self._give_up(state)]

    def _too_soon(self, state: _State, told: Told) -> bool:
        """Whether an event comes soon after what explains it, such as a start or an ordered stop."""
        sequel = state.way.rule.not_after
        stop = self._stops.get(state.way.key) if told.anywhere else state.not_after
        if sequel is None or stop is None:
            return False
        gap_s = told.gap_s(stop)
        return near(told, stop, sequel.within_s, _LINES) and (gap_s is None or gap_s >= 0)

    def _give_up(self, state: _State) -> list[Told]:
        told = state.retried
        state.retried, state.last_retry = [], []
        self.retrying = {key: one for key, one in self.retrying.items() if one is not state}
        return _bursting(state, told)

    def _after_real(self, state: _State, coming: Iterable[Told]) -> list[Told]:
        sequel = state.way.rule.recovered_by
        if sequel is None:
            return _bursting(state, coming)
        sure: list[Told] = []
        for told in coming:
            if state.last_retry and not near(state.last_retry[-1], told, sequel.within_s, _LINES):
                sure += self._give_up(state)
            _retry(state, told, sequel.within_s)
            self.retrying[(*state.way.key, told.source)] = state
        return sure

    def _state(self, way: Way, source: str) -> _State:
        key = (*way.key, source)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _MOST_STATES:
                # As many sources are an attack or a mistake in reading them; the oldest is forgotten.
                oldest = next(iter(self._states))
                self._states.pop(oldest)
                self.retrying.pop(oldest, None)
            state = self._states[key] = _State(way)
        return state


def _wait(waiting: list[Told], told: Told) -> None:
    if len(waiting) < _MOST_WAITING:
        waiting.append(told)
    else:
        _fold(waiting[-1], told, told.count)


def _fold(into: Told, told: Told, count: int) -> None:
    into.count += count
    if told.time_s is not None:
        into.until_s = max(told.time_s, into.until_s or told.time_s)


def _retry(state: _State, told: Told, within_s: float) -> None:
    """Tries that say the same are one event, however many."""
    words = told.words
    for index, one in enumerate(state.retried):
        if one.words == words and near(state.last_retry[index], told, within_s, _LINES):
            _fold(one, told, 0)
            state.last_retry[index] = told
            return
    if len(state.retried) < _MOST_WAITING:
        state.retried.append(told)
        state.last_retry.append(told)
    else:
        _fold(state.retried[-1], told, told.count)


def _climbing(state: _State, told: Told) -> list[Told]:
    """Those that count: the number grew since the last; the first of a row waits for the second."""
    value = told.numbers.get(state.way.rule.climbs)
    if value is None:
        return []
    before, state.climbed_to = state.climbed_to, value
    if before is None or value < before:
        state.climbs_from = told
        return []
    if value == before:
        return []
    first, state.climbs_from = state.climbs_from, None
    return [told] if first is None else [first, told]


def _bursting(state: _State, coming: Iterable[Told]) -> list[Told]:
    burst = state.way.rule.burst
    if burst is None:
        return list(coming)
    sure: list[Told] = []
    for told in coming:
        if state.bursting is not None and near(state.bursting, told, burst.within_s, _LINES):
            state.bursting = told
            sure.append(told)
            continue
        recent = [one for one in state.recent if near(one, told, burst.within_s, _LINES)]
        recent.append(told)
        enough = sum(one.count for one in recent) >= burst.count
        state.bursting = told if enough else None
        sure += recent if enough else ()
        state.recent = [] if enough else recent
    return sure
