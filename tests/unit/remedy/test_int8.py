"""When INT8 is planned, what the plan says of it, and what is refused."""

from __future__ import annotations

import pytest

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.remedy import NothingToDo, Operation, OperationKind, Plan, TargetState
from latencydoctor.remedy import guards, int8
from latencydoctor.remedy.change import Change
from tests.unit.model_builds import build


def state(accelerator: str = "cpu", precision: str = "") -> TargetState:
    settings = (("accelerator", accelerator), *([(int8.PRECISION, precision)] if precision else []))
    return TargetState("bundled:/x", (), settings, "", ((int8.PRECISION, "fp32"),), "")


def change(of: TargetState, measured: dict[str, float] | None = None) -> Change:
    found = int8.propose(of, build(), measured or {})
    assert isinstance(found, Change)
    return found


def test_one_setting_changes_and_the_plan_says_what_was_measured() -> None:
    found = change(state())
    assert found.values == (("inference.precision", "int8"),)
    (serve,) = found.operations
    assert (serve.kind, serve.object, serve.after) == (OperationKind.SERVE_BUILD, int8.BUILD, build().digest)
    told = " ".join(found.grounds)
    assert "at most 0.90 % (upper 95 % bound)" in told
    assert "4.0 times smaller" in told
    assert "2.50 times faster at batch 1" in told
    assert any("hit ratio starts from zero" in line for line in found.side_effects)


def test_what_is_served_already_is_nothing_to_do() -> None:
    assert isinstance(int8.propose(state(precision="int8"), build(), {}), NothingToDo)


@pytest.mark.parametrize(("size", "speedup"), [(None, 2.5), (1.4, 2.5), (12.0, 2.8), (90.0, 2.8)])
def test_the_gain_is_that_of_the_usual_batch(size: float | None, speedup: float) -> None:
    measured = {} if size is None else {"batch_size_mean": size}
    assert change(state(), measured).speedup == speedup


@pytest.mark.parametrize("accelerator", ["sim:small", "cuda"])
def test_the_gain_of_another_device_is_not_known(accelerator: str) -> None:
    assert change(state(accelerator)).speedup is None


@pytest.mark.parametrize(("upper", "questions"), [(0.01, 1228), (0.03, 1228), (0.001, 999)])
def test_a_build_that_may_lose_too_much_is_refused(upper: float, questions: int) -> None:
    with pytest.raises(Refused):
        int8.propose(state(), build(drop_upper_ratio=upper, questions=questions), {})


def plan(*digests: str) -> Plan:
    operations = tuple(Operation(OperationKind.SERVE_BUILD, int8.BUILD, "digest", "", one) for one in digests)
    return Plan(1, int8.FIX_ID, "", "", 0.0, (), operations, "", "", (), (), "", (), (), (), False, "")


def test_what_is_served_is_the_build_that_the_plan_was_made_with() -> None:
    guards.check_build(plan(build().digest), build())
    for made, there in ((plan("e" * 64), build()), (plan(), build()), (plan(build().digest), None)):
        with pytest.raises(Refused, match="the rebuilt model is not the one"):
            guards.check_build(made, there)
    with pytest.raises(Refused, match="too much"):
        guards.check_build(plan(build().digest), build(drop_upper_ratio=0.02))


def test_just_below_the_limit_is_planned() -> None:
    assert isinstance(int8.propose(state(), build(drop_upper_ratio=0.00999, questions=1000), {}), Change)


def test_a_target_without_builds_is_told_so() -> None:
    with pytest.raises(KnownError, match="no INT8 build"):
        int8.propose(state(), None, {})
