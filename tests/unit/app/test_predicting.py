"""What a change is expected to do, on targets that state their batching and their servers differently."""

from __future__ import annotations

import pytest

from latencydoctor.app.predicting import need_of, predictions, replicas_of, supply_of
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.model.remedy import Prediction, TargetState
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.scale_out import INSTANCES, REPLICAS

TIMES = tuple(BatchTime(size, 200, 5 + 3.6 * size) for size in (1, 4, 8, 16, 32))
LOAD = {"request_rate_rps": 300.0}
BATCHING = (("inference.batching.max_batch_size", "32"), ("inference.batching.timeout_micros", "50000"))


def target(*settings: tuple[str, str], settable: frozenset[str] | None = None) -> TargetState:
    return TargetState("t", (), (*BATCHING, *settings), "", (), "", settable=settable)


def predicted(state: TargetState, *values: tuple[str, str]) -> dict[str, Prediction]:
    return {one.signal: one for one in predictions(state, Change(tuple(values), ()), LOAD, TIMES, {})}


def test_a_server_without_a_switch_batches_as_soon_as_a_batch_may_hold_more_than_one() -> None:
    silent, on = target(), target(("inference.batching.enabled", "true"))
    assert predicted(silent)["capacity_rps"].before == predicted(on)["capacity_rps"].before
    off = predicted(target(("inference.batching.enabled", "false")))["capacity_rps"].before
    assert off == pytest.approx(1000 / 8.6, rel=0.02)


def test_replicas_and_instances_both_add_to_what_can_be_served() -> None:
    one = predicted(target())["capacity_rps"]
    assert one.before == one.after
    for key in (REPLICAS, INSTANCES):
        more = predicted(target((key, "1")), (key, "2"))["capacity_rps"]
        assert more.before == one.before
        assert more.after == pytest.approx(2 * (one.before or 0.0))


def test_what_is_needed_is_told_in_the_servers_that_a_target_can_add() -> None:
    assert "replicas" in need_of(target(), LOAD, TIMES, 1000.0).told
    alone = target((INSTANCES, "1"), settable=frozenset({INSTANCES}))
    assert "instances" in need_of(alone, LOAD, TIMES, 1000.0).told


def test_supply_is_that_of_all_replicas() -> None:
    one, three = supply_of(target(), LOAD, TIMES), supply_of(target((REPLICAS, "3")), LOAD, TIMES)
    assert one is not None
    assert three is not None
    assert three.capacity_rps == pytest.approx(3 * one.capacity_rps)
    assert supply_of(target(), {}, ()) is None
    assert (replicas_of(target()), replicas_of(target((REPLICAS, "3")))) == (1, 3)
