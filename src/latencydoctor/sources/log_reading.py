"""One pass over log files: what their bytes say goes to a reader, what could not be read becomes a gap."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from latencydoctor.evidence.logs.blocks import Seam
from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.model.evidence import Gap, GapReason, QueryRecord, Window
from latencydoctor.model.readings import Readings
from latencydoctor.sources.log_targets import Absent
from latencydoctor.sources.log_walk import Closed, Opened, Step, Turned
from latencydoctor.sources.scan_ahead import ScanAhead

SOURCE = "logs"
EMPTY = "empty"
"""The outcome recorded for a file that was read and held nothing."""

OnBytes = Callable[[int], None]
"""Is told how many more bytes have been read."""


def say_nothing(_count: int) -> None:
    """For whoever shows no progress."""


@dataclass(slots=True)
class Reading:
    """One pass over files. `place` is what was turned to last, `whole` the files read to their end.

    `ended` are the files of the stream that is being read, and how each ended.
    """

    reader: LogReader
    window: Window
    ahead: ScanAhead
    on_bytes: OnBytes = say_nothing
    place: str = ""
    whole: int = 0
    all_bytes: int = 0
    read_bytes: int = 0
    closed: Closed | None = None
    ended: list[tuple[str, str]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    queries: list[QueryRecord] = field(default_factory=list)

    def follow(self, steps: Iterable[Step]) -> None:
        """Take every step."""
        coming = _Coming(steps)
        for step in coming:
            if isinstance(step, Turned):
                self._turn_to(step.place)
            elif isinstance(step, Absent):
                self.missing(step)
            elif isinstance(step, Opened):
                self._add(step, coming)

    def missing(self, absent: Absent) -> None:
        """Say that something could not be read."""
        detail = f"{absent.place}: {absent.detail}"
        self.gaps.append(Gap(SOURCE, absent.reason, detail, "a readable log file there"))
        self.queries.append(QueryRecord(SOURCE, absent.place, absent.detail, 0))

    def _add(self, file: Opened, steps: _Coming) -> None:
        """Read a file, and those of its set that go on with it, up to the step that closes the last of them."""
        self._turn_to(file.place)
        self.ended.clear()
        blocks = self.ahead.blocks(self._chunks(steps))
        events = self.reader.read(file.place, blocks, self._reference_s(file))
        if self.closed is None:
            self.ended.append((self.place, f"{GapReason.DEADLINE.value} after {self.read_bytes} bytes"))
        self.queries += [QueryRecord(SOURCE, place, outcome, events.get(place, 0)) for place, outcome in self.ended]

    def _reference_s(self, file: Opened) -> float:
        # A window in the past dates stamps better than the time at which somebody copied the file.
        return min(file.modified_s, self.window.end_s)

    def _turn_to(self, place: str) -> None:
        self.place, self.read_bytes, self.closed = place, 0, None

    def _chunks(self, steps: _Coming) -> Iterator[bytes | Seam]:
        for step in steps:
            if isinstance(step, Closed):
                self._close(step)
                # What was broken off goes on nowhere: nobody knows what is missing between.
                following = None if step.broken else steps.continuation()
                if following is None:
                    return
                self._turn_to(following.place)
                yield Seam(following.place, self._reference_s(following))
            elif isinstance(step, bytes):
                self.read_bytes += len(step)
                self.all_bytes += len(step)
                self.on_bytes(len(step))
                yield step

    def _close(self, closed: Closed) -> None:
        self.closed = closed
        self.whole += 1
        self.ended.append((self.place, closed.broken or ("ok" if self.read_bytes else EMPTY)))
        if closed.broken:
            detail = f"{self.place}: {closed.broken}"
            self.gaps.append(Gap(SOURCE, GapReason.BAD_ANSWER, detail, "the rest of the file"))

    def readings(self) -> Readings:
        """What was found and what was not."""
        levels = tuple(self.ahead.level_counts.histogram().items()) if self.ahead.counts_levels else ()
        return Readings(
            log_events=self.reader.events(),
            gaps=tuple(self.gaps),
            queries=tuple(self.queries),
            levels=levels,
            quiet=self.reader.quiet(),
        )

    def cut_short(self) -> None:
        """The time was up: say how far it went."""
        files = f"{self.whole} file{'' if self.whole == 1 else 's'} and {size_of(self.all_bytes)}"
        begun = f"{self.place} to {size_of(self.read_bytes)}" if self.read_bytes else f"nothing of {self.place} yet"
        detail = f"the time was up after {files}: {begun}, and nothing that comes after it"
        self.gaps.append(Gap(SOURCE, GapReason.DEADLINE, detail, "a longer --deadline, or fewer log files"))


class _Coming:
    """Steps to come, of which one may look whether the next file goes on with the last."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = iter(steps)
        self._put_back: deque[Step] = deque()

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        return self._put_back.popleft() if self._put_back else next(self._steps)

    def continuation(self) -> Opened | None:
        """Take the steps up to the opening of a file that continues; None, and nothing taken, where none comes."""
        seen: list[Step] = []
        for step in self:
            if isinstance(step, Opened) and step.continues:
                return step
            seen.append(step)
            if not isinstance(step, Turned):
                break
        self._put_back.extendleft(reversed(seen))
        return None


def size_of(count: int) -> str:
    """A number of bytes in words."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} bytes"
