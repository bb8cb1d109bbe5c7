"""How `make drills` counts; the drills themselves are for it to run."""

from __future__ import annotations

import pytest

from benchmarks import drills
from latencydoctor.app.scenarios import find

THROTTLED = find("throttled")


@pytest.mark.parametrize(
    ("lines", "outcome", "told"),
    [
        (['{"cause": "accelerator-throttled"}'], "right", "accelerator-throttled"),
        (["a table", '{"cause": "thermal-throttling"}'], "right", "thermal-throttling"),
        (["NOT AS DESIGNED: late", '{"cause": "saturation"}'], "wrong", "saturation (late)"),
        (["NOT AS DESIGNED: no alert", '{"cause": null}'], "cannot tell", "no cause (no alert)"),
        ([], "broken", "Error: too busy"),
        (["half a line {"], "broken", "Error: too busy"),
        (["[]"], "broken", "Error: too busy"),
    ],
)
def test_a_run_is_worth_what_its_last_line_says(lines: list[str], outcome: str, told: str) -> None:
    run = drills.read(THROTTLED, lines, ["Error: too busy"], 40.0)
    assert (run.fault, run.outcome, run.told, run.took_s) == ("throttled", outcome, told, 40.0)


def test_a_fault_meets_the_target_with_nine_of_ten() -> None:
    runs = [drills.Run("throttled", "right" if n else "broken", "", float(n)) for n in range(10)]
    runs += [drills.Run("slow-cache", "right" if n > 1 else "wrong", "", float(n)) for n in range(10)]
    lines = drills.table(runs).splitlines()
    assert lines[1].split() == ["throttled", "10", "9", "0", "0", "1", "4", "s", "met"]
    assert lines[2].split() == ["slow-cache", "10", "8", "2", "0", "0", "4", "s", "MISSED"]


def test_faults_take_turns_and_the_first_two_are_left_to_the_demo() -> None:
    faults = [scenario.fault for scenario in drills.wanted({"RUNS": "2"})]
    half = len(faults) // 2
    assert faults[:half] == faults[half:]
    assert not set(faults) & {"batching", "none"}
    assert {"saturation", "saturation-at-limit"} <= set(faults)
    assert [scenario.fault for scenario in drills.wanted({"QUICK": "1"})] == ["throttled"]
    assert [one.fault for one in drills.wanted({"RUNS": "1", "FAULTS": "slow-cache,long-delay"})] == [
        "slow-cache",
        "long-delay",
    ]
