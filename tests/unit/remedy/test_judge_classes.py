"""Judged by what VIP requests see: what is turned away on purpose is no error, and too much of it is a failure."""

from __future__ import annotations

import dataclasses

import pytest

from latencydoctor.model.remedy import Decision, Plan, Reading, Requirement
from latencydoctor.remedy.judge import JudgePolicy, as_judged, before_worse, check_of, rule, values_before

POLICY = JudgePolicy()
BEFORE = {"e2e_p99_ms": 3000.0, "vip_p99_ms": 2900.0, "error_ratio": 0.3}


def plan(**before: float) -> Plan:
    requirements = (
        Requirement("error_ratio", "ratio", 0.005),
        Requirement("vip_p99_ms", "ms", 500.0),
        Requirement("vip_error_ratio", "ratio", 0.005),
        Requirement("shed_ratio", "ratio", 0.6),
    )
    return Plan(
        1, "vip-priority", "", "t", 0.0, (), (), "", "", (), (), "", (), requirements, tuple(before.items()), False, ""
    )


def reading(errors: float = 0.44, **also: float) -> Reading:
    found = {"vip_p99_ms": 180.0, "vip_error_ratio": 0.0, "shed_ratio": 0.44, "vip_requests": 220.0, **also}
    return Reading(700.0, errors, None, 3600.0, also=tuple(found.items()))


def note(of: Reading) -> tuple[bool, bool, str]:
    check = check_of(of, plan(), POLICY, 1.0)
    return check.passed, check.conclusive, check.note


def test_shed_requests_are_no_errors_and_a_slow_p99_of_all_does_not_matter() -> None:
    assert note(dataclasses.replace(reading(), p99_ms=2500.0)) == (True, True, "")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"vip_p99_ms": 501.0}, "vip_p99_ms 501 above 500"),
        ({"vip_error_ratio": 0.006}, "vip_error_ratio 0.006 above 0.005"),
        ({"shed_ratio": 0.61, "errors": 0.61}, "shed_ratio 0.61 above 0.6"),
        ({"errors": 0.446}, "error_ratio 0.006 above 0.005"),
        ({"shed_ratio": 0.0}, "error_ratio 0.44 above 0.005"),
    ],
)
def test_each_limit_is_a_failure_of_its_own(changed: dict[str, float], says: str) -> None:
    assert note(reading(**changed)) == (False, True, says)


def test_without_the_figures_or_enough_vip_requests_nothing_is_judged() -> None:
    bare = Reading(700.0, 0.44, None, 3600.0, also=(("vip_requests", 220.0), ("vip_error_ratio", 0.0)))
    assert note(bare) == (False, False, "no data on the p99 of VIP requests and what was turned away")
    assert note(reading(vip_requests=60.0)) == (False, False, "60 VIP requests of the 100 needed: 40 more")


def test_shedding_is_not_worse_than_before_and_breaking_is() -> None:
    calm = plan(**{**BEFORE, "error_ratio": 0.0})
    kept = [check_of(reading(), calm, POLICY, float(at)) for at in range(3)]
    assert rule(kept, calm, POLICY).decision is Decision.KEEP
    broken = check_of(reading(errors=0.5), calm, POLICY, 1.0)
    assert rule([broken], calm, POLICY).decision is Decision.ROLL_BACK


def test_failures_are_held_against_what_vip_saw_before() -> None:
    slow = reading(vip_p99_ms=900.0)
    incident, healthy = plan(**BEFORE), plan(e2e_p99_ms=3000.0, vip_p99_ms=200.0, error_ratio=0.0)
    for of, decision in ((incident, Decision.HOLD), (healthy, Decision.ROLL_BACK)):
        checks = [check_of(slow, of, POLICY, float(at)) for at in range(3)]
        assert rule(checks, of, POLICY).decision is decision


def test_a_rollback_weighs_vip_against_vip() -> None:
    of = plan(**BEFORE, shed_ratio=0.1)
    assert values_before(of) == {**BEFORE, "e2e_p99_ms": 2900.0, "error_ratio": pytest.approx(0.2), "shed_ratio": 0.1}
    now = as_judged(reading(), of)
    assert (now.p99_ms, now.error_ratio) == (180.0, 0.0)
    assert before_worse(values_before(of), now) == "p99 2900 ms then, 180 ms now"
