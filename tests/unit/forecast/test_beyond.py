"""Batches larger than any that was seen: intervals that hold what devices really do there, and words that say so."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from latencydoctor.forecast.arrivals import Traffic
from latencydoctor.forecast.beyond import Beyond, curvature_ms
from latencydoctor.forecast.curve import NEEDED, BatchTime, ServiceCurve, calibrate, fit
from latencydoctor.forecast.estimate import capacity_band, drawn, estimate
from latencydoctor.forecast.queue import Batching, Scenario, simulate

RUNS = 300
ENOUGH = 0.9
"""Of what is measured, at least this much lies inside of an interval that says 95 %."""

Device = Callable[[int], float]


def flat_then_linear(dice: random.Random) -> Device:
    """What is fetched costs the same for any batch, until computing takes longer; the knee may lie out of sight."""
    knee, floor_ms = dice.choice([2, 4, 6, 8, 12, 16]), dice.uniform(5, 30)
    item_ms = floor_ms / knee * dice.uniform(0.3, 1)
    return lambda size: floor_ms + item_ms * max(0, size - knee)


def linear(dice: random.Random) -> Device:
    host_ms, item_ms = dice.uniform(0, 30), dice.uniform(0.2, 4)
    return lambda size: host_ms + item_ms * size


def stepped(dice: random.Random) -> Device:
    """Padded to the next multiple of eight."""
    host_ms, step_ms = dice.uniform(0, 20), dice.uniform(2, 20)
    return lambda size: host_ms + step_ms * math.ceil(size / 8)


def superlinear(dice: random.Random) -> Device:
    """A cache fits less and less of a batch."""
    host_ms, item_ms, bent_ms = dice.uniform(5, 30), dice.uniform(0.2, 2), dice.uniform(0.01, 0.15)
    return lambda size: host_ms + item_ms * size + bent_ms * size**2


DEVICES = (flat_then_linear, linear, stepped, superlinear)


def seen(device: Device, largest: int, dice: random.Random) -> list[BatchTime]:
    """Executions up to this size: most are of it, as in a backlog; means are off by a little, the more the fewer."""
    sizes = dice.choice([list(range(1, largest + 1)), [1, 2, 4, largest], [1, largest // 2, largest]])
    counts = [dice.choice([20, 2000]) if size == largest else dice.choice([3, 20, 200]) for size in sizes]
    return [
        BatchTime(size, count, device(size) * (1 + dice.gauss(0, 0.05) / math.sqrt(count) + dice.gauss(0, 0.005)))
        for size, count in zip(sizes, counts, strict=True)
    ]


def fitted(times: list[BatchTime]) -> ServiceCurve:
    curve = fit(times)
    assert isinstance(curve, ServiceCurve), curve
    return curve


@pytest.mark.parametrize("times", [2, 4])
@pytest.mark.parametrize("largest", [8, 16])
@pytest.mark.parametrize("kind", DEVICES)
def test_the_interval_holds_what_comes_beyond_the_largest_batch(
    kind: Callable[[random.Random], Device], largest: int, times: int
) -> None:
    covered = 0
    for seed in range(RUNS):
        dice = random.Random(seed)
        device = kind(dice)
        curve, size = fitted(seen(device, largest, dice)), largest * times
        quicker, slower = curve.reach(size)
        covered += quicker <= device(size) / curve.batch_ms(size) <= slower
    assert covered / RUNS >= ENOUGH


@pytest.mark.parametrize("kind", DEVICES)
def test_so_does_the_interval_of_a_percentile(kind: Callable[[random.Random], Device]) -> None:
    """At half of what the batches that were never seen can carry, which is not known either."""
    batching, covered, runs = Batching(True, 16, 32, 30.0), 0, 20
    for seed in range(runs):
        dice = random.Random(seed)
        device = kind(dice)
        curve = fitted(seen(device, 8, dice))
        rate_rps = 0.5 * 32 / device(32) * 1000
        one = Scenario(Traffic(rate_rps), curve, batching)
        true = ServiceCurve(0.0, 0.0, knots=tuple((size, device(size)) for size in range(1, 33)))
        came = simulate(replace(one, curve=true), 1_000, seed)
        told = estimate(one, 1_000).p95_ms
        assert came is not None
        # Without a figure nothing false was said.
        covered += told is None or told.low <= came.percentile_ms(0.95) <= (told.high or math.inf)
    assert covered / runs >= ENOUGH


def line(*sizes: int) -> list[BatchTime]:
    return [BatchTime(size, 200, 20.0 + size) for size in sizes]


def test_a_stack_that_ran_batches_of_eight_may_take_less_at_sixteen_than_its_line_says() -> None:
    """Batches of 16 took 36.4 ms where 39.1 ms were predicted, from executions of up to 8."""
    curve = fitted([BatchTime(size, 200, 16.0 + size * 1.44) for size in (1, 2, 4, 6, 8)])
    assert curve.batch_ms(16) == pytest.approx(39.1, abs=0.1)
    quicker, _ = curve.reach(16)
    assert curve.batch_ms(16) * quicker < 36.4


def test_the_interval_widens_with_the_distance() -> None:
    curve = fitted(line(1, 2, 4, 8))
    widths = [slower - quicker for quicker, slower in map(curve.reach, (8, 9, 12, 16, 24, 32, 64))]
    assert widths == sorted(widths)
    assert widths[0] == pytest.approx(0.04, abs=0.001)
    assert widths[1] < 0.2


def test_where_batches_were_seen_nothing_changes() -> None:
    curve = fitted([BatchTime(size, 90, 20.0 + size + 0.3 * (-1) ** size) for size in (1, 2, 3, 4, 6, 8)])
    known = replace(curve, beyond=None)
    for batching in (Batching(True, 4, 8, 10.0), Batching(False, 0, 32, 0.0)):
        one, other = (Scenario(Traffic(40.0), each, batching) for each in (curve, known))
        assert capacity_band(one) == capacity_band(other)
        assert estimate(one, 400, 7) == estimate(other, 400, 7)


def test_where_nothing_climbed_the_next_step_may_come_at_once() -> None:
    """A device that pads to eight takes as long for one as for eight, and for nine as long as for sixteen."""
    flat, climbs = fitted([BatchTime(size, 200, 28.0) for size in (1, 2, 4, 8)]), fitted(line(1, 2, 4, 8))
    assert flat.reach(9)[1] > 2.0
    assert climbs.reach(9)[1] < 1.2


def test_a_likely_curve_never_falls_and_is_the_line_where_it_was_seen() -> None:
    curve = fitted(line(1, 2, 4, 8))
    for one in drawn(Scenario(Traffic(40.0), curve, Batching(True, 16, 64, 100.0)), 21):
        table = one.curve.table_ms(64)
        assert table == sorted(table)
    assert curve.shifted(0, 0, 2).batch_ms(32) == pytest.approx(28.0 * 4, rel=0.02)
    assert curve.shifted(0, 0, -2).batch_ms(32) == pytest.approx(28.0)
    assert curve.shifted(0, 0, -9).batch_ms(32) == pytest.approx(28.0)
    assert curve.shifted(0, 0, 2).batch_ms(8) == pytest.approx(28.0)
    assert curve.shifted(0, 0, 1).scaled(3).batch_ms(32) == pytest.approx(3 * curve.shifted(0, 0, 1).batch_ms(32))


def test_a_curve_that_is_scaled_bends_as_much() -> None:
    curve = fitted([BatchTime(size, 200, 10.0 + size**2) for size in range(1, 9)])
    assert curve.beyond is not None
    assert curve.beyond.curvature_ms == pytest.approx(1.0, rel=0.1)
    assert curve.scaled(2).reach(32) == pytest.approx(curve.reach(32))


@pytest.mark.parametrize("times", [line(1, 8), [*line(4), *line(8)], line(2, 2, 8)])
def test_two_sizes_tell_no_bend(times: list[BatchTime]) -> None:
    assert curvature_ms([(one.size, one.mean_ms, one.executions) for one in times]) == 0.0
    assert fitted(times).reach(32)[1] > 2.0


def test_what_bends_downwards_is_not_taken_to_bend_upwards() -> None:
    assert curvature_ms([(size, 20 + 30 * math.sqrt(size), 500) for size in range(1, 17)]) == 0.0


def test_a_mean_of_few_executions_makes_no_bend() -> None:
    """The very first execution of a real Triton took 91 ms where 24 are usual."""
    points = [(float(size), 20.0 + size, 200.0) for size in range(1, 9)]
    with_warm_up = [*points[:3], (4.0, 91.0, 1.0), *points[4:]]
    assert curvature_ms(with_warm_up) < 0.5


def test_the_words_say_where_knowledge_ends() -> None:
    curve = fitted(line(1, 2, 4, 8))
    assert curve.unseen(8) == ""
    assert curve.unseen(32) == "; batches above 8 were never seen"
    assert ServiceCurve(20.0, 1.0).unseen(32) == ""


def rates(size: float, **more: float) -> ServiceCurve:
    curve = calibrate(dict(zip(NEEDED, (20.0 + size, size, 30.0, 30.0 * size / 1000), strict=True)) | more)
    assert isinstance(curve, ServiceCurve)
    return curve


def test_rates_know_batches_up_to_twice_their_mean_as_far_as_the_settings_allow() -> None:
    assert rates(3.0).unseen(4) == "; batches above 3 were hardly seen"
    assert rates(3.0, config_max_batch_size=32.0).unseen(6) == ""
    assert rates(3.0, config_max_batch_size=32.0).unseen(32) == "; batches above 6 were hardly seen"
    assert rates(8.0, config_max_batch_size=8.0).unseen(16) == "; batches above 8 were hardly seen"
    assert rates(8.0, config_max_batch_size=4.0).unseen(8) == ""


def test_the_edges_meet_at_the_largest_batch() -> None:
    beyond = Beyond(1, 8, curvature_ms=0.1)
    assert beyond.edges_ms(8, 28.0, 28.0) == (28.0, 28.0)
    assert beyond.edges_ms(16, 36.0, 28.0) == (28.0, 56.0)
    assert beyond.edges_ms(64, 84.0, 28.0)[1] == pytest.approx(84 + 0.1 * 63 * 56)
    assert beyond.likely_ms(16, 0.0, 0.0, 2.0) == 0.0
