"""Measures the gateway: what it adds to a call of Triton, and how many cache hits a second one core serves.

    python benchmarks/gateway.py            about six minutes
    QUICK=1 python benchmarks/gateway.py    under two minutes
    PROFILE=1 ...                           prints where the time goes even when both targets are met

Both parts run against a real Triton whose model answers at once (benchmarks/instant_model), so that its own time does
not hide the gateway's. The last line is JSON: {"added_p50_ms", "max_hit_rate_rps"}.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import pstats
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

import psutil
import uvloop

from benchmarks.told import explain

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gateway_load import OpenLoop, Outcome, even, percentile, poisson, post
from benchmarks.gateway_stack import Bench, bench, gateway
from latencydoctor.stack.encoder.tokenize import TextTokenizer, Tokens
from latencydoctor.stack.gateway.inference import TritonModel

TARGET_ADDED_MS = 1.0
TARGET_RATE_RPS = 4000
RATE_RPS = 200
P99_LIMIT_MS = 50.0
KNOWN_QUESTIONS = 500
SEARCH_TOLERANCE_RATIO = 0.05
DISTURBED_RATIO = 0.2
TRIES = 3
"""A rate counts as not held only after so many tries: another process that takes the core makes one try fail."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long each part takes."""

    pairs: int
    block_s: float
    step_s: float
    confirm_s: float
    confirmations: int
    search_s: float
    """No new step of the search for the highest rate begins later than this."""


FULL = Plan(pairs=12, block_s=5.0, step_s=5.0, confirm_s=15.0, confirmations=3, search_s=600.0)
QUICK = Plan(pairs=5, block_s=2.0, step_s=1.5, confirm_s=3.0, confirmations=1, search_s=50.0)


@dataclass(frozen=True, slots=True)
class Step:
    """One rate that was offered, what came of it, and what it cost."""

    rate_rps: float
    answered_rps: float
    p50_ms: float
    p99_ms: float
    late_p99_ms: float
    failed: int
    cached_ratio: float
    cpu_us: float
    others_ratio: float
    """Share of all cores that processes of this benchmark did not use; high means that the figures are too low."""

    @property
    def held(self) -> bool:
        """Whether the gateway kept up: every request answered from the cache, at the rate offered, in time."""
        kept_up = self.answered_rps >= 0.97 * self.rate_rps
        return kept_up and self.failed == 0 and self.cached_ratio > 0.999 and self.p99_ms < P99_LIMIT_MS


def _question(text: str, number: int) -> bytes:
    return post(json.dumps({"question": text, "session": f"session-{number % 1000}"}).encode())


async def _direct(model: TritonModel, tokens: Tokens, arrivals_s: list[float]) -> list[float]:
    """Calls Triton at the given times, each call in a task of its own; seconds each took."""
    took: list[float] = []

    async def call() -> None:
        before_s = perf_counter()
        await model.infer(tokens, version="", priority=0, timeout_s=5.0)
        took.append(perf_counter() - before_s)

    begin_s = perf_counter()
    async with asyncio.TaskGroup() as group:
        for arrival_s in arrivals_s:
            await asyncio.sleep(max(0.0, arrival_s - (perf_counter() - begin_s)))
            group.create_task(call())
    return took


async def added_latency(found: Bench, plan: Plan) -> float:
    """Median over pairs of blocks of (p50 through the gateway) - (p50 of direct calls), in ms.

    Both from the moment of sending, at the same even rate, in turns, so that a change of the machine hits both.
    """
    load = OpenLoop(found.endpoints.ports().gateway, connections=16)
    model = TritonModel(found.endpoints.triton_grpc, "faq-encoder")
    tokens = TextTokenizer()("how do i cancel my order?")
    numbers = count()
    arrivals_s = even(RATE_RPS, plan.block_s)
    differences = []
    print(f"added latency at {RATE_RPS}/s, every question new, {plan.pairs} pairs of {plan.block_s:g} s blocks")
    print(
        f"{'pair':>6} {'direct p50':>11} {'gateway p50':>12} {'added':>8} {'direct p99':>11} {'gateway p99':>12}   ms"
    )
    await _direct(model, tokens, even(RATE_RPS, 1.0))
    await load.run(even(RATE_RPS, 1.0), [_question(f"warm up {next(numbers)}?", 0) for _ in range(RATE_RPS)])
    for pair in range(plan.pairs):
        requests = [_question(f"where is order {next(numbers)} of mine?", next(numbers)) for _ in arrivals_s]
        if pair % 2:
            through, direct = await load.run(arrivals_s, requests), await _direct(model, tokens, arrivals_s)
        else:
            direct, through = await _direct(model, tokens, arrivals_s), await load.run(arrivals_s, requests)
        if through.failed or through.cached:
            sys.exit(f"{through.failed} requests failed and {through.cached} came from the cache: nothing was measured")
        row = [percentile(times, ratio) * 1000 for ratio in (0.5, 0.99) for times in (direct, through.from_send_s)]
        differences.append(row[1] - row[0])
        print(f"{pair + 1:>6} {row[0]:>11.3f} {row[1]:>12.3f} {differences[-1]:>8.3f} {row[2]:>11.3f} {row[3]:>12.3f}")
    await model.close()
    return median(differences)


class Rates:
    """Offers one gateway cache hits at one rate after the other."""

    def __init__(self, found: Bench, pid: int) -> None:
        self._load = OpenLoop(found.endpoints.ports().gateway)
        self._gateway = psutil.Process(pid)
        self._seeds = count(1)
        self.others_ratio = 0.0
        self.best_rps = 0.0
        self._requests = [_question(f"What does delivery number {n} cost?", n) for n in range(KNOWN_QUESTIONS)]

    async def step(self, rate_rps: float, seconds: float) -> Step:
        """Offers one rate for some seconds and prints what came of it."""
        await self._load.run(even(RATE_RPS * 5, KNOWN_QUESTIONS / (RATE_RPS * 5)), self._requests)
        ours = [self._gateway, psutil.Process(), *psutil.Process().children(recursive=True)]
        before_s, busy_s, gateway_s = _cpu_s(ours), _busy_s(), _cpu_s([self._gateway])
        outcome: Outcome = await self._load.run(poisson(rate_rps, seconds, next(self._seeds)), self._requests)
        others_s = _busy_s() - busy_s - (_cpu_s(ours) - before_s)
        step = Step(
            rate_rps=rate_rps,
            answered_rps=outcome.sent / outcome.span_s,
            p50_ms=percentile(outcome.from_intended_s, 0.5) * 1000,
            p99_ms=percentile(outcome.from_intended_s, 0.99) * 1000,
            late_p99_ms=percentile(outcome.late_s, 0.99) * 1000,
            failed=outcome.failed,
            cached_ratio=outcome.cached / max(1, outcome.sent),
            cpu_us=(_cpu_s([self._gateway]) - gateway_s) / max(1, outcome.sent) * 1e6,
            others_ratio=max(0.0, others_s / outcome.span_s / (os.cpu_count() or 1)),
        )
        self.others_ratio = max(self.others_ratio, step.others_ratio)
        self.best_rps = max(self.best_rps, rate_rps if step.held else 0.0)
        print(
            f"{step.rate_rps:>9.0f} {step.answered_rps:>9.0f} {step.p50_ms:>8.2f} {step.p99_ms:>8.2f} "
            f"{step.late_p99_ms:>9.2f} {step.failed:>7} {step.cached_ratio * 100:>7.2f} {step.cpu_us:>10.0f} "
            f"{step.others_ratio * 100:>9.0f}   {'held' if step.held else 'not held'}"
        )
        return step

    @property
    def disturbed(self) -> bool:
        """Whether other processes took enough of the machine to matter in one of the steps."""
        return self.others_ratio > DISTURBED_RATIO

    async def holds(self, rate_rps: float, seconds: float) -> bool:
        """Whether a rate is held in one of the tries."""
        for _ in range(TRIES):
            if (await self.step(rate_rps, seconds)).held:
                return True
        return False


def _cpu_s(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in set(processes))


def _busy_s() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


async def highest_rate(found: Bench, pid: int, plan: Plan) -> float:
    """The highest rate that was held in most of the confirmations, in requests a second; 0 when none was."""
    print(f"\ncache hits, Poisson arrivals, p99 from the intended send below {P99_LIMIT_MS:g} ms, gateway on one core")
    print(
        f"{'offered/s':>9} {'served/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'late p99':>9} {'failed':>7} {'hits %':>7} "
        f"{'CPU us/hit':>10} {'others %':>9}"
    )
    rates = Rates(found, pid)
    until_s = perf_counter() + plan.search_s
    held, failed, rate = 0.0, 0.0, 2000.0
    while (not failed or (failed - held) / failed > SEARCH_TOLERANCE_RATIO) and rate > 100 and perf_counter() < until_s:
        if await rates.holds(rate, plan.step_s):
            held = rate
        else:
            failed = rate
        rate = (held + failed) / 2 if failed else rate * 1.5
    print("confirming")
    confirmed = False
    while held > 100 and not confirmed and perf_counter() < until_s + plan.search_s / 2:
        steps = [await rates.step(held, plan.confirm_s) for _ in range(plan.confirmations)]
        confirmed = sum(step.held for step in steps) * 2 > len(steps)
        held *= 1 if confirmed else 1 - 2 * SEARCH_TOLERANCE_RATIO
    if rates.disturbed:
        print(f"other processes took up to {rates.others_ratio * 100:.0f} % of the machine: the rate is a lower bound")
    if not confirmed:
        print("the time was up before a rate was confirmed: this is the highest one that was held in any step")
    return held if confirmed else rates.best_rps


async def _profile_load(found: Bench, rate_rps: float, plan: Plan) -> None:
    load = OpenLoop(found.endpoints.ports().gateway)
    requests = [_question(f"What does delivery number {n} cost?", n) for n in range(KNOWN_QUESTIONS)]
    await load.run(poisson(rate_rps, plan.step_s, 1), requests)
    fresh = [_question(f"where is parcel {n} of mine?", n) for n in range(round(RATE_RPS * plan.step_s))]
    await load.run(even(RATE_RPS, plan.step_s), fresh)


def show_profile(found: Bench, plan: Plan) -> None:
    """Where the gateway's time goes, by cProfile: first cache hits at half the target rate, then new questions."""
    path = found.layout.state / "gateway.prof"
    with gateway(found, profile=path):
        uvloop.run(_profile_load(found, TARGET_RATE_RPS / 2, plan))
    text = io.StringIO()
    pstats.Stats(str(path), stream=text).strip_dirs().sort_stats("tottime").print_stats(25)
    print("\nwhere the time goes (cProfile; the profiler itself slows small functions most)")
    print("\n".join(line for line in text.getvalue().splitlines() if line.strip()))


def main() -> None:
    """Runs all parts and prints the figures."""
    # As on Ctrl-C, so that every part that was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plan = QUICK if os.environ.get("QUICK") else FULL
    cores = sorted(os.sched_getaffinity(0))
    with bench() as found:
        print("model: a Triton Python model that answers at once (no accelerator is simulated)")
        with gateway(found):
            added_ms = uvloop.run(added_latency(found, plan))
        with gateway(found, core=cores[0]) as process, _others_on(cores[1:]):
            rate_rps = uvloop.run(highest_rate(found, process.pid, plan))
        print(f"\nadded p50      {added_ms:8.3f} ms   target <= {TARGET_ADDED_MS:g} ms")
        print(f"highest rate   {rate_rps:8.0f} /s   target >= {TARGET_RATE_RPS} /s, one process on one core")
        if added_ms > TARGET_ADDED_MS or rate_rps < TARGET_RATE_RPS or os.environ.get("PROFILE"):
            show_profile(found, plan)
    print(json.dumps({"added_p50_ms": round(added_ms, 3), "max_hit_rate_rps": round(rate_rps)}))


@contextlib.contextmanager
def _others_on(cores: list[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


if __name__ == "__main__":
    explain(__doc__)
    main()
