"""When each request is due: random arrivals at exactly the phases' rates, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from latencydoctor.errors import UsageError
from latencydoctor.model.load import LoadPlan, Mix, Phase

MAX_RATE_RPS = 1000.0
"""One generating process was late by 4 ms at p99 at 400/s; above this rate its own delays would show in the figures."""


@dataclass(frozen=True, slots=True)
class Due:
    """What happens next: at `at_s` phase number `phase` begins (`opens`), or one of its requests is to be sent."""

    at_s: float
    phase: int
    opens: bool


def arrival_offsets(phase: Phase, seed: int, number: int) -> Iterator[float]:
    """Seconds from the phase's start at which its requests are due; endless when the phase is.

    Within each second the requests come as independent people's do, uniformly at random, but every second holds the
    offered number (fractions are carried over): plain Poisson counts would let two windows of 20 s at 355/s differ by
    over 2 % in one run of four, and a latency compared between them would be compared at different rates. The
    phase's number takes part in the seed: a phase's arrivals do not depend on how long the one before it lasted.
    """
    draw = random.Random(f"{seed}:{number}")
    second, sent = 0, 0
    while True:
        due_by_then = int(phase.rate_rps * (second + 1) + 1e-9)
        for offset_s in sorted(second + draw.random() for _ in range(due_by_then - sent)):
            if phase.seconds is not None and offset_s > phase.seconds:
                return
            yield offset_s
        second, sent = second + 1, due_by_then
        if phase.seconds is not None and second >= phase.seconds:
            return


class Timetable:
    """The phases in order as one stream of `Due`; `switch` jumps to a phase at once. Times are the caller's clock."""

    def __init__(self, phases: Sequence[Phase], seed: int, start_s: float) -> None:
        self._phases = tuple(phases)
        self._seed = seed
        self._switch: tuple[int, float] | None = None
        self.due: Due | None
        self._enter(0, start_s)

    def _enter(self, number: int, start_s: float) -> None:
        self._number = number
        self._start_s = start_s
        self._offsets = arrival_offsets(self._phases[number], self._seed, number)
        self.due = Due(start_s, number, opens=True)

    def take(self) -> None:
        """`due` has been dealt with: move on to what follows, None at the end of the last phase."""
        offset_s = next(self._offsets, None)
        seconds = self._phases[self._number].seconds
        if offset_s is not None:
            self.due = Due(self._start_s + offset_s, self._number, opens=False)
        elif seconds is not None and self._number + 1 < len(self._phases):
            self._enter(self._number + 1, self._start_s + seconds)
        else:
            self.due = None
        if self._switch is not None:
            self.switch(*self._switch)

    def switch(self, number: int, at_s: float) -> None:
        """Begin phase `number` at that moment; the phases after it follow in order.

        What is due later is dropped. What is due earlier stays: a sender that is behind still owes it.
        """
        if self.due is None or self.due.at_s > at_s:
            self._switch = None
            self._enter(number, at_s)
        else:
            self._switch = (number, at_s)


def check(plan: LoadPlan) -> None:
    """UsageError with every mistake of a plan at once."""
    mistakes = [*_phase_mistakes(plan.phases), *_mix_mistakes(plan.mix)]
    address = urlsplit(plan.url)
    if address.scheme not in ("http", "https") or not address.hostname:
        mistakes.append(f"'{plan.url}' is not an http address")
    if not any(question.strip() for question in plan.questions):
        mistakes.append("there are no questions to ask")
    if plan.deadline_ms <= 0:
        mistakes.append("the deadline must be above 0 ms")
    if plan.bound_s < 1:
        mistakes.append("the run must be bounded by at least one second")
    if mistakes:
        raise UsageError("the load cannot be offered: " + "; ".join(mistakes), hint="Correct the plan of the load.")


def _phase_mistakes(phases: Sequence[Phase]) -> Iterator[str]:
    if not phases:
        yield "it has no phases"
    names = [phase.name for phase in phases]
    yield from (f"two phases are called '{name}'" for name in sorted({n for n in names if names.count(n) > 1}))
    for phase in phases:
        if not 0 < phase.rate_rps <= MAX_RATE_RPS:
            yield f"phase '{phase.name}': the rate must be above 0 and at most {MAX_RATE_RPS:g} requests/s"
        if phase.seconds is not None and phase.seconds <= 0:
            yield f"phase '{phase.name}': it must last longer than 0 s"


def _mix_mistakes(mix: Mix) -> Iterator[str]:
    for name, ratio in (("hot", mix.hot_share_ratio), ("VIP", mix.vip_share_ratio)):
        if not 0 <= ratio <= 1:
            yield f"the {name} share must lie between 0 and 1"
    if mix.hot_count < 1 or mix.session_count < 1:
        yield "there must be at least one popular question and one session"
    if mix.zipf_exponent < 0:
        yield "the popularity exponent must not be negative"
