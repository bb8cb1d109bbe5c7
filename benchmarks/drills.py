"""How often the live drills are diagnosed right: each fault is really done to the bundled stack, several times.

A drill brings up a stack of its own, does the fault when its crowd arrives, waits for Prometheus' alert, and diagnoses
through the public surfaces. Here each is run in its short form, and only the cause that it names is counted: right when
it is one of those the scenario accepts. A drill that broke down (the machine was too busy for it) is run once more, and
then counted as broken. Target: at least 9 of 10 right for each fault.

RUNS=n runs each fault n times, FAULTS=a,b only some; QUICK=1 runs the shortest one once; KEEP=DIR keeps what each
diagnosis read, for `diagnose --bundle`. The last line of stdout is one JSON object:
`{"runs", "right", "wrong", "cannot_tell"}`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.told import explain
from latencydoctor.app.scenarios import FLASH_CROWD, find
from latencydoctor.model.drill import Scenario

FIRST_TWO = ("batching", "none")
"""Rehearsed by `make demo`."""

SHORTEST = "throttled"
RUNS = 3
"""So many of each fault fit into 45 minutes on two cores."""

GIVE_UP_S = 300.0
TARGET_RATIO = 0.9


@dataclass(frozen=True, slots=True)
class Run:
    """One drill: the outcome is right, wrong, cannot tell or broken; `told` is the cause, or why there is none."""

    fault: str
    outcome: str
    told: str
    took_s: float


def judge(scenario: Scenario, cause: str | None) -> str:
    """What a diagnosis is worth in this scenario."""
    if cause is None:
        return "cannot tell"
    return "right" if cause in scenario.accepted_causes else "wrong"


def drill(scenario: Scenario, bundle: Path | None = None) -> Run:
    """Run it once, in a process of its own as a user would; `bundle` is where to keep what its diagnosis read."""
    command = [sys.executable, "-m", "latencydoctor", "drill", "flash-crowd", "--fault", scenario.fault, "--quick"]
    command += ["--save", str(bundle)] if bundle else []
    # Where there is a fix, the drill goes to its verified effect, back, and there again.
    command += ["--prove-rollback"] if scenario.expected_fix else []
    started_s = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP_S, check=False)
        lines, errors = done.stdout.splitlines(), done.stderr.splitlines()
    except subprocess.TimeoutExpired:
        lines, errors = [], [f"no end after {GIVE_UP_S:g} s"]
    return read(scenario, lines, errors, time.monotonic() - started_s)


def read(scenario: Scenario, lines: Sequence[str], errors: Sequence[str], took_s: float) -> Run:
    """What a drill's output says; without the last line that every finished drill prints it broke down."""
    try:
        cause = json.loads(lines[-1])["cause"]
    except (IndexError, ValueError, KeyError, TypeError):
        return Run(scenario.fault, "broken", errors[-1] if errors else "it said nothing", took_s)
    misses = [line.removeprefix("NOT AS DESIGNED: ") for line in lines if line.startswith("NOT AS DESIGNED: ")]
    told = f"{cause or 'no cause'}" + (f" ({'; '.join(misses)})" if misses else "")
    return Run(scenario.fault, judge(scenario, cause), told, took_s)


def drill_again_if_broken(scenario: Scenario, bundle: Path | None) -> Run:
    """A second try for a drill that the machine did not let happen; a diagnosis is never tried again."""
    run = drill(scenario, bundle)
    return drill(scenario, bundle) if run.outcome == "broken" else run


def table(runs: Sequence[Run]) -> str:
    """One line for each fault."""
    head = f"{'fault':<22}{'runs':>6}{'right':>7}{'wrong':>7}{'cannot tell':>13}{'broken':>8}{'median':>9}  target 0.9"
    lines = [head]
    for fault in dict.fromkeys(run.fault for run in runs):
        mine = [run for run in runs if run.fault == fault]
        right, wrong, unknown, broken = (count(mine, what) for what in ("right", "wrong", "cannot tell", "broken"))
        met = "met" if right >= TARGET_RATIO * len(mine) else "MISSED"
        median_s = statistics.median(run.took_s for run in mine)
        lines.append(f"{fault:<22}{len(mine):>6}{right:>7}{wrong:>7}{unknown:>13}{broken:>8}{median_s:>7.0f} s  {met}")
    return "\n".join(lines)


def count(runs: Sequence[Run], outcome: str) -> int:
    """How many ended so."""
    return sum(run.outcome == outcome for run in runs)


def wanted(environment: dict[str, str]) -> list[Scenario]:
    """The drills to run, in turns, so that a busy minute does not fall on one fault alone."""
    if environment.get("QUICK"):
        return [find(SHORTEST)]
    named = environment.get("FAULTS", "")
    faults = named.split(",") if named else [fault for fault in FLASH_CROWD if fault not in FIRST_TWO]
    return [find(fault) for _ in range(int(environment.get("RUNS") or RUNS)) for fault in faults]


def main() -> None:
    scenarios, runs = wanted(dict(os.environ)), list[Run]()
    keep = Path(os.environ["KEEP"]) if os.environ.get("KEEP") else None
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    for number, scenario in enumerate(scenarios, start=1):
        run = drill_again_if_broken(scenario, keep / f"{number:02}-{scenario.fault}.json.gz" if keep else None)
        runs.append(run)
        progress = f"{number}/{len(scenarios)} {run.fault}: {run.outcome}, {run.told}, {run.took_s:.0f} s"
        print(progress, file=sys.stderr, flush=True)
    print(table(runs))
    right, wrong, unknown = (count(runs, what) for what in ("right", "wrong", "cannot tell"))
    print(json.dumps({"runs": len(runs), "right": right, "wrong": wrong, "cannot_tell": unknown}))


if __name__ == "__main__":
    explain(__doc__)
    main()
