"""What clients saw in each case before the onset and at the end, and whether that is an incident: for authors of cases.

python -m benchmarks.faults.check [SEEDS] [CASE ...]
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.faults.backfill import Job
from benchmarks.faults.case_files import load_cases
from benchmarks.faults.runs import plant_of
from benchmarks.faults.simulator.plant import Plant
from benchmarks.faults.truth import is_incident, windows

BASELINE, LATE_SAMPLES = slice(10, 30), 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a case is what it says to be, and a line that shows it."""

    right: bool
    line: str


def judge(job: Job) -> Verdict:
    """Simulate one case and say what clients saw."""
    case, engine, seed = job
    plant = plant_of(case, engine, seed)
    plant.run()
    held = windows(plant.log)
    late = " ".join(f"{window.p99_ms:.0f}" for window in held[-5:])
    before_ms, mean_ms = (
        float(np.median([getattr(one, name) for one in held[BASELINE]])) for name in ("p99_ms", "mean_ms")
    )
    last_ms, errors = (
        float(np.median([getattr(one, name) for one in held[-5:]])) for name in ("mean_ms", "error_ratio")
    )
    incident = is_incident(plant.log)
    text = (
        f"{case.id:24} {engine:10} {seed} {'incident' if incident else 'healthy':8} p99 {before_ms:.0f} -> {late} ms, "
        f"mean {mean_ms:.0f} -> {last_ms:.0f} ms, errors {errors:.3f}{_inside(plant)}"
    )
    return Verdict(incident != case.healthy, text)


def _inside(plant: Plant) -> str:
    """The state of replica 0 at the end."""
    names = ["engine", "sm", "clock_mhz", "used_mb"]
    names += ["running", "waiting", "kv"] if plant.engine == "vllm" else ["pending"]
    values = (f"{name} {plant.samples.array(f'0.{name}')[-LATE_SAMPLES:].mean():.2f}" for name in names)
    return "; " + ", ".join(values)


def main(arguments: list[str]) -> int:
    seeds, wanted = int(arguments[0]) if arguments else 1, set(arguments[1:])
    cases = [case for case in load_cases() if not wanted or case.id in wanted]
    jobs = [(case, engine, seed) for case in cases for engine in case.engines for seed in range(seeds)]
    wrong = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for verdict in pool.map(judge, jobs):
            wrong += not verdict.right
            print(f"{'ok   ' if verdict.right else 'WRONG'} {verdict.line}", flush=True)
    print(f"{wrong} of {len(jobs)} are not what they say to be")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
