"""What the batch floor proposes, for which rate, and what it warns of."""

from __future__ import annotations

import pytest

from latencydoctor.model.remedy import NothingToDo, TargetState
from latencydoctor.remedy import batch_floor
from latencydoctor.remedy.batch_floor import BatchFloor, propose, reachable_floor
from latencydoctor.remedy.batching_lint import needed_wait_ms
from latencydoctor.remedy.change import Change

KEYS = (batch_floor.ENABLED, batch_floor.PREFERRED, batch_floor.MAXIMUM, batch_floor.WAIT)


def state(*values: str, effective: dict[str, str] | None = None) -> TargetState:
    settings = tuple(zip(KEYS, values, strict=False))
    return TargetState("bundled:/x", (), settings, "", tuple((effective or {}).items()), "")


def change(of: TargetState, wanted: BatchFloor = batch_floor.DEFAULT, rate: float | None = 320.0) -> dict[str, str]:
    found = propose(of, wanted, rate)
    assert isinstance(found, Change), found
    return {key.rpartition(".")[2]: value for key, value in found.values}


def test_the_scene() -> None:
    found = change(state("true", "0", "8", "0"))
    assert found == {"preferred_batch_size": "16", "max_batch_size": "32", "timeout_micros": "100000"}


def test_only_what_differs_changes() -> None:
    assert change(state("true", "16", "8", "100000")) == {"max_batch_size": "32"}
    assert change(state("false", "16", "32", "100000")) == {"enabled": "true"}


@pytest.mark.parametrize("rate", [None, 320.0, 5000.0])
def test_nothing_to_do_on_healthy_settings(rate: float | None) -> None:
    found = propose(state("true", "16", "32", "100000"), batch_floor.DEFAULT, rate)
    assert isinstance(found, NothingToDo)
    assert "already" in found.reason


def test_what_already_does_more_is_left_alone() -> None:
    assert isinstance(propose(state("true", "24", "64", "100000"), batch_floor.DEFAULT, 320.0), NothingToDo)
    # At 320/s a batch of 16 fills in 47 ms: a wait of 60 ms meets it, one of 50 ms does so too rarely.
    assert isinstance(propose(state("true", "16", "32", "60000"), batch_floor.DEFAULT, 320.0), NothingToDo)
    assert change(state("true", "16", "32", "50000")) == {"timeout_micros": "100000"}
    # Without a rate nothing shows that less than the whole wait is enough.
    assert change(state("true", "16", "32", "60000"), rate=None) == {"timeout_micros": "100000"}


def test_a_wait_longer_than_allowed_is_cut() -> None:
    assert change(state("true", "16", "32", "5000000")) == {"timeout_micros": "100000"}


def test_a_setting_the_file_leaves_out_is_judged_by_what_the_server_runs() -> None:
    effective = {batch_floor.PREFERRED: "16", batch_floor.MAXIMUM: "8", batch_floor.WAIT: "100000"}
    assert change(state("true", effective=effective)) == {"max_batch_size": "32"}


def test_the_floor_is_what_arrivals_can_fill() -> None:
    assert needed_wait_ms(16, 150.0) == pytest.approx(100.0)
    assert reachable_floor(batch_floor.DEFAULT, None) == 16
    assert reachable_floor(batch_floor.DEFAULT, 187.5) == 16
    assert reachable_floor(batch_floor.DEFAULT, 187.4) == 15
    assert change(state("true", "0", "8", "0"), rate=60.0)["preferred_batch_size"] == "5"
    found = propose(state("true", "0", "8", "0"), batch_floor.DEFAULT, 60.0)
    assert "A batch of 16 would need a wait of 312 ms, so the floor is 5." in found.side_effects  # type: ignore[union-attr]  # it is a change


def test_at_a_trickle_a_floor_would_only_add_its_wait() -> None:
    found = propose(state("true", "0", "8", "0"), batch_floor.DEFAULT, 5.0)
    assert isinstance(found, NothingToDo)
    assert "only add that wait" in found.reason


def test_the_ceiling_of_a_preferred_size_below_the_maximum_is_told() -> None:
    found = propose(state("true", "0", "8", "0"), batch_floor.DEFAULT, 320.0)
    assert isinstance(found, Change)
    assert any("batches of exactly 16" in line for line in found.side_effects)
    even = propose(state("true", "0", "8", "0"), BatchFloor(32, 32), 900.0)
    assert isinstance(even, Change)
    assert not any("exactly" in line for line in even.side_effects)


def test_an_unknown_rate_is_told() -> None:
    found = propose(state("true", "0", "8", "0"), batch_floor.DEFAULT, None)
    assert isinstance(found, Change)
    assert "arrival rate is not known" in found.side_effects[0]


def without_preferred(size: str, wait: str) -> TargetState:
    """A server that waits until a batch is full, as TorchServe does."""
    settings = ((batch_floor.MAXIMUM, size), (batch_floor.WAIT, wait))
    return TargetState(
        "torchserve:x", (), settings, "", ((batch_floor.ENABLED, "true"),), "",
        settable=frozenset({batch_floor.MAXIMUM, batch_floor.WAIT}),
    )  # fmt: skip


def test_where_a_batch_waits_until_it_is_full_the_maximum_is_the_floor() -> None:
    assert change(without_preferred("1", "50000")) == {"max_batch_size": "16", "timeout_micros": "100000"}
    # At 80/s seven requests come within the wait, so no more are waited for.
    assert change(without_preferred("1", "100000"), rate=80.0) == {"max_batch_size": "7"}


def test_where_a_batch_waits_until_it_is_full_a_larger_one_is_left_alone() -> None:
    found = propose(without_preferred("24", "100000"), batch_floor.DEFAULT, 320.0)
    assert isinstance(found, NothingToDo)


def test_what_only_concerns_triton_is_not_said_elsewhere() -> None:
    found = propose(without_preferred("1", "0"), batch_floor.DEFAULT, 320.0)
    assert isinstance(found, Change)
    assert not any("Triton" in note for note in found.side_effects)
