"""Folds what merely follows from an event into it: lines that tell it again, and other classes that are its echoes.

An `Echoes` belongs to one file. Its output is what counts, in order, each telling with the echoes known by then; echoes
that come later are handed out by class.
"""

from __future__ import annotations

from latencydoctor.evidence.logs.told import At, Told

AFTER_S = 30.0
"""How long after an event, or after its last echo, something may still be an echo of it."""

BEFORE_S = 5.0
"""How long before an event its echo may be: parts of a system write their lines in no exact order."""

_TOLD_AGAIN_BEFORE_S = 10.0
"""How long before a class's main line another may tell of the same event."""

_LINES = 40
"""How many lines stand for these spans where lines have no time."""

_MOST_HELD = 64


def _follows(told: At, original: At, after_s: float, before_s: float) -> bool:
    gap_s = told.gap_s(original)
    if gap_s is None:
        return abs(told.number - original.number) <= _LINES
    return -before_s <= gap_s <= after_s


class Echoes:
    """Decides which tellings of one file are events of their own."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Told, str]] = {}
        """Each class's last telling, and the class that it was counted with."""
        self._held: list[Told] = []
        self.later: dict[str, int] = {}
        """Echoes of events that were already handed on, by class."""

    def take(self, told: Told) -> list[Told]:
        """The tellings that are events now that this one has come."""
        if not self._held and not told.only_echoes and not told.way.rule.echo_of:
            self._note(told, told.rule_id)
            return [told]
        sure = self._release(told) if self._held else []
        if told.only_echoes:
            return sure + self._told_again(told)
        root = self._original(told) if told.way.rule.echo_of else ""
        if self._held:
            self._take_up(told, root or told.rule_id)
        self._note(told, root or told.rule_id)
        if root:
            self._echo(root, told)
            return sure
        if told.way.rule.echo_of:
            return sure + self._hold(told)
        return [*sure, told]

    def finish(self) -> list[Told]:
        """What was still held back."""
        held, self._held = self._held, []
        return held

    def settled(self, at: At) -> list[Told]:
        """What need not be held back any longer at this line."""
        return self._release(at)

    def _told_again(self, told: Told) -> list[Told]:
        last = self._last.get(told.rule_id)
        # A table tells at the end of a start what went wrong in it, however long that took.
        again = told.text.startswith("|") or (last and _follows(told, last[0], AFTER_S, _TOLD_AGAIN_BEFORE_S))
        root = last[1] if last is not None and again else self._original(told)
        self._note(told, root or told.rule_id)
        if not root:
            return self._hold(told)
        self._echo(root, told)
        return []

    def _original(self, told: Told) -> str:
        """The class of which this is an echo, empty if it is none: the first in the rule's own order."""
        for rule_id in told.way.rule.echo_of:
            last = self._last.get(rule_id)
            if last is not None and _follows(told, last[0], AFTER_S, BEFORE_S):
                # What echoes an echo keeps the event alive: one death fills a log for minutes.
                for one in {rule_id, last[1]}:
                    known = self._last.get(one, last)
                    self._last[one] = (_later(told, known[0]), known[1])
                return last[1]
        return ""

    def _take_up(self, told: Told, root: str) -> None:
        """Those held back are echoes of this one, if it is what they waited for; `root` is what it is counted with."""
        kept: list[Told] = []
        for one in self._held:
            again = (
                one.only_echoes and one.rule_id == told.rule_id and _follows(one, told, AFTER_S, _TOLD_AGAIN_BEFORE_S)
            )
            follows = told.rule_id in one.way.rule.echo_of and _follows(one, told, AFTER_S, BEFORE_S)
            if again or follows:
                told.echoes += one.echoes + one.count
                if one.rule_id != told.rule_id:
                    self._note(one, root)
            else:
                kept.append(one)
        self._held = kept

    def _echo(self, root: str, told: Told) -> None:
        count = told.count + told.echoes
        for one in self._held:
            if one.rule_id == root:
                one.echoes += count
                return
        self.later[root] = self.later.get(root, 0) + count

    def _hold(self, told: Told) -> list[Told]:
        self._held.append(told)
        if len(self._held) <= _MOST_HELD:
            return []
        return [self._held.pop(0)]

    def _release(self, at: At) -> list[Told]:
        over = [one for one in self._held if not _follows(at, one, _TOLD_AGAIN_BEFORE_S, AFTER_S)]
        if not over:
            return []
        self._held = [one for one in self._held if not any(one is gone for gone in over)]
        return over

    def _note(self, told: Told, root: str) -> None:
        """Remember a class's last telling; records of several sources come in no exact order."""
        last = self._last.get(told.way.rule.id)
        if last is None or _later(told, last[0]) is told:
            self._last[told.way.rule.id] = (told, root)


def _later(one: Told, other: Told) -> Told:
    gap_s = one.gap_s(other)
    return one if (gap_s >= 0 if gap_s is not None else one.number > other.number) else other
