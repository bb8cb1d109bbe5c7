"""The samples file: one fixed-size record a request, appended by the child, read while it grows by the parent.

Beside samples it holds the moments when phases began, and *marks*: a mark at T says that every request intended before
T is in the file. So a reader knows when a window is complete without knowing what is in flight.
"""

from __future__ import annotations

import math
import os
import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from latencydoctor.model.load import ClassStats, WindowStats

_RECORD = struct.Struct("<dffHBB")


class _Kind(IntEnum):
    SAMPLE = 0
    HIT = 1
    MARK = 2
    PHASE = 3


_VIP, _SHED = 4, 8
"""Bits beside the kind of a sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One request: when it should have been sent (seconds since the epoch), how long its answer took from then, and how
    late it was sent. `status` is HTTP's, 0 when there was no answer in time or the connection broke. `shed`: it was
    turned away and told when to come back.
    """

    intended_s: float
    latency_ms: float
    late_ms: float
    status: int
    cached: bool
    phase: int
    vip: bool = False
    shed: bool = False

    @property
    def failed(self) -> bool:
        """No good answer."""
        return not 200 <= self.status < 300


class SampleWriter:
    """Appends records; each is with the operating system when the call returns, so a killed child loses none."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)

    def sample(self, sample: Sample) -> None:
        """One finished request."""
        kind = (_Kind.HIT if sample.cached else _Kind.SAMPLE) + _VIP * sample.vip + _SHED * sample.shed
        self._append(sample.intended_s, sample.latency_ms, sample.late_ms, sample.status, kind, sample.phase)

    def mark(self, before_s: float) -> None:
        """Every request intended before this moment is in the file; infinity once no more will come."""
        self._append(before_s, 0.0, 0.0, 0, _Kind.MARK, 0)

    def phase(self, number: int, start_s: float) -> None:
        """A phase began."""
        self._append(start_s, 0.0, 0.0, 0, _Kind.PHASE, number)

    def close(self) -> None:
        """Nothing more will be written."""
        os.close(self._descriptor)

    def _append(self, at_s: float, latency_ms: float, late_ms: float, status: int, kind: int, phase: int) -> None:
        os.write(self._descriptor, _RECORD.pack(at_s, latency_ms, late_ms, status, kind, phase))


class SampleLog:
    """What has been written so far. `read` takes in what is new; a record that is only half there waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset_bytes = 0
        self._seconds: dict[int, list[Sample]] = defaultdict(list)
        self.complete_before_s = -math.inf
        self.phase_starts: list[tuple[int, float]] = []

    def read(self) -> None:
        """Take in the records written since the last call; a file that is not there yet holds none."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset_bytes)
                new = file.read()
        except FileNotFoundError:
            return
        whole_bytes = len(new) - len(new) % _RECORD.size
        self._offset_bytes += whole_bytes
        for at_s, latency_ms, late_ms, status, kind, phase in _RECORD.iter_unpack(new[:whole_bytes]):
            if kind == _Kind.MARK:
                self.complete_before_s = max(self.complete_before_s, at_s)
            elif kind == _Kind.PHASE:
                self.phase_starts.append((phase, at_s))
            else:
                flags = (bool(kind & _VIP), bool(kind & _SHED))
                sample = Sample(at_s, latency_ms, late_ms, status, bool(kind & _Kind.HIT), phase, *flags)
                self._seconds[int(at_s)].append(sample)

    def between(self, start_s: float, end_s: float) -> list[Sample]:
        """The samples intended after `start_s` and not after `end_s`."""
        return [
            sample
            for second in range(int(start_s), int(end_s) + 1)
            for sample in self._seconds.get(second, ())
            if start_s < sample.intended_s <= end_s
        ]

    def window(self, start_s: float, end_s: float) -> WindowStats:
        """The statistics of a window as far as it has been read."""
        return window_stats(self.between(start_s, end_s), start_s, end_s, settled=end_s < self.complete_before_s)


def percentile(ordered: Sequence[float], ratio: float) -> float | None:
    """Nearest rank: the smallest value that at least `ratio` of all do not exceed. `ordered` rises; None when empty."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(round(ratio * len(ordered), 6)) - 1)]


def window_stats(samples: Sequence[Sample], start_s: float, end_s: float, *, settled: bool) -> WindowStats:
    """The figures of the requests intended in a window; see `WindowStats` for what each means."""
    latencies = sorted(sample.latency_ms for sample in samples)
    late = sorted(sample.late_ms for sample in samples)
    failed = sum(sample.failed for sample in samples)
    answered = len(samples) - failed
    hits = sum(sample.cached and not sample.failed for sample in samples)
    length_s = max(end_s - start_s, 1e-9)
    vip = [sample for sample in samples if sample.vip]
    return WindowStats(
        start_s=start_s,
        end_s=end_s,
        settled=settled,
        offered_count=len(samples),
        answered_count=answered,
        failed_count=failed,
        offered_rps=len(samples) / length_s,
        answered_rps=answered / length_s,
        p50_ms=percentile(latencies, 0.50),
        p95_ms=percentile(latencies, 0.95),
        p99_ms=percentile(latencies, 0.99),
        error_ratio=failed / len(samples) if samples else None,
        hit_ratio=hits / answered if answered else None,
        late_p99_ms=percentile(late, 0.99),
        late_max_ms=late[-1] if late else None,
        vip=_class_stats(vip) if vip else None,
        standard=_class_stats([sample for sample in samples if not sample.vip]) if vip else None,
    )


def _class_stats(samples: Sequence[Sample]) -> ClassStats:
    kept = sorted(sample.latency_ms for sample in samples if not sample.shed)
    shed = len(samples) - len(kept)
    failed = sum(sample.failed and not sample.shed for sample in samples)
    return ClassStats(
        offered_count=len(samples),
        answered_count=len(kept) - failed,
        shed_count=shed,
        failed_count=failed,
        p50_ms=percentile(kept, 0.50),
        p99_ms=percentile(kept, 0.99),
    )
