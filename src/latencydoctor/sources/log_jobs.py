"""Reads several log files in as many processes, with the same result as one after the other.

Each file is judged by itself and what it gave is merged in the order of the files. A child is forked, so that the
compiled rules are shared and nothing has to start; it ends with its parent.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from latencydoctor.evidence.logs.levels import LevelCounts
from latencydoctor.model.evidence import Gap, QueryRecord

if TYPE_CHECKING:
    from latencydoctor.evidence.logs.counting import Counts

MOST = 4
"""More processes would not get their share of the memory that all may take together."""

WORTH_BYTES = 8 * 1024 * 1024
"""Below this much the second process costs more than it gains."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one stream gave: its events, what could not be read of it, what was asked. `read_bytes` may come before."""

    index: int
    read_bytes: int
    counts: Counts | None = None
    gaps: tuple[Gap, ...] = ()
    queries: tuple[QueryRecord, ...] = ()
    levels: LevelCounts | None = None


ReadOne = Callable[[int, Callable[[int], None]], Part]
"""Reads the stream of that index in a child, telling how many bytes it has read."""


def shares(sizes_bytes: Sequence[int], processes: int) -> list[list[int]]:
    """Which streams each process reads, in order: the largest first to whoever has least to do."""
    loads = [0] * processes
    found: list[list[int]] = [[] for _ in range(processes)]
    for index in sorted(range(len(sizes_bytes)), key=lambda index: (-sizes_bytes[index], index)):
        least = loads.index(min(loads))
        # A file of no known size costs an open all the same.
        loads[least] += sizes_bytes[index] + 65_536
        found[least].append(index)
    return [sorted(share) for share in found if share]


def read_all(plan: Sequence[Sequence[int]], read_one: ReadOne) -> Iterator[Part]:
    """Parts as they come, in no order: some tell of bytes only, one a stream has its counts.

    Of a stream whose process ended before its time there is none.
    """
    children: list[_Child] = []
    try:
        for share in plan:
            children.append(_Child(share, read_one, [child.pipe for child in children]))
        open_ones = {child.pipe for child in children}
        while open_ones:
            for pipe in wait(open_ones):
                assert isinstance(pipe, Connection)
                try:
                    yield pipe.recv()
                except (EOFError, OSError):
                    open_ones.discard(pipe)
    finally:
        for child in children:
            child.end()


class _Child:
    def __init__(self, share: Sequence[int], read_one: ReadOne, others: Sequence[Connection]) -> None:
        fork = get_context("fork")
        self.pipe, theirs = fork.Pipe(duplex=False)
        # Of the other ends nothing stays open in a child, so that it notices when its parent is gone.
        inherited = [*others, self.pipe]
        self._process = fork.Process(target=_work, args=(share, read_one, theirs, inherited), daemon=True)
        self._process.start()
        theirs.close()

    def end(self) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.join()


def _work(share: Sequence[int], read_one: ReadOne, pipe: Connection, inherited: Sequence[Connection]) -> None:
    # An interrupt of the terminal is the parent's to answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()
    try:
        for index in share:
            pipe.send(read_one(index, _teller(pipe, index)))
    except BrokenPipeError:
        return


def _teller(pipe: Connection, index: int) -> Callable[[int], None]:
    def tell(count: int) -> None:
        pipe.send(Part(index, count))

    return tell
