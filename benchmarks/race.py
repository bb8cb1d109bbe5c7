"""The vLLM cases of the fault matrix put to three tools: latencydoctor, vllm-doctor 0.6.0 and inferpilot 0.1.0.

    make race                  all cases, one seed: some minutes
    QUICK=1 make race          seven cases; CASES=a,b: only those, SEED=n: another seed

Right, for each case: the first finding names the injected cause; on a healthy case there is no finding. The matrix is
simulated (benchmarks/faults/README.md). Each case is loaded, alone, into a real Prometheus, and asked about in the last
seconds before its end. Each tool is started anew for each case, at its defaults, in its best way:

vllm-doctor
    `vllm-doctor diagnose PROMETHEUS --model MODEL --output json`. It asks Prometheus as of now, with its window of five
    minutes; its other way, one page, has no latency rules. It knows no namespace, which is why the case is alone. Its
    first finding is the first that it lists: it sorts by severity, then confidence.
inferpilot
    `inferpilot inspect BEFORE AFTER --json` with the servers' metrics pages 60 s before the end and at the end. The
    pages of all replicas are given as one: it takes the largest of each gauge and the sum of each counter, so it sees
    the worst replica whichever it would have been pointed at. Its verdict is its only finding.
latencydoctor
    `latencydoctor diagnose --prometheus PROMETHEUS --selector 'namespace="CASE"' --model MODEL --format json`, as of
    now.

The words of the other two are not the matrix's. What they mean is in benchmarks/race_words.py, and it is generous: a
finding counts for each cause that its title, its list of likely causes or its advice mentions. Ours has to be exact.
They read vLLM's metrics alone, so most of what goes wrong around it (GPU clocks, proxy, DNS, Kubernetes) is out of
their reach; the row "faults it has a word for" leaves those out. And ours was developed beside
this matrix (half of its faults are by someone who had not seen a rule), theirs were not.

Gauges are read at one moment, which differs from race to race: a case or two of each tool may turn out otherwise.

The last line of stdout is one JSON object: shares of all cases that are right, and the number of cases.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.faults import Case, load_cases, serve, simulate
from benchmarks.race_environment import PINS, pinned, prepare
from benchmarks.race_pages import ending
from benchmarks.race_score import TOOLS, Judged, by_case, by_tool, misses, replicas, share
from benchmarks.race_tools import Field
from benchmarks.race_words import INFERPILOT, OURS, VLLM_DOCTOR
from benchmarks.told import explain
from latencydoctor import __version__

QUICK_CASES = (
    "healthy-high-load",
    "healthy-preempted-long-ago",
    "kv-full",
    "long-prompts",
    "prefix-collapse",
    "saturation",
    "thermal",
)
SEED = 7
"""Not one of those that `make accuracy` runs, on which the rules were looked at while they were written. With it, too,
every fault is an incident by its clients' latencies, and no healthy case is one."""

LEAD_S = 12.0
"""The run ends this much after it is loaded. Until then Prometheus answers as it would of servers that still run, so
that no tool reads a past that another has let go by; what lies ahead of the clock it does not tell."""


def wanted(environment: Mapping[str, str]) -> list[Case]:
    """The cases of the race."""
    cases = [case for case in load_cases() if "vllm" in case.engines]
    if named := environment.get("CASES"):
        return [case for case in cases if case.id in named.split(",")]
    return [case for case in cases if case.id in QUICK_CASES] if environment.get("QUICK") else cases


def race(case: Case, seed: int, field: Field) -> tuple[list[Judged], float]:
    """One case, and how many seconds before its end the last tool had its answer."""
    run = ending(simulate(case, "vllm", seed), time.time() + LEAD_S)
    with serve([run]) as url:
        judged = [Judged(case, answer) for answer in field.ask(run, url)]
        return judged, run.end_s - time.time()


def report(judged: list[Judged], left_s: float) -> None:
    """By case, by tool, and what was missed."""
    pins = pinned(PINS.read_text(encoding="utf-8"))
    versions = {OURS: __version__, VLLM_DOCTOR: pins[VLLM_DOCTOR], INFERPILOT: pins[INFERPILOT]}
    print("\n".join(by_case(judged)) + "\n")
    for tool in TOOLS:
        print("\n".join([f"{tool}: wrong or silent", *misses(judged, tool)]))
        print(f"  advises replicas where they are the wrong reflex: {', '.join(replicas(judged, tool)) or 'nowhere'}\n")
    print("\n".join(by_tool(judged, versions)))
    print(f"simulated cases; all answers were there {left_s:.1f} s before a case's end (below 0: the machine was slow)")
    print("what the words of the others are taken to mean: benchmarks/race_words.py")


def main() -> None:
    """Install the others, race, and print."""
    cases, seed = wanted(os.environ), int(os.environ.get("SEED") or SEED)
    if not cases:
        sys.exit(f"no vLLM case is called {os.environ['CASES']}")
    environment = prepare()
    judged: list[Judged] = []
    least_s = LEAD_S
    with tempfile.TemporaryDirectory(prefix="race-") as home:
        field = Field(environment, Path(home))
        for number, case in enumerate(cases, start=1):
            answers, left_s = race(case, seed, field)
            judged += answers
            least_s = min(least_s, left_s)
            told = ", ".join(f"{one.answer.tool} {one.outcome} in {one.answer.took_s:.1f} s" for one in answers)
            print(f"{number}/{len(cases)} {case.id}: {told}", file=sys.stderr, flush=True)
    report(judged, least_s)
    shares = {tool: share([one for one in judged if one.answer.tool == tool]) for tool in TOOLS}
    names = {"ours": OURS, "vllm_doctor": VLLM_DOCTOR, "inferpilot": INFERPILOT}
    print(json.dumps({**{key: round(shares[tool], 4) for key, tool in names.items()}, "cases": len(cases)}))


if __name__ == "__main__":
    explain(__doc__)
    main()
