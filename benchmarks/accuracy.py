"""How often the cause is right: the fault matrix on a serving simulator, back-filled into a real Prometheus.

The matrix is synthetic: its serving systems are simulated from physical knobs by code that shares nothing with the
program, and half of its faults were written by someone who had not seen a rule. Each run is diagnosed as a user would
do it, from the Prometheus by `--selector`, with the settings that the server's own API would tell. The first seed is
diagnosed again with one family of metrics removed at a time. The last line of stdout is one JSON object of shares.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache

from benchmarks.accuracy_baselines import largest_change, literal_tree
from benchmarks.accuracy_score import Told, figures, share
from benchmarks.accuracy_sources import Pruned, Settings, families_of
from benchmarks.faults import Case, Run, load_cases, serve_jobs
from benchmarks.told import explain
from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.app.witness import ask_queue
from latencydoctor.cli.wiring import load_content
from latencydoctor.content.everything import Content
from latencydoctor.diagnosis.rank import Knowledge, diagnose
from latencydoctor.errors import CannotTell
from latencydoctor.evidence.assemble import assemble
from latencydoctor.model.configuration import PrometheusSource, Slo
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.evidence import Evidence, Selection
from latencydoctor.report.lint import unproven
from latencydoctor.sources.prometheus import PrometheusMetrics

SEEDS = int(os.environ.get("SEEDS") or 5)
BATCH = 54
QUICK_STEP = 5
WORKERS = 2
RANGE_S = 1800.0
DEADLINE_S = 60.0
PLAYBOOK = "latency-spike"
TARGETS = {"top1": 0.90, "top3": 0.97, "false_alarm": 0.02, "wrong_confident": 0.01, "scale_out_on_do_not_scale": 0.0}
AT_LEAST = ("top1", "top3")
TOO_EASY = 0.6

Task = tuple[Case, str, int, str]
"""A case, its engine, its seed, and the family of metrics removed (empty for none)."""


@cache
def _content() -> Content:
    return load_content(None)


def diagnosed(run: Run, url: str, removed: str) -> tuple[Evidence, Diagnosis]:
    """One run, diagnosed from the Prometheus at `url`; `CannotTell` when nothing of it can be read."""
    content = _content()
    metrics = PrometheusMetrics(PrometheusSource(url), DEADLINE_S)
    source = Pruned(metrics, removed) if removed else metrics
    facts = (
        () if removed == "configuration" else (Settings(run.facts, {name.id: name.unit for name in content.signals}),)
    )
    rules = Rules(content.dialects, content.signals, content.log_rules)
    selection = Selection(run.model, f'namespace="{run.namespace}"')
    collected = collect(Sources(source, facts), rules, CollectRequest(selection, run.end_s, RANGE_S))
    evidence = assemble(collected, Slo(), content.signals)
    playbook = next(one for one in content.playbooks if one.id == PLAYBOOK)
    knowledge = Knowledge(playbook, content.causes)
    return evidence, diagnose(evidence, knowledge, lambda rule, seen: ask_queue(rule, seen, Slo().p99_ms))


def tell(case: Case, engine: str, seed: int, removed: str, run: Run, url: str) -> Told:
    """What the program says of one run."""
    try:
        evidence, diagnosis = diagnosed(run, url, removed)
    except CannotTell:
        return Told(case, engine, seed, removed, "cannot tell", None, "", "", (), "", None, 0)
    cause = diagnosis.cause
    beside = [one.id for one in diagnosis.contributing] + [one.id for one in diagnosis.candidates]
    return Told(
        case=case,
        engine=engine,
        seed=seed,
        removed=removed,
        state=diagnosis.incident.state.value,
        cause=cause.id if cause else None,
        confidence=cause.confidence.value if cause else "",
        scaling=cause.scaling if cause else "",
        ranked=tuple(([cause.id] if cause else []) + beside),
        literal=literal_tree(evidence),
        largest=largest_change(evidence),
        unproven=len(unproven(diagnosis)),
    )


def _told(task: tuple[Task, Run, str]) -> Told:
    (case, engine, seed, removed), run, url = task
    return tell(case, engine, seed, removed, run, url)


def tell_all(cases: Sequence[Case], seeds: int, partial: bool) -> list[Told]:
    """Every case on every engine, `seeds` times; `partial` also takes metric families away from the first seed."""
    jobs = [(case, engine, seed) for seed in range(seeds) for case in cases for engine in case.engines]
    begun = time.monotonic()
    told: list[Told] = []
    # A server of hundreds of thousands of series answers slowly, and what is measured here is not its speed.
    batches = [jobs[start : start + BATCH] for start in range(0, len(jobs), BATCH)]
    with ProcessPoolExecutor(WORKERS) as pool:
        for batch in batches:
            with serve_jobs(batch, WORKERS) as (url, runs):
                tasks: list[tuple[Task, Run, str]] = []
                for (case, engine, seed), run in zip(batch, runs, strict=True):
                    removed = families_of(engine) if partial and seed == 0 and not case.healthy else ()
                    tasks += [((case, engine, seed, family), run, url) for family in ("", *removed)]
                told += pool.map(_told, tasks, chunksize=8)
            whole = sum(not one.removed for one in told)
            _say(f"{whole} of {len(jobs)} runs, {len(told)} diagnoses after {time.monotonic() - begun:.0f} s")
    return told


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(told: Sequence[Told]) -> None:
    """One line a case, then the shares by engine and author, then the targets."""
    whole = [one for one in told if not one.removed]
    for case_id, of_case in _grouped((one.case.id, one) for one in whole):
        case = of_case[0].case
        answers = Counter(one.cause or one.state for one in of_case)
        words = ", ".join(f"{answer} x{count}" for answer, count in answers.most_common())
        print(f"{case_id:38} {case.author:9} {case.cause or 'healthy':24} {share(of_case, _right):4.0%}  {words}")
    faults = [one for one in whole if not one.case.healthy]
    for title, key in (("engine", "engine"), ("author", "author")):
        groups = _grouped((getattr(one, key) if key == "engine" else one.case.author, one) for one in faults)
        for name, group in groups:
            in_three = share(group, lambda one: one.in_three)
            print(f"{title} {name:12} {len(group):5} runs   top-1 {share(group, _right):6.1%}   top-3 {in_three:6.1%}")
    for family, group in _grouped((one.removed, one) for one in told if one.removed):
        print(f"without {family:14} {_standing(group)}")
    print(f"with all of them       {_standing(whole)}")
    for one in told:
        if one.case.do_not_scale and one.scaling == "cures":
            run = f"{one.case.id} on {one.engine}, seed {one.seed}" + (f" without {one.removed}" if one.removed else "")
            print(f"scaling advised against the label: {run}: {one.cause}")
    print(f"claims without proof: {sum(one.unproven for one in told)}")


def _standing(group: Sequence[Told]) -> str:
    """How often a group is right, silent, and wrong without or with a reservation."""
    parts = (
        ("right", _right),
        ("no cause", lambda one: one.cause is None),
        ("wrong and sure", lambda one: one.wrong_and_confident),
        ("wrong with a reservation", lambda one: one.wrong_and_medium),
    )
    return "   ".join(f"{name} {share(group, counts):6.1%}" for name, counts in parts)


def _right(one: Told) -> bool:
    return one.right


def _grouped(pairs: Iterable[tuple[str, Told]]) -> list[tuple[str, list[Told]]]:
    groups: dict[str, list[Told]] = defaultdict(list)
    for key, one in pairs:
        groups[key].append(one)
    return sorted(groups.items())


def main() -> None:
    """Run the matrix and print it."""
    quick = bool(os.environ.get("QUICK"))
    told = tell_all(load_cases()[::QUICK_STEP], 1, False) if quick else tell_all(load_cases(), SEEDS, True)
    report(told)
    found = figures(told)
    for name, target in TARGETS.items():
        more = name in AT_LEAST
        met = found[name] >= target if more else found[name] <= target
        bound = f"target {target} or {'more' if more else 'less'}"
        print(f"{name} {found[name]:.3f}, {bound}: {'met' if met else 'MISSED'}")
    for name in ("literal_tree_top1", "largest_change_top1"):
        print(f"{name} {found[name]:.3f}, {'the matrix is too easy' if found[name] > TOO_EASY else 'not too easy'}")
    print("the serving systems are simulated; results on recorded real captures stand in tests/golden")
    print(json.dumps({name: round(value, 4) for name, value in found.items()}))


if __name__ == "__main__":
    explain(__doc__)
    main()
