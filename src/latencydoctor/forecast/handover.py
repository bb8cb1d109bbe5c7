"""The time between executions that no statistic tells: read off how long requests wait.

A server's statistics say what an execution takes, not what passes until the next one begins: results are handed out,
the next batch is gathered, and on a busy host both wait for a processor. Queueing magnifies it: the mean wait tells.
"""

from __future__ import annotations

from dataclasses import replace

from latencydoctor.forecast.queue import Scenario, simulate

LEAST_LOAD, MOST_LOAD = 0.3, 0.9
"""Below, hardly anybody waits for an execution's end; above, a stretch's mean wait is mostly chance."""

MOST_GAP_SHARE = 0.5
"""A gap is part of an execution's time, not most of it; more waiting than that has another reason."""

REQUESTS = 20_000
STEPS = 7


def with_handover(scenario: Scenario, wait_mean_ms: float | None) -> Scenario:
    """The scenario with the gap that makes its requests wait as long as they were measured to.

    As it is where the wait is not known, or where load or wait say nothing about a gap.
    """
    if wait_mean_ms is None or not LEAST_LOAD <= scenario.load_ratio <= MOST_LOAD:
        return scenario
    low_ms, high_ms = 0.0, MOST_GAP_SHARE * scenario.curve.batch_ms(1)
    if _wait_ms(scenario, low_ms) >= wait_mean_ms:
        return scenario
    for _ in range(STEPS):
        middle_ms = (low_ms + high_ms) / 2
        if _wait_ms(scenario, middle_ms) < wait_mean_ms:
            low_ms = middle_ms
        else:
            high_ms = middle_ms
    return _with_gap(scenario, (low_ms + high_ms) / 2)


def _wait_ms(scenario: Scenario, gap_ms: float) -> float:
    found = simulate(_with_gap(scenario, gap_ms), REQUESTS)
    return float("inf") if found is None else found.wait_mean_ms


def _with_gap(scenario: Scenario, gap_ms: float) -> Scenario:
    return replace(scenario, curve=replace(scenario.curve, gap_ms=gap_ms))
