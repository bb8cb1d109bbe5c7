"""What waits for the model, by priority: whether one more is worth its wait, and when it is worth coming back.

Nothing is turned away on the word of a queue's length alone: after a pause a burst meets a pace that was low because
little was asked. Only where requests have been seen to wait long does the backlog count.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

SLOT_S = 0.5
WINDOW_SLOTS = 4
"""A pace is counted over two seconds: long enough to hold some executions of the slowest batch."""

KEPT_SLOTS = 20
"""The best two seconds of the last ten are the pace. Who is late is answered by nobody, so the pace of just now falls
when requests run into their deadline; taking that for less capacity would turn all away, then let too many in."""

RECENT_S = SLOT_S * WINDOW_SLOTS

SEEN_SHARE = 0.25
"""A wait of this share of the time left must have been seen before a backlog counts. At four times the load that can
be served, requests that leave have waited a quarter of what those that come will wait."""

WORTH_SHARE = 0.7
"""An expected wait up to this share of the time left is worth it. The rest is the execution itself and chance: a
request that is late has cost as much as one that is answered."""

SEEN_WEIGHT = 0.1
"""How much of the running mean of the waits one more makes: about the last ten count."""

MAX_RETRY_AFTER_S = 30
"""Nobody knows what will be in a minute, and nobody waits for one."""


class Tally:
    """Counts what happens, by half seconds of the last ten."""

    def __init__(self) -> None:
        self._slot = 0
        self._count = 0
        self._before: deque[int] = deque(maxlen=KEPT_SLOTS)
        self._best_per_s = 0.0

    def add(self, now_s: float) -> None:
        """One more, now."""
        self._turn_to(now_s)
        self._count += 1

    def recent(self, now_s: float) -> int:
        """How many there were in the last two seconds or a little less."""
        self._turn_to(now_s)
        return self._count + sum(list(self._before)[1 - WINDOW_SLOTS :])

    def pace_per_s(self, now_s: float) -> float:
        """The best pace of the last ten seconds."""
        self._turn_to(now_s)
        return self._best_per_s if self._before else self._count / SLOT_S

    def _turn_to(self, now_s: float) -> None:
        slot = math.floor(now_s / SLOT_S)
        if slot == self._slot:
            return
        passed = slot - self._slot
        if self._slot:
            self._before.append(self._count)
            self._before.extend([0] * min(passed - 1, KEPT_SLOTS))
        self._slot, self._count = slot, 0
        counts = list(self._before)
        size = min(WINDOW_SLOTS, len(counts))
        sums = [sum(counts[end - size : end]) for end in range(size, len(counts) + 1)] if size else [0]
        self._best_per_s = max(sums) / (max(size, 1) * SLOT_S)


class Line:
    """The inferences of one priority: `waiting` are with the model now."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answered = Tally()
        self._turned_away = Tally()
        self._seen_s = 0.0
        self._seen_at_s = -math.inf
        self.waiting = 0

    def enter(self) -> None:
        """An inference goes to the model."""
        self.waiting += 1

    def leave(self, took_s: float, *, answered: bool) -> None:
        """It is done, after so long with the model."""
        now_s = self._clock()
        self.waiting -= 1
        if now_s - self._seen_at_s > RECENT_S:
            self._seen_s = took_s
        self._seen_s += (took_s - self._seen_s) * SEEN_WEIGHT
        self._seen_at_s = now_s
        if answered:
            self._answered.add(now_s)

    def turn_away(self) -> None:
        """A request was turned away, and will come back."""
        self._turned_away.add(self._clock())

    @property
    def seen_s(self) -> float:
        """How long inferences took of late; 0 where none has ended."""
        return self._seen_s if self._clock() - self._seen_at_s <= RECENT_S else 0.0

    @property
    def expected_s(self) -> float:
        """How long it takes to answer those who wait at the pace of late; infinity where nobody is answered."""
        return self._until_answered(self.waiting)

    @property
    def owed_s(self) -> float:
        """The same for those who wait and those who were turned away of late."""
        return self._until_answered(self.waiting + self._turned_away.recent(self._clock()))

    def _until_answered(self, requests: int) -> float:
        if not requests:
            return 0.0
        pace = self._answered.pace_per_s(self._clock())
        return requests / pace if pace else math.inf


class Lines:
    """Both priorities. VIP requests go first, so whoever is standard waits at least as long as they do."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.vip = Line(clock)
        self.standard = Line(clock)

    def of(self, priority: str) -> Line:
        """The line of a priority."""
        return self.vip if priority == "vip" else self.standard

    def hopeless(self, priority: str, left_s: float) -> bool:
        """Whether a request with so long to its deadline would only wait for it to pass.

        Never true for a VIP request where it is not for a standard one.
        """
        if _hopeless(self.vip, left_s):
            return True
        return priority != "vip" and _hopeless(self.standard, left_s)

    def retry_after_s(self, priority: str) -> int:
        """Whole seconds after which those who wait and those who were turned away can have been answered.

        The least there is while nothing is known of the pace.
        """
        line = self.of(priority)
        return max(1, math.ceil(min(line.owed_s, MAX_RETRY_AFTER_S))) if line.seen_s else 1


def _hopeless(line: Line, left_s: float) -> bool:
    return line.seen_s > SEEN_SHARE * left_s and line.expected_s > WORTH_SHARE * left_s
