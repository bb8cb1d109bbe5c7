"""Which plans a canary tries first, and the settings that make it."""

from __future__ import annotations

import dataclasses

import pytest

from latencydoctor.model.canary import CanaryKind
from latencydoctor.model.remedy import Operation, OperationKind, Plan, TargetObject, TargetState
from latencydoctor.remedy import catalog
from latencydoctor.remedy.catalog import Fix
from latencydoctor.remedy.staging import NoCanary, Stage, is_staged, stage

FIX = catalog.find("batch-floor")
WIDER = (("inference.batching.max_batch_size", "32"),)


def state(*settings: tuple[str, str], effective: tuple[tuple[str, str], ...] = ()) -> TargetState:
    return TargetState("bundled:/x", (TargetObject("settings.yaml", 1, "d"),), settings, "", effective, "")


def plan(values: tuple[tuple[str, str], ...], kind: OperationKind = OperationKind.SET_SETTING) -> Plan:
    operations = tuple(Operation(kind, "settings.yaml", key, "", value) for key, value in values)
    return Plan(1, FIX.id, "", "", 0.0, (), operations, "", "", (), (), "", (), (), (), False, "")


@pytest.mark.parametrize(("replicas", "share"), [("2", 0.5), ("4", 0.25)])
def test_a_canary_of_batching_is_one_of_the_replicas_with_its_equal_share(replicas: str, share: float) -> None:
    found = stage(FIX, plan(WIDER), state(("inference.replicas", replicas)))
    assert isinstance(found, Stage)
    assert (found.kind, found.share_ratio) == (CanaryKind.REPLICA, share)
    assert found.values == (("canary.batching.max_batch_size", "32"),)


def test_how_many_replicas_run_counts_where_the_settings_do_not_say() -> None:
    assert isinstance(stage(FIX, plan(WIDER), state(effective=(("inference.replicas", "2"),))), Stage)


def test_a_canary_of_a_version_has_a_share_of_the_sessions_on_any_number_of_replicas() -> None:
    fix: Fix = dataclasses.replace(FIX, canary=CanaryKind.VERSION)
    made = plan((("inference.precision", "int8"),))
    served = Operation(OperationKind.SERVE_BUILD, "INT8 build", "digest", "", "d")
    made = dataclasses.replace(made, operations=(*made.operations, served))
    found = stage(fix, made, state(("inference.replicas", "1")), 0.1)
    assert isinstance(found, Stage)
    assert found.values == (("canary.precision", "int8"), ("canary.share_ratio", "0.1"))
    assert found.told == "a version of the model answers 10 % of the sessions"


@pytest.mark.parametrize(("busy", "tried"), [(0.85, True), (0.86, False)])
def test_a_version_is_not_tried_on_an_accelerator_that_both_would_queue_for(busy: float, *, tried: bool) -> None:
    fix: Fix = dataclasses.replace(FIX, canary=CanaryKind.VERSION)
    made = dataclasses.replace(
        plan((("inference.precision", "int8"),)), before_values=(("accelerator_busy_ratio", busy),)
    )
    found = stage(fix, made, state())
    assert isinstance(found, Stage) is tried
    assert tried or (isinstance(found, NoCanary) and "busy 86 %" in found.reason)


@pytest.mark.parametrize(
    ("fix", "made", "held", "told"),
    [
        (FIX, plan(WIDER), state(("inference.replicas", "1")), "no second replica"),
        (FIX, plan(WIDER), state(), "does not say how many replicas"),
        (FIX, plan((("cache.ttl_seconds", "300"),)), state(("inference.replicas", "2")), "what all requests share"),
        (FIX, plan(WIDER, OperationKind.WARM_CACHE), state(("inference.replicas", "2")), "what all requests share"),
        (catalog.find("cache-warmup"), plan(WIDER), state(("inference.replicas", "2")), "what all requests share"),
    ],
)  # fmt: skip
def test_where_there_can_be_none_it_says_why(fix: Fix, made: Plan, held: TargetState, told: str) -> None:
    found = stage(fix, made, held)
    assert isinstance(found, NoCanary)
    assert told in found.reason


def test_a_canary_in_place_is_seen() -> None:
    assert is_staged(state(("canary.batching.max_batch_size", "8")))
    assert not is_staged(state(("inference.batching.max_batch_size", "8")))
