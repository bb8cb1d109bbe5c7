"""The batcher's steps one by one, and whole runs against what queueing theory says exactly."""

from __future__ import annotations

import math
from itertools import accumulate
from random import Random

import pytest

from latencydoctor.forecast.batcher import Batching, Rules, Server, look

FLAT = [10.0] * 65
SMALL = [20.0 + size for size in range(65)]


def rules(preferred: int, maximum: int, wait_ms: float, also: tuple[int, ...] = ()) -> Rules:
    batching = Batching(True, preferred, maximum, wait_ms, also)
    return Rules(batching.sizes, batching.sizes[-1], maximum, wait_ms)


@pytest.mark.parametrize(
    ("held", "waiting", "age_ms", "expected"),
    [
        (0, 5, 3.0, (0, False, 97.0, 16)),  # waits for company
        (0, 16, 3.0, (16, False, math.inf, 0)),  # a preferred size leaves at once
        (0, 40, 3.0, (16, False, math.inf, 0)),  # and no more than that while there is time
        (0, 5, 100.0, (5, False, math.inf, 0)),  # time is up: as it is, and it may still grow
        (0, 20, 100.0, (20, True, math.inf, 0)),  # time is up: all of it, beyond the preferred size
        (0, 40, 100.0, (32, True, math.inf, 0)),  # but no more than the largest batch
        (16, 1, 3.0, (1, True, math.inf, 0)),  # a prepared batch grows by one beyond its preferred size
        (16, 9, 3.0, (1, True, math.inf, 0)),
        (16, 9, 100.0, (9, True, math.inf, 0)),  # or by all that are late
        (5, 3, 3.0, (3, False, math.inf, 0)),  # what is prepared and odd takes everybody
        (5, 30, 3.0, (11, False, math.inf, 0)),  # up to a preferred size
        (32, 4, 3.0, (0, True, math.inf, 0)),  # there is no more room
    ],
)
def test_one_look(held: int, waiting: int, age_ms: float, expected: tuple[int, bool, float, int]) -> None:
    taken, full, until_ms, wake_at = look(held, waiting, 0.0, age_ms, rules(16, 32, 100.0))
    assert (taken, full, wake_at) == (expected[0], expected[1], expected[3])
    assert until_ms == (expected[2] if math.isinf(expected[2]) else 100.0)


@pytest.mark.parametrize(
    ("held", "waiting", "expected"),
    [(0, 3, (3, False)), (0, 16, (16, True)), (0, 40, (16, True)), (3, 2, (2, False)), (3, 20, (13, True))],
)
def test_without_a_delay_a_preferred_size_is_a_ceiling(held: int, waiting: int, expected: tuple[int, bool]) -> None:
    assert look(held, waiting, 0.0, 50.0, rules(16, 32, 0.0))[:2] == expected


def test_several_preferred_sizes() -> None:
    several = rules(16, 32, 100.0, also=(4, 8))
    assert look(0, 5, 0.0, 1.0, several)[:2] == (4, False)
    assert look(0, 9, 0.0, 1.0, several)[:2] == (8, False)
    assert look(0, 3, 0.0, 1.0, several)[3] == 4
    # Four are prepared, a preferred size: three more wait till they are eight together.
    assert look(4, 3, 0.0, 1.0, several) == (0, False, 100.0, 4)


def test_without_preferred_sizes_the_largest_is_preferred() -> None:
    assert Batching(True, 0, 8, 5.0).sizes == (8,)
    assert Batching(True, 99, 8, 5.0).sizes == (8,)
    assert [Batching(True, 16, 32, wait).size_under_load for wait in (0.0, 1.0)] == [16, 32]
    assert Batching(False, 16, 32, 1.0).size_under_load == 1


def served(arrivals: list[float], times_ms: list[float], batching: Batching, instances: int = 1) -> Server:
    server = Server(arrivals, times_ms, batching, instances)
    server.run()
    assert len(server.latencies_ms) == sum(server.sizes) == len(arrivals)
    assert min(server.latencies_ms) >= min(times_ms) - 1e-9
    return server


def poisson(rate_rps: float, count: int, seed: int = 5) -> list[float]:
    dice = Random(seed)
    return list(accumulate(dice.expovariate(rate_rps / 1000) for _ in range(count)))


def test_a_lonely_request_waits_out_the_delay() -> None:
    server = served([0.0, 1000.0], SMALL, Batching(True, 16, 32, 100.0))
    assert server.latencies_ms == [121.0, 121.0]


def test_a_request_a_day_costs_no_more_than_a_busy_server(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    waiting = Server.waiting

    def counted(self: Server) -> int:
        nonlocal looks
        looks += 1
        return waiting(self)

    monkeypatch.setattr(Server, "waiting", counted)
    day_ms = 86_400_000.0
    server = served([number * day_ms + 130.0 for number in range(5)], SMALL, Batching(True, 16, 32, 100.0))
    assert server.latencies_ms == [121.0] * 5
    assert looks < 50


def test_a_batch_that_fills_leaves_at_once() -> None:
    server = served([float(number) for number in range(16)], SMALL, Batching(True, 16, 32, 100.0))
    assert server.sizes == [16]
    assert server.latencies_ms[0] == 15.0 + 36.0


def test_late_requests_prepared_while_the_instance_is_busy_are_joined() -> None:
    """The first batch executes for 36 ms; the delays of two later groups run out meanwhile, one after the other."""
    arrivals = [0.0] * 16 + [10.0] * 3 + [14.0] * 4
    server = served(arrivals, SMALL, Batching(True, 16, 32, 5.0))
    assert server.sizes == [16, 7]
    assert server.latencies_ms[16] == pytest.approx(36.0 - 10.0 + 27.0)


def test_a_prepared_batch_is_seventeen_under_load() -> None:
    """Seen on a real Triton 2.51: with preferred 16 most batches of a backlog hold 17."""
    server = served(poisson(400.0, 4000), SMALL, Batching(True, 16, 32, 20.0))
    assert max(set(server.sizes), key=server.sizes.count) == 17


def test_two_instances_share_the_work() -> None:
    arrivals = [0.0] * 4
    assert served(arrivals, FLAT, Batching(False, 0, 1, 0.0)).latencies_ms == [10.0, 20.0, 30.0, 40.0]
    assert served(arrivals, FLAT, Batching(False, 0, 1, 0.0), 2).latencies_ms == [10.0, 10.0, 20.0, 20.0]
    pairs = served(arrivals, FLAT, Batching(True, 2, 2, 0.0), 2)
    assert (pairs.sizes, pairs.latencies_ms) == ([2, 2], [10.0] * 4)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_without_a_batcher_it_is_the_queue_of_one_server_and_constant_times(load: float) -> None:
    """M/D/1: the mean wait is rho s / 2(1 - rho) (Pollaczek and Khinchine)."""
    server = served(poisson(load * 100, 100_000), FLAT, Batching(False, 0, 1, 0.0))
    wait_ms = sum(server.latencies_ms) / len(server.latencies_ms) - 10.0
    assert wait_ms == pytest.approx(load * 10.0 / (2 * (1 - load)), rel=0.05)


def test_two_servers_and_constant_times() -> None:
    """M/D/2 at 0.8: M/M/2's wait (17.8 ms) times Cosmetatos' factor for constant times, 0.5169."""
    server = served(poisson(160.0, 100_000), FLAT, Batching(False, 0, 1, 0.0), 2)
    wait_ms = sum(server.latencies_ms) / len(server.latencies_ms) - 10.0
    factor = 0.5 * (1 + (1 - 0.8) * (2 - 1) * (math.sqrt(4 + 5 * 2) - 2) / (16 * 0.8 * 2))
    assert wait_ms == pytest.approx(17.78 * factor, rel=0.05)


def bulk_wait_ms(rate_per_ms: float, time_ms: float, largest: int) -> float:
    """The mean wait of M/D(1,b)/1, from the stationary chain of how many a departing batch leaves behind."""
    mean = rate_per_ms * time_ms
    states = 100
    arriving = [math.exp(-mean)]
    for count in range(1, states):
        arriving.append(arriving[-1] * mean / count)
    left = [1.0] + [0.0] * (states - 1)
    rest = [max(0, count - largest) for count in range(states)]
    for _ in range(3000):
        following = [0.0] * states
        for behind in range(states):
            if left[behind] > 1e-14:
                for more in range(states - rest[behind]):
                    following[rest[behind] + more] += left[behind] * arriving[more]
        change = sum(abs(one - other) for one, other in zip(left, following, strict=True))
        left = following
        if change < 1e-9:
            break
    queue = sum(share * (rest[behind] * time_ms + mean * time_ms / 2) for behind, share in enumerate(left))
    return queue / (time_ms + left[0] / rate_per_ms) / rate_per_ms


@pytest.mark.parametrize(("largest", "load"), [(4, 0.85), (8, 0.7)])
def test_without_a_delay_it_is_the_queue_with_bulk_service(largest: int, load: float) -> None:
    """Each idle instance takes what waits, at most the largest batch: solved exactly by Bailey's embedded chain."""
    rate_rps = load * largest / 10.0 * 1000
    server = served(poisson(rate_rps, 100_000), FLAT, Batching(True, 0, largest, 0.0))
    wait_ms = sum(server.latencies_ms) / len(server.latencies_ms) - 10.0
    assert wait_ms == pytest.approx(bulk_wait_ms(rate_rps / 1000, 10.0, largest), rel=0.05)


def test_more_delay_never_loses_a_request_and_batches_stay_within_bounds() -> None:
    dice = Random(11)
    for _ in range(60):
        maximum = dice.choice([1, 2, 7, 32])
        sizes = tuple(dice.sample(range(1, 33), dice.randint(0, 3)))
        batching = Batching(True, dice.choice([0, 1, 4, 16]), maximum, dice.choice([0.0, 0.5, 7.0, 60.0]), sizes)
        server = served(
            poisson(dice.choice([20, 200, 2000]), 300, dice.randint(0, 99)), SMALL, batching, dice.choice([1, 3])
        )
        assert 1 <= min(server.sizes) <= max(server.sizes) <= maximum
