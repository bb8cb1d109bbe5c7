"""The simulated accelerator: real answers, simulated time.

An execution takes the profile's host overhead and then its device time; the real computation happens meanwhile. Where
the computation takes longer than the profile allows, the execution is late and counted as an overrun: figures of a run
with overruns are not the profile's.
"""

from __future__ import annotations

import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from latencydoctor.errors import KnownError
from latencydoctor.stack.profile import MARGIN_RATIO, Profile

Answer = TypeVar("Answer")

TOLERANCE_S = 0.002
"""An execution this much over its time is still on time: the resolution of sleeping on a busy machine."""


HANDOVER_S = 0.005
"""What passing results out and the next batch in takes Triton (2 to 4 ms measured on a busy two-core machine).

A real device has the next batch waiting by then; counted on top of the profile's time it would cost a tenth of a
saturated device's throughput, and by how much would depend on the machine.
"""


class DeviceMemoryError(Exception):
    """The batch does not fit into the simulated device's memory."""


@dataclass(frozen=True, slots=True)
class Execution(Generic[Answer]):
    """What one execution gave, and whether it took longer than the profile's time for it."""

    answer: Answer
    overrun: bool


class SimulatedDevice:
    """One device, shared through a lock file by all instances of the model: executions take turns.

    `profile` follows `clock_file`: while there is a number in it, the device runs at that many MHz. So a running device
    can be slowed down as heat slows a real one.
    """

    def __init__(
        self,
        profile: Profile,
        lock: Path,
        clock_file: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.profile = profile
        self.largest_batch = 0
        self._unthrottled = profile
        self._clock_file = clock_file
        self._free_at = -math.inf
        self._lock = lock
        self._clock = clock
        self._sleep = sleep

    @property
    def memory_bytes(self) -> int:
        """Memory in use: the workspace of the largest batch so far stays allocated."""
        return self.profile.memory_bytes(self.largest_batch)

    def execute(self, items: int, compute: Callable[[], Answer]) -> Execution[Answer]:
        """Runs `compute` for a batch of `items` and returns when the profile's time for it is over.

        Raises DeviceMemoryError without computing when the batch does not fit.
        """
        self._follow_the_clock()
        needed = self.profile.memory_bytes(max(items, self.largest_batch))
        if needed > self.profile.memory_total_bytes:
            raise DeviceMemoryError(
                f"simulated device out of memory: a batch of {items} needs {needed} bytes "
                f"of {self.profile.memory_total_bytes}"
            )
        self.largest_batch = max(items, self.largest_batch)
        with self._turn():
            end = self._start() + self.profile.execution_ms(items) / 1000
            answer = compute()
            left = end - self._clock()
            if left > 0:
                self._sleep(left)
            self._free_at = end if left > -TOLERANCE_S else self._clock()
        return Execution(answer, overrun=left < -TOLERANCE_S)

    def _follow_the_clock(self) -> None:
        """Looks before each execution, which costs 10 us of the many ms that one takes."""
        clock_mhz = _told_clock(self._clock_file) or self._unthrottled.clock_mhz
        if clock_mhz != self.profile.clock_mhz:
            self.profile = replace(self._unthrottled, clock_mhz=min(clock_mhz, self._unthrottled.max_clock_mhz))

    def _start(self) -> float:
        """When this execution starts for the device: at once after the one before when they follow closely."""
        now = self._clock()
        return self._free_at if 0 <= now - self._free_at < HANDOVER_S else now

    @contextmanager
    def _turn(self) -> Iterator[None]:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _told_clock(path: Path | None) -> float:
    """The MHz that stand in the file; 0 where there is none, or nothing that a clock could be."""
    try:
        mhz = float(path.read_text(encoding="ascii")) if path is not None else 0.0
    except (OSError, ValueError):
        return 0.0
    return mhz if 1 <= mhz < math.inf else 0.0


def refuse_if_too_slow(profile: Profile, batch_sizes: tuple[int, ...], measure_s: Callable[[int], float]) -> None:
    """KnownError when the machine computes some batch slower than the profile's time allows.

    `measure_s` gives the seconds that computing a batch of that size takes.
    """
    for items in batch_sizes:
        took_ms, allowed_ms = measure_s(items) * 1000, profile.execution_ms(items) / MARGIN_RATIO
        if took_ms > allowed_ms:
            raise KnownError(
                f"sim:{profile.name} is too fast for this machine: "
                f"computing a batch of {items} takes {took_ms:.1f} ms, the profile allows {allowed_ms:.1f} ms",
                hint="Choose a slower profile or a smaller max_batch_size.",
            )
