"""How often the judge of a canary is wrong: false rollbacks without a change, and regressions found in time.

Simulated: 50 requests/s with 20 % to the canary, windows of 60 s, lognormal latencies (sigma 0.5), AR(1) noise of the
load (8 % shared by both sides, 3 % of each side's own, coefficient 0.5). A run is 15 windows at most. Where nothing
changed it is watched through all of them, also past a promotion, so that every look may err. Each cell prints its share
with the 95 % bounds (Wilson's interval) and how many runs came to no decision. The last line of stdout is one JSON
object, the worst cell of each kind: `{"aa_false_rollback", "detect_1_5x", "detect_1_25x", "inconclusive_rate",
"no_data_promotions"}`. QUICK=1 makes fewer runs, RUNS=n so many a cell.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.told import explain
from latencydoctor.model.remedy import Decision, Reading
from latencydoctor.remedy.canary import CanaryPolicy, CanaryWindow, judge_canary

RUNS = int(os.environ.get("RUNS") or (200 if os.environ.get("QUICK") else 2000))
SEED = 20261130
RATE_RPS, CANARY_SHARE, WINDOW_S, SIGMA = 50, 0.2, 60, 0.5
SHARED_NOISE, OWN_NOISE, MEMORY_OF_NOISE = 0.08, 0.03, 0.5
P99_OF_MEDIAN = math.exp(2.3263478740408408 * SIGMA)
POLICY = CanaryPolicy()


@dataclass(frozen=True, slots=True)
class Cell:
    """A situation: p99 of both sides without the change, what the change does to the canary, what must come of it."""

    name: str
    p99_ms: float
    times: float = 1.0
    errors: tuple[float, float] = (0.001, 0.001)
    host_bias: float = 0.0
    missing: str = ""
    within: int = 15
    """So many windows count; a rollback after them is too late."""

    @property
    def watched_on(self) -> bool:
        """Whether a run goes on after a promotion, to see a false rollback at any look."""
        return self.times == 1.0 and self.errors[0] == self.errors[1] and not self.missing


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended and after how many windows."""

    decision: Decision | None
    windows: int


def noise(dice: np.random.Generator, scale: float) -> Iterator[float]:
    """AR(1) around zero with this standard deviation."""
    value = dice.normal(0.0, scale)
    while True:
        yield value
        value = MEMORY_OF_NOISE * value + dice.normal(0.0, scale * math.sqrt(1 - MEMORY_OF_NOISE**2))


def windows(cell: Cell, dice: np.random.Generator) -> Iterator[CanaryWindow]:
    """What the metrics would say of one run, window by window."""
    shared, own, others = noise(dice, SHARED_NOISE), noise(dice, OWN_NOISE), noise(dice, OWN_NOISE)
    bias = dice.normal(0.0, cell.host_bias) if cell.host_bias else 0.0
    median_ms = cell.p99_ms / P99_OF_MEDIAN
    while True:
        both = next(shared)
        canary = median_ms * cell.times * math.exp(both + next(own) + bias)
        baseline = median_ms * math.exp(both + next(others))
        yield CanaryWindow(
            side(dice, canary, RATE_RPS * CANARY_SHARE, cell.errors[1], cell.missing in ("canary", "both")),
            side(dice, baseline, RATE_RPS * (1 - CANARY_SHARE), cell.errors[0], cell.missing in ("baseline", "both")),
        )


def side(dice: np.random.Generator, median_ms: float, rate_rps: float, error_ratio: float, silent: bool) -> Reading:
    """One side's window: the p99 of its requests and the share that failed."""
    if silent:
        return Reading(None, None, None, None, "no samples")
    requests = int(dice.poisson(rate_rps * WINDOW_S))
    latencies_ms = median_ms * np.exp(dice.normal(0.0, SIGMA, requests))
    return Reading(
        float(np.quantile(latencies_ms, 0.99)), dice.binomial(requests, error_ratio) / requests, None, requests
    )


def run(cell: Cell, dice: np.random.Generator) -> Outcome:
    """One canary, judged after each window; what counts is its rollback, else its first decision."""
    seen: list[CanaryWindow] = []
    first: Outcome | None = None
    for window in itertools.islice(windows(cell, dice), POLICY.max_windows):
        seen.append(window)
        decision = judge_canary(seen, POLICY).decision
        if decision is Decision.ROLL_BACK or (decision is not None and not cell.watched_on):
            return Outcome(decision, len(seen))
        if decision is not None and first is None:
            first = Outcome(decision, len(seen))
    return first or Outcome(None, len(seen))


def wilson(share: float, runs: int) -> tuple[float, float]:
    """The 95 % bounds of a share."""
    z = 1.96
    middle = (share + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs)) / (1 + z * z / runs)
    return max(0.0, middle - half), min(1.0, middle + half)


UNCHANGED = (
    Cell("no change at 0.50 of the limit", 500),
    Cell("no change at 0.80 of the limit", 800),
    Cell("no change at 0.95 of the limit", 950),
    Cell("no change at 0.50, hosts differ by 3 %", 500, host_bias=0.03),
    Cell("no change at 0.80, hosts differ by 3 %", 800, host_bias=0.03),
    Cell("no change at 0.95, hosts differ by 3 %", 950, host_bias=0.03),
    Cell("no change at 0.50, errors 0.3 % on both", 500, errors=(0.003, 0.003)),
)
HALF_MORE = (
    Cell("1.5 times slower from 0.50", 500, 1.5, within=5),
    Cell("1.5 times slower from 0.80", 800, 1.5, within=5),
)
QUARTER_MORE = (
    Cell("1.25 times slower from 0.50", 500, 1.25, within=10),
    Cell("1.25 times slower from 0.80", 800, 1.25, within=10),
)
ERRORS = (Cell("errors 0.1 % to 1 %", 500, errors=(0.001, 0.01), within=3),)
SILENT = tuple(Cell(f"no data: {side}", 500, missing=side) for side in ("canary", "baseline", "both"))


def measure(cell: Cell, wanted: Decision) -> tuple[float, float]:
    """The share of runs that came to `wanted` in time, and the share without a decision; prints the cell."""
    dice = np.random.default_rng([SEED, *cell.name.encode()])
    ended = [run(cell, dice) for _ in range(RUNS)]
    share = sum(one.decision is wanted and one.windows <= cell.within for one in ended) / RUNS
    open_ratio = sum(one.decision in (None, Decision.HOLD) for one in ended) / RUNS
    low, high = wilson(share, RUNS)
    middle = sorted(one.windows for one in ended)[RUNS // 2]
    word = {Decision.ROLL_BACK: "rolled back", Decision.KEEP: "promoted"}.get(wanted, wanted.value)
    print(
        f"{cell.name:44} {word} {share:7.2%} ({low:.2%} to {high:.2%})  "
        f"no decision {open_ratio:6.1%}  median {middle} windows",
        flush=True,
    )
    return share, open_ratio


def main() -> None:
    """Every cell, then the last line."""
    print(f"simulated: {RUNS} runs a cell, {RATE_RPS} requests/s, {CANARY_SHARE:.0%} canary, windows of {WINDOW_S} s")
    false, undecided = zip(*(measure(cell, Decision.ROLL_BACK) for cell in UNCHANGED), strict=True)
    half = [measure(cell, Decision.ROLL_BACK)[0] for cell in HALF_MORE]
    quarter = [measure(cell, Decision.ROLL_BACK)[0] for cell in QUARTER_MORE]
    for cell in ERRORS:
        measure(cell, Decision.ROLL_BACK)
    silent = [measure(cell, Decision.KEEP)[0] for cell in SILENT]
    print(
        json.dumps(
            {
                "aa_false_rollback": max(false),
                "detect_1_5x": min(half),
                "detect_1_25x": min(quarter),
                "inconclusive_rate": max(undecided),
                "no_data_promotions": round(sum(silent) * RUNS),
            }
        )
    )


if __name__ == "__main__":
    explain(__doc__)
    main()
