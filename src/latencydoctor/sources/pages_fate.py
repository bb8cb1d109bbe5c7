"""How the readings of each metrics page went, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from latencydoctor.errors import SourceError
from latencydoctor.evidence.promql import PageError
from latencydoctor.model.evidence import Gap, GapReason
from latencydoctor.sources.pages_http import Place, failure_of
from latencydoctor.sources.transport import FailureKind, TransportError

GIVE_UP_AFTER = 2
"""When there was no one to answer so many times, or no metrics page, waiting longer is of no use."""

MOST_TOLD = 3
"""Pages that one line speaks of; of more it gives the number."""

_NOBODY_THERE = frozenset({FailureKind.REFUSED, FailureKind.NO_ROUTE, FailureKind.NAME})

Failure = TransportError | PageError


@dataclass(slots=True)
class Fate:
    """How one page's readings went so far."""

    place: Place
    good: int = 0
    failures: list[Failure] = field(default_factory=list)
    repeated: int = 0
    off_clock: int = 0

    @property
    def is_hopeless(self) -> bool:
        """Nobody was ever there. A page that was read once, or a server that is merely slow, may come back."""
        nobody = all(isinstance(one, TransportError) and one.kind in _NOBODY_THERE for one in self.failures)
        return not self.good and len(self.failures) >= GIVE_UP_AFTER and nobody

    def failed(self, failure: Failure) -> None:
        """Note a reading that gave nothing; `SourceError` for what the user must correct, such as a refused password.

        Anything else may pass by itself, also one broken page, and so may everything once the page has been read.
        """
        self.failures.append(failure)
        if self.good:
            return
        if isinstance(failure, PageError):
            if len(self.failures) < GIVE_UP_AFTER:
                return
            hint = "Check the URL: it must be a metrics page in Prometheus's text format."
            raise SourceError(f"the page of {self.place.instance} cannot be used: {failure}", hint=hint)
        if (wrong := failure_of(self.place, failure)) is not None:
            raise wrong

    def story(self) -> str:
        """How often it was read, in words."""
        if not self.failures:
            return f"{self.place.instance} was read {self.good} times"
        readings = self.good + len(self.failures)
        return f"{len(self.failures)} of {readings} readings of {self.place.instance} failed: {self.failures[-1]}"


def stories(fates: Sequence[Fate]) -> str:
    """Of several pages, the first few in words."""
    more = f"; and {len(fates) - MOST_TOLD} more pages" if len(fates) > MOST_TOLD else ""
    return "; ".join(fate.story() for fate in fates[:MOST_TOLD]) + more


def gaps_of(fates: Sequence[Fate]) -> Iterator[Gap]:
    """What the pages did not give: readings that failed, samples that cannot be trusted."""
    failed = [fate for fate in fates if fate.failures]
    if failed:
        yield Gap("pages", _reason(failed[0].failures[-1]), stories(failed), "pages that can be read every time")
    for fate in fates:
        name = f"page {fate.place.instance}"
        if fate.repeated:
            detail = f"{fate.repeated} samples stand on it twice; the first of each was taken"
            yield Gap(f"{name} duplicates", GapReason.BAD_ANSWER, detail, "a page with each series once")
        if fate.off_clock:
            detail = f"{fate.off_clock} samples carry a time that is a minute or more off"
            yield Gap(f"{name} clock", GapReason.BAD_ANSWER, detail, "clocks that agree (NTP)")


def _reason(failure: Failure) -> GapReason:
    if isinstance(failure, PageError):
        return GapReason.BAD_ANSWER
    return GapReason.DEADLINE if failure.kind is FailureKind.DEADLINE else GapReason.UNREACHABLE
