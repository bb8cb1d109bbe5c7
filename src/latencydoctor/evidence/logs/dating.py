"""When a line was written, where its stamp does not say all of it: the year, the zone, the boot, the moment of `now`.

A `Dating` belongs to one file or stream and learns from it. The year comes from a wrapper's stamp, else from a stamp
with a year nearby, else from the file's time. The zone of a program that prints local time is the one in which its
clock agrees with the wrapper's, line by line, so a change to summer time is followed. Clocks may step back: nothing
here assumes that times ascend.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Final

from latencydoctor.evidence.logs.clock import midnight_s
from latencydoctor.evidence.logs.draft import Draft

FUTURE_SLACK_S: Final = 86_400.0
"""A stamp without a year may lie this far after the reference: clocks differ, and files are read while written."""

_QUARTER_S = 900.0
_DAY_S = 86_400.0
_MOST_ZONE_ENTRIES = 512
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


class Dating:
    """Dates the stamps of one file. `reference_s` is a moment soon after its end; `zone` that of local clocks.

    Without `zone`, local clocks count as UTC until a wrapper's stamp or another witness in the file tells better.
    """

    def __init__(self, reference_s: float, zone: tzinfo | None = None) -> None:
        self.reference_s = reference_s
        self.boot_s: float | None = None
        self.seen: set[str] = set()
        """Layers that were recognised beyond doubt in this file, so that weak signs of them count later."""
        self._zone = zone
        self._zone_offsets: dict[int, float] = {}
        self._offsets: dict[str, float] = {}
        self._near_s: float | None = None
        self._month_ahead = False

    def own(self, draft: Draft, program: str = "") -> None:
        """The stamp in `draft.naive_s` is the line's own: its moment, and what it teaches about zones."""
        naive_s, zone_s = draft.naive_s, draft.zone_s
        if zone_s is None:
            near_s = draft.outer_s if draft.exact else None
            draft.time_s = naive_s - self._offset(program, naive_s, near_s)
            return
        draft.time_s = self._near_s = naive_s - zone_s
        if draft.outer_naive_s is not None:
            self._learn("wrapper", draft.outer_naive_s - draft.time_s)

    def wrapped(self, draft: Draft) -> None:
        """The stamp in `draft.naive_s` is a wrapper's: when the line was taken over."""
        naive_s, zone_s = draft.naive_s, draft.zone_s
        if zone_s is not None:
            draft.outer_s = self._near_s = naive_s - zone_s
            draft.exact = True
        elif not draft.exact:
            draft.outer_naive_s = naive_s
            draft.outer_s = naive_s - self._offset("wrapper", naive_s, None)

    def yearless(self, month: int, day: int, clock_s: float, draft: Draft) -> float | None:
        """A stamp without a year, as its own clock; None for dates that no year has."""
        near_s = draft.outer_s if draft.outer_s is not None else self._near_s
        if near_s is not None:
            year = _year(near_s)
            days = (midnight_s(one, month, day) for one in (year - 1, year, year + 1))
            moments = [one + clock_s for one in days if one is not None]
            # Without a wrapper the neighbour may be half a year off; the file's own time is never exceeded by more.
            if draft.outer_s is None:
                moments = [one for one in moments if one <= self.reference_s + FUTURE_SLACK_S]
            if moments:
                return min(moments, key=lambda one: abs(one - near_s))
        return resolve_year(month, day, clock_s, self.reference_s)

    def triton_day(self, month: int, day: int, clock_s: float, draft: Draft) -> float | None:
        """As `yearless`, for a program of which old Windows builds print the month after the right one, 13 included."""
        moment = None if month == 13 else self.yearless(month, day, clock_s, draft)
        outer_s = draft.outer_s if draft.exact else None
        if outer_s is not None and moment is not None and abs(moment - outer_s) < _MONTH_ERROR_S:
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
            draft.time_s = self.boot_s + uptime_s

    def learn(self, program: str, naive_s: float, moment_s: float) -> None:
        """A program's local clock stood at `naive_s` at about `moment_s`; used until a wrapper tells better."""
        if program not in self._offsets:
            self._learn(program, naive_s - moment_s)

    def offset_s(self, program: str) -> float | None:
        """How far the local clock of a program is ahead of UTC, as far as this file told; None if it did not."""
        return self._offsets.get(program)

    def _offset(self, program: str, naive_s: float, near_s: float | None) -> float:
        if near_s is not None:
            self._learn(program, naive_s - near_s)
        known = self._offsets.get(program)
        return self._default(naive_s) if known is None else known

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
            if len(self._zone_offsets) > _MOST_ZONE_ENTRIES:
                self._zone_offsets.clear()
            local = datetime.fromtimestamp(min(max(naive_s, _DAY_S), _LAST_S), UTC).replace(tzinfo=None)
            difference = self._zone.utcoffset(local)
            offset = difference.total_seconds() if difference is not None else 0.0
            self._zone_offsets[quarter] = offset
        return offset


def _year(moment_s: float) -> int:
    return datetime.fromtimestamp(min(max(moment_s, 0.0), _LAST_S), UTC).year


def resolve_year(month: int, day: int, clock_s: float, reference_s: float) -> float | None:
    """The latest moment with this month, day and clock that is not after the reference; a day is allowed.

    None for dates that do not exist.
    """
    newest_year = _year(reference_s + FUTURE_SLACK_S)
    # 29 February needs up to eight years (1900 and 2100 are no leap years).
    for year in range(newest_year, max(newest_year - 9, 0), -1):
        midnight = midnight_s(year, month, day)
        if midnight is not None and midnight + clock_s <= reference_s + FUTURE_SLACK_S:
            return midnight + clock_s
    return None
