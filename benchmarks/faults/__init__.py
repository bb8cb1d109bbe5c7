"""A labelled fault matrix for GPU serving: made incidents and traps, simulated from physics, in a real Prometheus.

Shares no code with the doctor that is tested on it, and knows none of its rules. See README.md.

    cases = load_cases()
    run = simulate(cases[0], "triton", seed=0)      # run.namespace, run.end_s, run.facts, run.openmetrics()
    with serve([run]) as url: ...
    with serve_jobs(jobs) as (url, runs): ...       # many: jobs are (case, engine, seed)
"""

from benchmarks.faults.backfill import serve, serve_jobs
from benchmarks.faults.case_files import Case, CaseError, load_cases
from benchmarks.faults.runs import END_S, Run, simulate, simulate_all

__all__ = ["END_S", "Case", "CaseError", "Run", "load_cases", "serve", "serve_jobs", "simulate", "simulate_all"]
