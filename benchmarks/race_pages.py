"""A run of the fault matrix as it would be read live: ending now, and as the text of a metrics page at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.faults import Run

OWN_JOB = 'job="vllm"'
FRESH_S = 31.0
"""A server that two scrapes missed had no page to read."""


def ending(run: Run, end_s: float) -> Run:
    """The same run, with its end at another time, in seconds since 1970."""
    return replace(run, start_s=run.start_s + end_s - run.end_s, end_s=end_s)


def page(run: Run, before_end_s: float) -> str:
    """What the servers' own pages said some seconds before the end, all replicas in one text.

    Labels of the scrape stay, they are what tells the replicas apart.
    """
    return "".join(_lines(run, run.end_s - run.start_s - before_end_s))


def _lines(run: Run, at_s: float) -> Iterator[str]:
    for series in run.series:
        if OWN_JOB not in series.labels or series.name == "up":
            continue
        last = int(np.searchsorted(series.times, at_s, side="right")) - 1
        if last >= 0 and at_s - float(series.times[last]) <= FRESH_S:
            yield f"{series.name}{{{series.labels}}} {float(series.values[last])!r}\n"
