"""The order of decisions, at and around each limit."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest

from latencydoctor.model.remedy import Check, Decision, Plan, Reading, Requirement
from latencydoctor.remedy.judge import JudgePolicy, before_worse, check_of, rule

POLICY = JudgePolicy()


def plan(**before: float) -> Plan:
    requirements = (
        Requirement("e2e_p99_ms", "ms", 1000.0),
        Requirement("error_ratio", "ratio", 0.005),
        Requirement("accelerator_memory_used_bytes", "bytes", 3e9),
    )
    return Plan(
        1, "batch-floor", "", "t", 0.0, (), (), "", "", (), (), "", (), requirements, tuple(before.items()), False, ""
    )


def reading(
    p99: float | None = 100.0, errors: float | None = 0.0, memory: float | None = 2e9, requests: float | None = 500.0
) -> Reading:
    return Reading(p99, errors, memory, requests)


def checks(word: str, of: Plan, **figures: float) -> list[Check]:
    """p = pass, f = too slow, n = no data."""
    made = {
        "p": reading(),
        "f": dataclasses.replace(reading(figures.get("p99", 1500.0)), error_ratio=figures.get("errors", 0.0)),
        "n": Reading(None, None, None, None),
    }
    return [check_of(made[letter], of, POLICY, float(at)) for at, letter in enumerate(word)]


@pytest.mark.parametrize(
    ("word", "decision"),
    [
        ("p", None),
        ("pp", None),
        ("ppp", Decision.KEEP),
        ("ff", None),
        ("fff", Decision.ROLL_BACK),
        ("ffp", None),
        ("ffpf", None),  # three failures, but not in a row
        ("ffpff", None),
        ("ffpfff", Decision.ROLL_BACK),
        ("fnff", Decision.ROLL_BACK),  # no data neither counts as a failure nor ends the row
        ("pnpp", Decision.KEEP),
        ("pppn", None),  # no data is never what keeps a change
        ("nnn", Decision.HOLD),
        ("nnp", None),
        ("fnnn", Decision.HOLD),
        ("pfpfpfpfpfpf", Decision.HOLD),
    ],
)
def test_checks_in_a_row_decide(word: str, decision: Decision | None) -> None:
    of = plan(e2e_p99_ms=500.0)
    found = [rule(checks(word[: end + 1], of), of, POLICY).decision for end in range(len(word))]
    assert found[-1] is decision
    if word != "pppn":
        assert set(found[:-1]) <= {None}, "the judge had decided before"


def test_no_check_no_decision() -> None:
    assert rule([], plan(), POLICY).decision is None


@pytest.mark.parametrize(
    ("before", "decision"),
    [
        ({"e2e_p99_ms": 2000.0}, Decision.HOLD),
        ({"e2e_p99_ms": 1651.0}, Decision.HOLD),  # just more than ten per cent worse than 1500
        ({"e2e_p99_ms": 1650.0}, Decision.ROLL_BACK),
        ({"e2e_p99_ms": 900.0}, Decision.ROLL_BACK),
        ({}, Decision.ROLL_BACK),  # never measured, so not measured worse
        ({"error_ratio": 0.2}, Decision.HOLD),
        ({"error_ratio": 0.2, "e2e_p99_ms": 300.0}, Decision.ROLL_BACK),  # fewer errors, but five times slower
    ],
)
def test_after_three_failures_the_state_before_decides(before: dict[str, float], decision: Decision) -> None:
    of = plan(**before)
    ruling = rule(checks("fff", of), of, POLICY)
    assert ruling.decision is decision
    assert "3 checks in a row failed: e2e_p99_ms 1500 above 1000" in ruling.reason


def test_worse_memory_rolls_back_at_once_and_before_everything_else() -> None:
    of = plan(e2e_p99_ms=9000.0)
    full = check_of(reading(memory=3.1e9), of, POLICY, 0.0)
    ruling = rule([*checks("pp", of), full], of, POLICY)
    assert (ruling.decision, "memory is worse" in ruling.reason) == (Decision.ROLL_BACK, True)
    assert rule([check_of(reading(memory=3e9), of, POLICY, 0.0)], of, POLICY).decision is None


@pytest.mark.parametrize(
    ("errors", "before", "requests", "decision"),
    [
        (0.05, 0.0, 500.0, Decision.ROLL_BACK),
        (0.05, 0.046, 500.0, None),  # not more than half a per cent worse
        (0.05, 0.2, 500.0, None),
        (0.02, 0.0, 240.0, None),  # 4.8 failed requests are too few to say
        (0.004, 0.0, 5000.0, None),  # within the limit
        (0.05, None, 500.0, None),  # nothing says that they grew: a failed check, no more
    ],
)
def test_worse_errors(errors: float, before: float | None, requests: float, decision: Decision | None) -> None:
    of = plan() if before is None else plan(error_ratio=before)
    assert rule([check_of(reading(errors=errors, requests=requests), of, POLICY, 0.0)], of, POLICY).decision is decision


def test_limits_are_part_of_what_passes() -> None:
    of = plan()
    assert check_of(reading(p99=1000.0, errors=0.005, memory=3e9), of, POLICY, 0.0).passed
    for bad in (reading(p99=1000.1), reading(errors=0.0051), reading(memory=3.0001e9)):
        check = check_of(bad, of, POLICY, 0.0)
        assert (check.passed, check.conclusive) == (False, True)
        assert "above" in check.note


@pytest.mark.parametrize("absent", [None, math.nan, math.inf, -1.0])
@pytest.mark.parametrize("name", ["p99_ms", "error_ratio", "memory_bytes", "requests"])
def test_an_absent_figure_is_never_a_pass(name: str, absent: float | None) -> None:
    check = check_of(dataclasses.replace(reading(), **{name: absent}), plan(), POLICY, 0.0)  # type: ignore[arg-type]  # a field by name
    assert (check.passed, check.conclusive) == (False, False)
    assert "no data" in check.note


def test_memory_is_only_needed_where_it_was_measured_before() -> None:
    of = dataclasses.replace(plan(), requirements=plan().requirements[:2])
    assert check_of(reading(memory=None), of, POLICY, 0.0).passed


def test_too_few_requests_say_how_many_more() -> None:
    check = check_of(reading(requests=150.4), plan(), POLICY, 0.0)
    assert (check.passed, check.conclusive, check.note) == (False, False, "150 requests of the 200 needed: 50 more")
    assert check_of(reading(requests=200.0), plan(), POLICY, 0.0).passed


def test_a_doubt_of_the_reader_is_inconclusive() -> None:
    check = check_of(dataclasses.replace(reading(), note="the metrics are stale"), plan(), POLICY, 0.0)
    assert (check.conclusive, check.note) == (False, "the metrics are stale")


def test_nothing_without_data_is_ever_kept() -> None:
    of = plan()
    for letters in itertools.product("nf", repeat=4):
        assert rule(checks("".join(letters), of), of, POLICY).decision is not Decision.KEEP


def test_before_is_only_worse_where_it_was_measured() -> None:
    assert before_worse({}, reading()) == ""
    assert before_worse({"e2e_p99_ms": 2000.0}, reading(p99=None)) == ""
    assert before_worse({"error_ratio": 0.2}, reading(errors=None)) == ""
