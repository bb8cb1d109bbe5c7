"""Puts files together: harmless lines in time order, signatures and traps among them, each file with its truth."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from benchmarks.log_corpus.formats import PROGRAMS, Place, Said, has_time
from benchmarks.log_corpus.formats_host import ALL_WRITERS
from benchmarks.log_corpus.records import Chatter, Record, Signature, load_chatter
from benchmarks.log_corpus.values import Drawn
from benchmarks.log_corpus.wrappers import Wrapper, draw_stack, kernel_place, wrap_line

APART_S = 1800.0
"""Signatures stand this far from each other: what one says must not explain another."""

_ZONES_S = (-25200.0, -10800.0, 3600.0, 7200.0, 19800.0, 28800.0)
_POOL = 400

Line = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Expected:
    """What one signature should lead to in its file. `starts_s` are accepted first times, none where no line tells.

    `count` is a lowest and a highest number of events.
    """

    signature: Signature
    count: tuple[int, int]
    starts_s: tuple[float, ...]


@dataclass(slots=True)
class Scene:
    """One file before damage: its lines in order, what it was made of and what is true of it."""

    programs: tuple[str, ...]
    stack: tuple[str, ...]
    lines: list[Line] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    traps: list[Signature] = field(default_factory=list)
    benign_lines: int = 0
    busy: list[tuple[float, float]] = field(default_factory=list)
    year: bool = True


@cache
def chatter() -> dict[str, Chatter]:
    return load_chatter()


def _said(record: Record, drawn: Drawn, rank: int = -1) -> Said:
    return Said(
        record.level,
        record.file,
        record.tag.render(drawn),
        tuple(line.render(drawn) for line in record.lines),
        rank,
    )


def _write(at_s: float, form: str, said: Said, place: Place, stack: Sequence[Wrapper]) -> list[Line]:
    told_s = place.told(at_s)
    lines = ALL_WRITERS[form](told_s, said, place)
    if stack:
        lines = [wrapped for line in lines for wrapped in wrap_line(told_s, line, place, stack)]
    return [(at_s, line) for line in lines]


class Composer:
    """Makes one program's part of a file; `stack` are its wrappers from the inside out."""

    def __init__(
        self,
        rng: random.Random,
        program: str,
        stack: Sequence[Wrapper],
        span: tuple[float, float],
        step: tuple[float, float] = (float("inf"), 0.0),
    ) -> None:
        self.program, self.stack, self.span, self.rng = program, tuple(stack), span, rng
        self.form = PROGRAMS[program]
        zoned = any(one.year for one in stack) and rng.random() < 0.4
        self.place = Place(
            rng=rng,
            variant=rng.randrange(12),
            zone_s=rng.choice(_ZONES_S) if zoned else 0.0,
            pid=rng.randint(100, 9999),
            host=rng.choice(("node-a", "gpu-7", "ml-host02")),
            ident=program.replace("_", "-"),
            booted_s=span[0] - rng.randint(1000, 900000),
            kernel=kernel_place(stack, rng) if program == "kernel" else "bare",
            colour=rng.random() < 0.2,
            step=step,
        )

    def startup(self, at_s: float) -> Iterator[list[Line]]:
        """What the program says when it starts."""
        for record in chatter()[self.program].startup:
            at_s += self.rng.uniform(0.1, 3.0)
            yield self._record(record, Drawn(self.rng, at_s), at_s)

    def chat(self, count: int) -> Iterator[list[Line]]:
        """Records of harmless lines, at least `count` of them, over the span."""
        said = chatter()[self.program]
        picks = self.rng.choices(said.records, said.weights, k=min(_POOL, max(count, 1)))
        step_s = (self.span[1] - self.span[0]) / max(count, 1)
        at_s = self.span[0]
        pool = [(record.form or self.form, record) for record in picks]
        ready = [(form, _said(record, Drawn(self.rng, at_s))) for form, record in pool]
        dated = [any(line.dated for line in record.lines) for _, record in pool]
        for number in range(count):
            at_s += self.rng.random() * 2 * step_s
            if number % 16 == 0:
                # Fresh values for a part of the lines is enough: numbers differ, and so do the times of all.
                index = self.rng.randrange(len(pool))
                form, record = pool[index]
                ready[index] = (form, _said(record, Drawn(self.rng, at_s)))
            index = int(self.rng.random() * len(ready))
            form, said_now = ready[index]
            if dated[index]:
                said_now = _said(pool[index][1], Drawn(self.rng, at_s))
            yield _write(at_s, form, said_now, self.place, self.stack)

    def show(self, signature: Signature, at_s: float) -> tuple[list[list[Line]], Expected]:
        """The signature's records from this moment on, as often as it says, and what should be found."""
        times = self.rng.randint(*signature.times)
        groups: list[list[Line]] = []
        low = high = 0
        starts: list[float] = []
        for _ in range(times):
            drawn = Drawn(self.rng, at_s)
            for record in signature.records:
                moment_s = at_s + record.shift_s
                drawn.at_s = self.place.told(moment_s)
                groups.extend(self._ranks(record, drawn, moment_s, signature.ranks))
            fewest, most = _counts(signature.count, drawn)
            low, high = low + fewest, high + most
            starts.extend(self._starts(signature, self.place.told(at_s)))
            at_s += self.rng.uniform(*signature.every_s)
        return groups, Expected(signature, (low, high), self._first(signature, starts))

    def _first(self, signature: Signature, starts: list[float]) -> tuple[float, ...]:
        """The accepted first moments: those of the first time, and the earliest told, if the clock was set back."""
        if not starts:
            return ()
        first = starts[: 2 if signature.began_ms.startswith("?") else 1]
        return (*first, min(starts)) if self.place.step[1] else tuple(first)

    def _starts(self, signature: Signature, at_s: float) -> tuple[float, ...]:
        first = next(record for record in signature.records if record.shift_s >= 0)
        told = has_time(first.form or self.form, self.place) or any(one.timed for one in self.stack)
        if not told:
            return ()
        began = signature.began_ms
        back_s = float(began.lstrip("?")) / 1000 if began else 0.0
        return (at_s, at_s - back_s) if began.startswith("?") else (at_s - back_s,)

    def _ranks(self, record: Record, drawn: Drawn, at_s: float, ranks: int) -> Iterator[list[Line]]:
        if ranks == 1:
            yield self._record(record, drawn, at_s)
            return
        order = list(range(ranks))
        self.rng.shuffle(order)
        for rank in order:
            yield self._record(record, drawn, at_s, rank)
            at_s += self.rng.random() * 0.02

    def _record(self, record: Record, drawn: Drawn, at_s: float, rank: int = -1) -> list[Line]:
        return _write(at_s, record.form or self.form, _said(record, drawn, rank), self.place, self.stack)


def _counts(count: str, drawn: Drawn) -> tuple[int, int]:
    if count in drawn.kept:
        return int(drawn.kept[count]), int(drawn.kept[count])
    low, _, high = count.partition("-")
    return int(low), int(high or low)


def _said_lines(groups: Iterable[list[Line]]) -> int:
    """Lines as the program printed them: an entry of an exported journal is one, whatever its fields."""
    exported = 0
    lines = 0
    for group in groups:
        lines += len(group)
        exported += sum(not line for _, line in group) if group and group[0][1].startswith("__CURSOR=") else 0
    return exported or lines


def _merge(groups: Iterable[list[Line]]) -> list[Line]:
    """Records in the order of their first lines; a record's lines stay together."""
    ordered = sorted((group for group in groups if group), key=lambda group: group[0][0])
    return [line for group in ordered for line in group]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a file should hold; `outermost` asks for a wrapper."""

    programs: tuple[str, ...]
    lines: int
    signatures: tuple[Signature, ...] = ()
    traps: tuple[Signature, ...] = ()
    outermost: str = ""
    starts: bool = False


def compose(rng: random.Random, wish: Wish, begin_s: float, length_s: float) -> Scene:
    """A scene over `length_s` seconds from `begin_s`; several programs share a file by their prefixes."""
    shown_count = len(wish.signatures) + len(wish.traps)
    span = (begin_s, begin_s + max(length_s, APART_S * (shown_count + 1)))
    stacks = _stacks(rng, wish)
    scene = Scene(wish.programs, tuple(one.name for one in stacks[0]))
    groups: list[list[Line]] = []
    # One clock in twenty is set back once, by less than an hour.
    step = (rng.uniform(*span), rng.uniform(1.0, 3000.0)) if rng.random() < 0.05 else (float("inf"), 0.0)
    parts = [Composer(rng, name, stack, span, step) for name, stack in zip(wish.programs, stacks, strict=True)]
    scene.year = all(any(one.year for one in stack) for stack in stacks)
    for part in parts:
        opening = [one for one in wish.traps if one.at_start and one.program == part.program]
        groups.extend(_opening(part, opening, scene, begin_s - 400.0, with_startup=wish.starts or bool(opening)))
        benign = list(part.chat(wish.lines // len(parts)))
        groups.extend(benign)
        scene.benign_lines += _said_lines(benign)
    places = _moments(rng, span, len(wish.signatures) + sum(not one.at_start for one in wish.traps))
    for signature in wish.signatures:
        part = next(one for one in parts if one.program == signature.program)
        shown, expected = part.show(signature, next(places))
        groups.extend(shown)
        scene.expected.append(expected)
        scene.busy.extend((group[0][0] - 1, group[-1][0] + 1) for group in shown if group)
    for trap in (one for one in wish.traps if not one.at_start):
        part = next(one for one in parts if one.program == trap.program)
        shown, _ = part.show(trap, next(places))
        groups.extend(shown)
        scene.traps.append(trap)
        scene.benign_lines += _said_lines(shown)
    scene.lines = _merge(groups)
    return scene


def _stacks(rng: random.Random, wish: Wish) -> list[tuple[Wrapper, ...]]:
    stack = draw_stack(rng, wish.programs[0] if len(wish.programs) == 1 else "", wish.outermost)
    # Programs in one file come through the same pipe; what stands next to the program may differ.
    return [stack] * len(wish.programs)


def _opening(
    part: Composer, traps: Sequence[Signature], scene: Scene, at_s: float, *, with_startup: bool
) -> Iterator[list[Line]]:
    for trap in traps:
        shown, _ = part.show(trap, at_s)
        yield from shown
        scene.traps.append(trap)
        scene.benign_lines += _said_lines(shown)
        at_s += 30.0
    if with_startup:
        for group in part.startup(at_s + 60.0):
            scene.benign_lines += _said_lines([group])
            yield group


def _moments(rng: random.Random, span: tuple[float, float], count: int) -> Iterator[float]:
    """Moments in random order, far from each other and from the ends."""
    room = (span[1] - span[0]) / (count + 1)
    places = [span[0] + room * (number + 0.5) + rng.random() * room * 0.2 for number in range(count)]
    rng.shuffle(places)
    return iter(places)
