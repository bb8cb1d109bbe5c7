"""When a line was written, where its stamp does not say all of it: the year, the zone, the boot, the moment of `now`.

A `Dating` belongs to one file or stream and learns from it. The year comes from a wrapper's stamp, else from a stamp
with a year nearby, else from the file's time. The zone of a program that prints local time is the one in which its
clock agrees with the wrapper's, line by line, so a change to summer time is followed. Clocks may step back: nothing
here assumes that times ascend.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Final

from latencydoctor.evidence.logs.clock import midnight_s, real
from latencydoctor.evidence.logs.draft import Draft

FUTURE_SLACK_S: Final = 86_400.0
"""A stamp without a year may lie this far after the reference: clocks differ, and files are read while written."""

_QUARTER_S = 900.0
_DAY_S = 86_400.0
_MOST_ENTRIES = 512
# Hours and the offsets with half and quarter hours that are in use; other differences are delays, not zones.
_REAL_OFFSETS_S = frozenset(
    quarter * _QUARTER_S
    for quarter in (
        *range(-48, 57, 4),
        *(-38, -14, -10),
        *(14, 18, 22, 23, 26, 35, 38, 42, 51, 55),
    )
)
_LAST_S = 2.5e11
"""In the year 9892: foreign stamps may name moments that Python's dates do not reach."""
_MONTH_ERROR_S = 20 * 86_400.0
_HALF_A_YEAR_S = 182 * 86_400.0


class Dating:
    """Dates the stamps of one stream. `reference_s` is a moment soon after its end; `zone` that of local clocks.

    Without `zone`, local clocks count as UTC until a wrapper's stamp or another witness in the file tells better.
    """

    def __init__(self, reference_s: float, zone: tzinfo | None = None) -> None:
        self.reference_s = reference_s
        self.boot_s: float | None = None
        self.seen: set[str] = set()
        """Layers that were recognised beyond doubt in this file, so that weak signs of them count later."""
        self.columns: tuple[str, ...] = ()
        """The names of a table's columns, by the last header of this file: its rows say nothing without them."""
        self._zone = zone
        self._zone_offsets: dict[int, float] = {}
        self._offsets: dict[str, float] = {}
        self._midnights: dict[int, float | None] = {}
        self._near_s: float | None = None
        self._month_ahead = False

    def turn_to(self, reference_s: float) -> None:
        """Another file of the same rotated set begins, which ends soon before this moment."""
        if abs(reference_s - self.reference_s) > _HALF_A_YEAR_S:
            # So far away the stamps before do not tell the year any more.
            self._near_s = None
        self.reference_s = reference_s
        self._midnights.clear()

    def saw(self, sign: str) -> None:
        """Remember a sign; of signs without number (names) only so many."""
        if len(self.seen) < _MOST_ENTRIES:
            self.seen.add(sign)

    def own(self, draft: Draft, program: str = "") -> None:
        """The stamp in `draft.naive_s` is the line's own: its moment, and what it teaches about zones."""
        zone_s = draft.zone_s
        if zone_s is None:
            naive_s = draft.naive_s
            if draft.exact and draft.outer_s is not None:
                self._learn(program, naive_s - draft.outer_s)
            known = self._offsets.get(program)
            draft.time_s = real(naive_s - (self._default(naive_s) if known is None else known))
            return
        moment_s = draft.naive_s - zone_s
        self._near_s = real(moment_s) or self._near_s
        self.dated(draft, moment_s)

    def dated(self, draft: Draft, moment_s: float) -> None:
        """The line's own moment is known: it also tells the zone of a wrapper's local clock."""
        draft.time_s = real(moment_s)
        if draft.outer_naive_s is not None and draft.time_s is not None:
            self._learn("wrapper", draft.outer_naive_s - moment_s)

    def wrapped(self, draft: Draft) -> None:
        """The stamp in `draft.naive_s` is a wrapper's: when the line was taken over."""
        naive_s, zone_s = draft.naive_s, draft.zone_s
        if zone_s is not None:
            moment_s = real(naive_s - zone_s)
            if moment_s is not None:
                draft.outer_s = self._near_s = moment_s
                draft.exact = True
        elif not draft.exact:
            known = self._offsets.get("wrapper")
            draft.outer_s = real(naive_s - (self._default(naive_s) if known is None else known))
            draft.outer_naive_s = None if draft.outer_s is None else naive_s

    def yearless(self, month: int, day: int, clock_s: float, draft: Draft) -> float | None:
        """A stamp without a year, as its own clock; None for dates that no year has."""
        near_s = draft.outer_s if draft.outer_s is not None else self._near_s
        # Lines share days: the day in the year it has near that other day is found once.
        key = month * 128 + day
        if near_s is not None:
            key += (int(near_s) // 86_400) * 16_384 + (8192 if draft.outer_s is None else 0)
        if key not in self._midnights:
            if len(self._midnights) > _MOST_ENTRIES:
                self._midnights.clear()
            self._midnights[key] = self._midnight(month, day, near_s, draft.outer_s is not None)
        midnight = self._midnights[key]
        return None if midnight is None else midnight + clock_s

    def _midnight(self, month: int, day: int, near_s: float | None, wrapped: bool) -> float | None:
        latest_s = self.reference_s + FUTURE_SLACK_S
        if near_s is not None:
            year = _year(near_s)
            days = (midnight_s(one, month, day) for one in (year - 1, year, year + 1))
            # Without a wrapper the neighbour may be half a year off; the file's own time is never exceeded by more.
            possible = [one for one in days if one is not None and (wrapped or one <= latest_s)]
            if possible:
                return min(possible, key=lambda one: abs(one - near_s))
        newest_year = _year(latest_s)
        # 29 February needs up to eight years (1900 and 2100 are no leap years).
        years = (midnight_s(one, month, day) for one in range(newest_year, max(newest_year - 9, 0), -1))
        return next((one for one in years if one is not None and one <= latest_s), None)

    def triton_day(self, month: int, day: int, clock_s: float, draft: Draft) -> float | None:
        """As `yearless`, for a program of which old Windows builds print the month after the right one, 13 included."""
        moment = None if month == 13 else self.yearless(month, day, clock_s, draft)
        outer_s = draft.outer_s if draft.exact else None
        if moment is not None:
            right = not self._month_ahead if outer_s is None else abs(moment - outer_s) < _MONTH_ERROR_S
            if right:
                return moment
        if month == 1:
            # Those builds never print a 1.
            self._month_ahead = False
            return moment
        before = self.yearless(month - 1, day, clock_s, draft)
        if outer_s is not None:
            self._month_ahead = before is not None and abs(before - outer_s) < FUTURE_SLACK_S
        elif moment is None and before is not None:
            self._month_ahead = True
        return before if self._month_ahead else moment

    def since_boot(self, uptime_s: float, draft: Draft) -> None:
        """A kernel's stamp: with an absolute one beside it the moment of the boot is learned, else it is used."""
        if draft.outer_s is not None:
            self.boot_s = draft.outer_s - uptime_s
        elif self.boot_s is not None:
            draft.time_s = real(self.boot_s + uptime_s)

    def learn(self, program: str, naive_s: float, moment_s: float) -> None:
        """A program's local clock stood at `naive_s` at about `moment_s`; used until a wrapper tells better."""
        if program not in self._offsets:
            self._learn(program, naive_s - moment_s)

    def offset_s(self, program: str) -> float | None:
        """How far the local clock of a program is ahead of UTC, as far as this file told; None if it did not."""
        return self._offsets.get(program)

    def _learn(self, program: str, ahead_s: float) -> None:
        """Take the offset nearest to the difference of two clocks, unless the known one explains it as a delay."""
        known = self._offsets.get(program)
        if known is not None and -2.0 <= known - ahead_s < _QUARTER_S:
            return
        nearest = round(ahead_s / _QUARTER_S) * _QUARTER_S
        if nearest in _REAL_OFFSETS_S:
            self._offsets[program] = nearest

    def _default(self, naive_s: float) -> float:
        if self._zone is None:
            return 0.0
        quarter = int(naive_s // _QUARTER_S)
        offset = self._zone_offsets.get(quarter)
        if offset is None:
            if len(self._zone_offsets) > _MOST_ENTRIES:
                self._zone_offsets.clear()
            local = datetime.fromtimestamp(min(max(naive_s, _DAY_S), _LAST_S), UTC).replace(tzinfo=None)
            difference = self._zone.utcoffset(local)
            offset = difference.total_seconds() if difference is not None else 0.0
            self._zone_offsets[quarter] = offset
        return offset


def _year(moment_s: float) -> int:
    return datetime.fromtimestamp(min(max(moment_s, 0.0), _LAST_S), UTC).year
