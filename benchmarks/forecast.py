"""Holds forecasts against a real Triton: settings x rates on simulated accelerators, each predicted before it is run.

    python -m benchmarks.forecast             about 16 minutes
    QUICK=1 python -m benchmarks.forecast     every fourth case with fewer requests: three minutes, nothing to quote

One run for each accelerator is looked at: its executions by batch size give the curve, its client the time outside the
server. Every other run is predicted from that and its settings and nominal rate alone. Requests are sent open-loop at
Poisson times by a process of its own and timed from the moment they were due. A run that is called unstable is
confirmed by latencies that keep growing.

On a machine that others use, start it with `chrt -r 10`: executions that wait for a processor are not what is forecast
here (each line says how late the sender was). The last line is JSON: {"median_p99_error", "p90_p99_error", "coverage",
"median_width", "unstable_correct", "cases"}; p90_p99_error is what nine in ten stay within.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.told import explain

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.forecast_cases import CALIBRATIONS, CASES, Case
from benchmarks.forecast_stack import Answers, Executions, Load, Patient, offer, patient
from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.curve import BatchTime, ServiceCurve, fit
from latencydoctor.forecast.estimate import Estimate, estimate
from latencydoctor.forecast.queue import SETTLING_SHARE, Scenario
from latencydoctor.stack.settings import BatchingSettings

QUICK = bool(os.environ.get("QUICK"))
LEAST_REQUESTS = 1_000 if QUICK else 3_800
RUN_S = 4.0 if QUICK else 20.0
CALIBRATION_S = 6.0 if QUICK else 30.0
DISTURBED_MS = 8.0
"""A sender that is later than this at p99 was held up by another process, and with it Triton: such a run is done again.

Decided before its latencies are looked at, at most once a case, and not beyond `REPEATS_UNTIL_S`.
"""
REPEATS_UNTIL_S = 840.0
GROWS = 1.3
"""An overloaded run's last quarter is slower than its second by this factor, at least."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one run of an accelerator tells of all others."""

    curve: ServiceCurve
    outside_ms: float


@dataclass(frozen=True, slots=True)
class Result:
    """One case: what was predicted, and the p99 that came; `grows` says whether latencies kept growing."""

    case: Case
    predicted: Estimate
    p99_ms: float
    grows: bool

    @property
    def called_right(self) -> bool:
        """Whether stable was called stable, and unstable, which it then turned out to be, unstable."""
        return bool(self.predicted.unstable) == self.case.overloaded and (self.grows or not self.case.overloaded)

    @property
    def error_ratio(self) -> float:
        """How far the prediction is from what came, as a share of it."""
        return math.inf if self.predicted.p99_ms is None else abs(self.predicted.p99_ms.value / self.p99_ms - 1)

    @property
    def covered(self) -> bool:
        """Whether the interval holds what came."""
        band = self.predicted.p99_ms
        return band is not None and band.low <= self.p99_ms <= (math.inf if band.high is None else band.high)

    @property
    def width_ratio(self) -> float:
        """The interval's width as a share of the prediction."""
        band = self.predicted.p99_ms
        return math.inf if band is None or band.high is None else (band.high - band.low) / band.value


def requests_of(case: Case) -> int:
    """How many requests the case sends; an overload shows itself soon."""
    if case.overloaded:
        return LEAST_REQUESTS
    seconds = CALIBRATION_S if case in CALIBRATIONS else RUN_S
    return max(LEAST_REQUESTS, round(case.rate_rps * seconds))


def run(found: Patient, case: Case, seed: int) -> tuple[Answers, Executions]:
    """The real thing."""
    settings = BatchingSettings(
        case.batching.enabled, case.batching.preferred, case.batching.maximum, round(case.batching.wait_ms * 1000)
    )
    found.load(settings, levels=case.vip_ratio > 0, accelerator=case.accelerator, instances=case.instances)
    before = found.executions()
    answers = offer(found.address, Load(case.rate_rps, requests_of(case), seed, case.group, case.vip_ratio))
    return answers, found.executions().since(before)


def calibrated(found: Patient, case: Case) -> Calibration:
    """Curve and outside time from one run."""
    answers, executions = run(found, case, seed=1)
    times = [
        BatchTime(size, count, executions.total_ms[size] / count) for size, count in executions.counts.items() if count
    ]
    curve = fit(times)
    if isinstance(curve, str):
        sys.exit(f"the calibration of {case.accelerator} failed: {curve}")
    took = [value for value in answers.took_ms if value is not None]
    outside_ms = sum(took) / len(took) - executions.request_total_ms / max(1, executions.requests)
    print(
        f"{case.accelerator}: {curve.host_ms:.1f} ms + {curve.item_ms:.2f} ms a request "
        f"(known to {curve.error_ratio:.1%}, slope to {curve.slope_error_ms:.2f}), "
        f"{outside_ms:.1f} ms outside; "
        f"from {len(times)} batch sizes of {case}, sent late by {answers.late_p99_ms:.1f} ms at p99",
        flush=True,
    )
    return Calibration(curve, max(0.0, outside_ms))


def predicted(case: Case, known: Calibration) -> Estimate:
    """The forecast of a case."""
    scenario = Scenario(
        Traffic(case.rate_rps, group=case.group),
        known.curve,
        case.batching,
        instances=case.instances,
        outside_ms=known.outside_ms,
        vip_ratio=case.vip_ratio,
    )
    return estimate(scenario, round(requests_of(case) * (1 - SETTLING_SHARE)))


def results() -> Iterator[Result]:
    """Every case, predicted and then run."""
    began_s = time.monotonic()
    with patient() as found:
        known = {case.accelerator: calibrated(found, case) for case in CALIBRATIONS}
        for number, case in enumerate(CASES[::4] if QUICK else CASES):
            told = predicted(case, known[case.accelerator])
            answers, _ = run(found, case, seed=100 + number)
            if answers.late_p99_ms > DISTURBED_MS and time.monotonic() - began_s < REPEATS_UNTIL_S:
                answers, _ = run(found, case, seed=200 + number)
            result = Result(case, told, _p99_ms(answers), _grows(answers))
            print(_line(result, answers), flush=True)
            yield result


def _settled(answers: Answers) -> list[float]:
    """Latencies after settling; a request without an answer took longer than any."""
    kept = answers.took_ms[round(len(answers.took_ms) * SETTLING_SHARE) :]
    return sorted(math.inf if value is None else value for value in kept)


def _p99_ms(answers: Answers) -> float:
    ordered = _settled(answers)
    return ordered[int(len(ordered) * 0.99)]


def _grows(answers: Answers) -> bool:
    quarter = len(answers.took_ms) // 4
    parts = [
        sorted(
            math.inf if value is None else value for value in answers.took_ms[place * quarter : (place + 1) * quarter]
        )
        for place in range(4)
    ]
    middles = [part[len(part) // 2] for part in parts]
    return middles[3] > GROWS * middles[1] and middles[3] > middles[2] > middles[1]


def _line(result: Result, answers: Answers) -> str:
    band, case = result.predicted.p99_ms, result.case
    if band is None:
        told = "unstable"
    else:
        high = "open" if band.high is None else f"{band.high:.0f}"
        told = f"{band.value:.0f} ({band.low:.0f} to {high})"
    error = "" if band is None else f", {result.predicted.p99_ms.value / result.p99_ms - 1:+.0%}"  # type: ignore[union-attr]
    verdict = "" if result.called_right else "  CALLED WRONG"
    outside = "" if band is None or result.covered else "  outside the interval"
    return (
        f"{case}: load {result.predicted.load_ratio:.2f}, p99 predicted {told}, measured {result.p99_ms:.0f} ms{error}"
        f"  (late by {answers.late_p99_ms:.1f}){outside}{verdict}"
    )


def summary(found: Sequence[Result]) -> dict[str, float | int]:
    """The figures of the last line."""
    stable = [result for result in found if not result.case.overloaded and result.predicted.p99_ms is not None]
    errors = sorted(result.error_ratio for result in stable)
    widths = [result.width_ratio for result in stable]
    return {
        "median_p99_error": round(median(errors), 3),
        "p90_p99_error": round(errors[math.ceil(0.9 * len(errors)) - 1], 3),
        "coverage": round(sum(result.covered for result in stable) / len(stable), 3),
        "median_width": round(min(median(widths), 99.0), 3),
        "unstable_correct": round(sum(result.called_right for result in found) / len(found), 3),
        "cases": len(found),
    }


def main() -> None:
    """Runs all cases."""
    print("SIMULATED accelerators on a real Triton")
    found = list(results())
    print(json.dumps(summary(found)))


if __name__ == "__main__":
    explain(__doc__)
    main()
