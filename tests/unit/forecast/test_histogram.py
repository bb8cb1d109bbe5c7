"""A percentile as a histogram shows it, held against the evaluator that reads real pages."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest

from latencydoctor.evidence.promql import Recording, evaluate_at, parse
from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.curve import ServiceCurve
from latencydoctor.forecast.histogram import around_ms, bounds_of, shown_ms
from latencydoctor.forecast.queue import Batching, Scenario, simulate
from latencydoctor.model.evidence import Fact, Proof

BOUNDS_MS = (1.0, 5.0, 20.0, 50.0, 100.0, 150.0, 200.0, 300.0)


def read(latencies_ms: list[float], ratio: float) -> float:
    """What PromQL makes of these latencies, counted on a page as a front end counts them."""

    def page(counts: list[int]) -> str:
        lines = ["# TYPE t histogram"]
        lines += [
            f't_bucket{{le="{le}"}} {count}'
            for le, count in zip([*(f"{bound:g}" for bound in BOUNDS_MS), "+Inf"], counts, strict=True)
        ]
        return "\n".join([*lines, f"t_sum {sum(latencies_ms)}", f"t_count {counts[-1]}"]) + "\n"

    counts = [sum(value <= bound for value in latencies_ms) for bound in BOUNDS_MS] + [len(latencies_ms)]
    recording = Recording()
    recording.add_page(1000.0, "i", page([0] * len(counts)))
    recording.add_page(1010.0, "i", page(counts))
    tree = parse(f"histogram_quantile({ratio}, sum by (le) (rate(t_bucket[20s])))")
    (one,) = evaluate_at(recording, tree, 1010.0)
    return one.value


@pytest.mark.parametrize("ratio", [0.05, 0.5, 0.95, 0.99])
def test_it_is_read_as_promql_reads_it(ratio: float) -> None:
    dice = random.Random(7)
    latencies_ms = sorted(dice.lognormvariate(4.0, 0.6) for _ in range(800))
    assert shown_ms(latencies_ms, ratio, BOUNDS_MS) == pytest.approx(read(latencies_ms, ratio), rel=1e-6)
    hits = [0.8] * 200
    with_hits = shown_ms(latencies_ms, ratio, BOUNDS_MS, hit_ratio=0.2, hit_ms=0.8)
    assert with_hits == pytest.approx(read([*hits, *latencies_ms], ratio), rel=1e-6)


def test_above_the_last_bound_nothing_is_shown_of_it() -> None:
    slow = [900.0] * 100
    assert read(slow, 0.99) == 300.0, "which is no latency that anybody had"
    assert shown_ms(slow, 0.99, BOUNDS_MS) is None
    assert shown_ms(slow, 0.99, ()) is None


def test_latencies_that_lie_close_together_are_shown_at_the_end_of_their_bucket() -> None:
    """What verification showed of a real scale-out: 196 ms, where requests took 163 ms at p99 and 167 ms at most."""
    saturated = Scenario(
        Traffic(325 / 2), ServiceCurve(5.0, 3.6), Batching(True, 16, 32, 100.0), hit_ratio=0.12, outside_ms=4.0
    )
    found = simulate(saturated, 3_000)
    assert found is not None
    assert found.percentile_ms(0.99) == pytest.approx(163.0, abs=3.0)
    assert bisect_right(found.latencies_ms, 200.0) == len(found.latencies_ms)
    assert shown_ms(found.latencies_ms, 0.99, BOUNDS_MS, 0.12, 1.0) == pytest.approx(194.0, abs=3.0)


def test_the_bounds_beside_a_latency() -> None:
    assert around_ms(160.0, BOUNDS_MS) == (150.0, 200.0)
    assert around_ms(0.5, BOUNDS_MS) == (0.0, 1.0)
    assert around_ms(301.0, BOUNDS_MS) == (300.0, None)


def test_bounds_are_taken_from_facts_whatever_their_order() -> None:
    proof = Proof("prometheus", "q")
    facts = [Fact(f"e2e_bound_{number}_ms", "ms", value, proof) for number, value in ((10, 9.0), (2, 3.0), (3, 3.0))]
    assert bounds_of([Fact("batch_8_time_ms", "ms", 28.0, proof), *facts]) == (3.0, 9.0)
    assert bounds_of([]) == ()
