"""Two priority levels: who goes first, and that nothing is prepared ahead."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.batcher import Batching
from latencydoctor.forecast.curve import ServiceCurve
from latencydoctor.forecast.priorities import TwoLevels
from latencydoctor.forecast.queue import Scenario, simulate

FLAT = [10.0] * 65
ONE_BY_ONE = Batching(True, 1, 1, 0.0)


def served(
    arrivals: list[float], first: list[bool], batching: Batching, instances: int = 1, limit_ms: float = math.inf
) -> TwoLevels:
    """All of these; requests that come later, which are not of interest, wake the batcher every ms."""
    later = [arrivals[-1] + number for number in range(1, 200)]
    levels = [*first, *[False] * len(later)]
    server = TwoLevels([*arrivals, *later], FLAT, batching, instances, first=levels, limit_ms=limit_ms)
    server.run()
    return server


def test_the_first_level_overtakes_what_waits_but_not_what_executes() -> None:
    server = served([0.0, 1.0, 2.0, 3.0], [False, False, False, True], ONE_BY_ONE)
    assert server.first_latencies_ms == [17.0]
    assert server.other_latencies_ms[:3] == [10.0, 29.0, 38.0]


def test_a_batch_holds_the_first_level_before_others() -> None:
    server = served([0.0, 1.0, 2.0, 3.0, 4.0], [False, False, False, True, True], Batching(True, 2, 2, 0.0))
    assert server.sizes[:3] == [1, 2, 2]
    assert server.first_latencies_ms == [17.0, 16.0]


def test_a_backlog_that_nothing_is_added_to_leaves_in_two_batches_a_second() -> None:
    server = TwoLevels([*[0.0] * 100, 10_000.0], FLAT, Batching(True, 4, 4, 0.0), first=[False] * 101)
    server.run()
    assert server.sizes[:20] == [4] * 20
    assert sorted(server.latencies_ms)[:12] == [10.0] * 4 + [510.0] * 4 + [1010.0] * 4


def test_whoever_waited_too_long_on_the_second_level_is_turned_away_and_the_first_is_not() -> None:
    # An execution takes 10 ms and serves one. The first level's is next: who came at 1 and 2 has waited 18 ms then.
    server = served([0.0, 1.0, 2.0, 3.0, 4.0], [False, False, False, False, True], ONE_BY_ONE, limit_ms=17.5)
    assert server.first_latencies_ms == [16.0]
    assert server.shed[:2] == [1.0, 2.0]
    assert server.other_latencies_ms[:2] == [10.0, 27.0]
    assert max(server.other_latencies_ms) <= 17.5 + 1 + 10


def test_the_delay_counts_from_the_oldest_that_would_leave() -> None:
    batching = Batching(True, 4, 4, 30.0)
    server = TwoLevels([0.0, 20.0, 90.0], FLAT, batching, first=[False, True, False])
    server.run()
    assert server.sizes == [2]
    assert sorted(server.latencies_ms) == [20.0, 40.0]


def test_when_the_first_level_fills_a_batch_the_others_wait_on() -> None:
    arrivals = [0.0, 1.0, *[2.0] * 6]
    server = served(arrivals, [False, False, *[True] * 6], Batching(True, 3, 3, 5.0))
    assert max(server.first_latencies_ms) < max(server.other_latencies_ms[:2])


def test_two_idle_instances_take_two_batches() -> None:
    server = served([0.0, 0.0, 0.0, 0.0], [False] * 4, Batching(True, 2, 2, 0.0), instances=2)
    assert server.latencies_ms[:4] == [10.0] * 4


def test_under_load_the_first_level_hardly_waits() -> None:
    one = Scenario(Traffic(265.0), ServiceCurve(20.0, 1.0), Batching(True, 0, 8, 0.0), vip_ratio=0.2)
    found, plain = simulate(one), simulate(replace(one, vip_ratio=0.0))
    assert found is not None
    assert plain is not None
    vip, standard = (values[int(len(values) * 0.99)] for values in (found.vip_ms, found.standard_ms))
    # An execution under way, then its own.
    assert vip < 2.5 * 28.0
    assert standard > 1.3 * vip
    assert found.utilisation_ratio == pytest.approx(plain.utilisation_ratio, rel=0.05)
    assert len(found.vip_ms) == pytest.approx(0.2 * 12_000, rel=0.1)
