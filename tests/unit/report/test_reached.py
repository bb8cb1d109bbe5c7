"""A prediction beside what verification measured of it."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from latencydoctor.model.remedy import Check, Decision, Prediction, Verification
from latencydoctor.report import change
from latencydoctor.report.reached import reached
from tests.unit.app.test_drill import PLAN


def check(hit_ratio: float | None, *, conclusive: bool = True) -> Check:
    return Check(0.0, 200.0, 0.0, None, 3000.0, True, conclusive, "", hit_ratio)


VERIFIED = Verification(
    Decision.KEEP, "three passed", (check(0.40), check(0.46), check(0.47), check(0.9, conclusive=False))
)


def test_it_is_the_middle_of_the_conclusive_checks() -> None:
    assert reached("cache_hit_ratio", VERIFIED) == 0.46
    assert reached("e2e_p99_ms", VERIFIED) == 200.0


def test_what_no_check_measures_is_not_known() -> None:
    assert reached("capacity_rps", VERIFIED) is None
    assert reached("cache_hit_ratio", None) is None
    assert reached("cache_hit_ratio", Verification(Decision.HOLD, "", (check(None),))) is None


def test_both_are_shown_on_one_line() -> None:
    predictions = (
        Prediction("cache_hit_ratio", "ratio", 0.12, 0.45, 0.43, 0.47, "counted"),
        Prediction("e2e_p99_ms", "ms", 2000.0, 100.0, 90.0, 110.0, "simulated"),
        Prediction("capacity_rps", "requests/s", 1.0, 2.0, None, None, "fitted"),
    )
    plan = replace(PLAN, predictions=predictions)
    console = Console(file=io.StringIO(), width=120, color_system=None)
    change.show_reached(plan, VERIFIED, console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "cache hit ratio: predicted 45 %, reached 46 %, within the interval",
        "p99 latency: predicted 100 ms, reached 200 ms",
    ]
