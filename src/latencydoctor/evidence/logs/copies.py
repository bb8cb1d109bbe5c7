"""Tells copies of one event from events that look alike: ranks of one job, and lines that were written twice.

A `Copies` belongs to one file. When in doubt both count: two requests that fail in one second look the same.
"""

from __future__ import annotations

from latencydoctor.evidence.logs.told import Told, near

RANK_COPIES_WITHIN_S = 30.0
"""Ranks of one job report the same death within seconds; collective time-outs trail by less than this."""

_ALIKE_WITHIN_S = 1.0
_ALIKE_WITHIN_LINES = 64
_JOB_SIZES = (8, 16)
"""So many equal lines at one time are the ranks of one job that print without a prefix."""

_MOST_WORDS = 512
_REPRINTED_WITHIN_LINES = 400


class Copies:
    """Passes on tellings without their copies; `take` may hold one back until the next."""

    def __init__(self) -> None:
        self._ranks: dict[tuple[str, str, str], tuple[set[str], Told]] = {}
        self._last: dict[tuple[str, str], Told] = {}
        self._run: Told | None = None
        self._run_length = 0

    def take(self, told: Told) -> list[Told]:
        """The tellings that are sure to be no copies now that this one has come."""
        if self._is_of_another_rank(told) or self._is_of_another_program(told) or self._is_reprint(told):
            return []
        run = self._run
        if told.only_echoes:
            return [*self.finish(), told]
        if run is not None and _alike(run, told):
            # The same to the millisecond was written to two places that ended up in one file.
            self._run_length += not run.precise
            run.until_s = told.time_s
            return []
        sure = self.finish()
        self._run, self._run_length = told, 1
        return sure

    def finish(self) -> list[Told]:
        """The telling that was held back, with how many there were of it."""
        run, self._run = self._run, None
        if run is None:
            return []
        if self._run_length not in _JOB_SIZES:
            run.count *= self._run_length
        return [run]

    def _is_reprint(self, told: Told) -> bool:
        """Whether a dying process prints an exception that it has told of; the last telling of each class is kept."""
        key = (told.rule_id, told.source)
        last = self._last.get(key)
        if told.reprint:
            return last is not None and near(told, last, RANK_COPIES_WITHIN_S, _REPRINTED_WITHIN_LINES)
        if last is None and len(self._last) >= _MOST_WORDS:
            self._last.clear()
        self._last[key] = told
        return False

    def _is_of_another_program(self, told: Told) -> bool:
        """Whether a server tells again what its back end has just told, with the same figures."""
        last = self._last.get((told.rule_id, told.source))
        if last is None or not told.numbers or told.numbers != last.numbers:
            return False
        others = bool(told.program and last.program) and told.program != last.program
        return others and near(told, last, _ALIKE_WITHIN_S, _ALIKE_WITHIN_LINES)

    def _is_of_another_rank(self, told: Told) -> bool:
        # Ranks differ in device, process and sizes; the words are the same.
        if not told.rank and not self._ranks:
            return False
        key = (told.rule_id, told.source, told.words)
        if not told.rank:
            # Where ranks write at once, not every line has its prefix.
            known = self._ranks.get(key)
            return known is not None and not told.precise and near(told, known[1], _ALIKE_WITHIN_S, _ALIKE_WITHIN_LINES)
        ranks, first = self._ranks.get(key, (set(), told))
        gap_s = told.gap_s(first)
        late = gap_s is not None and gap_s > RANK_COPIES_WITHIN_S
        if ranks and told.rank not in ranks and not late:
            ranks.add(told.rank)
            return True
        if len(self._ranks) >= _MOST_WORDS:
            self._ranks.pop(next(iter(self._ranks)))
        self._ranks[key] = ({told.rank}, told)
        return False


def _alike(run: Told, told: Told) -> bool:
    """Whether two tellings are the same line: same class, text, source, and moment as far as it is told."""
    if (run.precise or told.precise) and run.time_s != told.time_s:
        return False
    same = (run.rule_id, run.source, run.text, run.rank) == (told.rule_id, told.source, told.text, told.rank)
    if not same or not 0 < told.number - run.number <= _ALIKE_WITHIN_LINES:
        return False
    gap_s = told.gap_s(run)
    return run.time_s is told.time_s if gap_s is None else abs(gap_s) <= _ALIKE_WITHIN_S
