"""What each priority saw stands beside what all saw, where there were priorities, and nowhere else."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from latencydoctor.app.scenarios import find
from latencydoctor.model.drill import Drilled, DrillFigures, DrillWindow
from latencydoctor.model.incident import IncidentRecord, LoadWindow
from latencydoctor.model.load import ClassStats, LoadPlan, Phase
from latencydoctor.model.remedy import Check, Decision, Verification
from latencydoctor.report import drill, markdown
from latencydoctor.report.change import check_line
from tests.fakes.clock import FakeClock
from tests.fakes.drill import FakeLoad, Scene
from tests.unit.app.test_drill import healthy

CHECK = Check(0.0, 700.0, 0.44, None, 3000.0, True, True, "", 0.12)
SHEDDING = replace(CHECK, also=(("shed_ratio", 0.44), ("vip_p99_ms", 181.0)))
VIP, STANDARD = ClassStats(160, 160, 0, 0, 150.0, 312.0), ClassStats(2900, 1400, 1500, 0, 400.0, 531.0)


def test_errors_that_were_turned_away_on_purpose_are_told_from_the_others() -> None:
    assert "errors 44 %, of them turned away 44 %, VIP p99 181 ms" in str(check_line(SHEDDING))
    assert "turned away" not in str(check_line(CHECK))


def test_a_check_says_the_zone_of_its_time() -> None:
    assert str(check_line(CHECK)).startswith("00:00:00 UTC  passed")


def record(*windows: LoadWindow) -> IncidentRecord:
    verification = Verification(Decision.KEEP, "three passed", (SHEDDING,))
    return IncidentRecord("Drill", "sim:small", healthy(), None, verification, (), windows)


def test_the_report_has_columns_for_priorities_only_where_there_were_some() -> None:
    plain = LoadWindow("calm", 0.0, 10.0, 65.0, 65.0, 40.0, 90.0, 0, 0.12)
    text = markdown.incident(record(plain, replace(plain, vip_p99_ms=312.0, standard_p99_ms=531.0, shed_ratio=0.52)))
    assert "| VIP p99 | standard p99 | turned away |" in text
    assert "| 312 ms | 531 ms | 52 % |" in text
    assert "of them turned away 44 %; VIP p99 181 ms" in text
    assert "VIP p99 |" not in markdown.incident(record(plain))


def summary(drilled: Drilled) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    drill.summary(drilled, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_drill_shows_its_windows_by_priority_and_what_vip_gained() -> None:
    plan = LoadPlan("u", (Phase("calm", 300.0, None),), ("q",))
    stats = FakeLoad(Scene(FakeClock()), plan).window(0.0, 10.0)
    figures = DrillFigures(
        3000.0, 3000.0, 1.0, 10, 10, 310.0, 160.0, 0.2, 50.0, "saturation", "sim:small",
        vip_p99_before_ms=3000.0, vip_p99_after_ms=312.0, vip_failed_after=0, shed_after_ratio=0.52,
    )  # fmt: skip
    window = DrillWindow("after", replace(stats, vip=VIP, standard=STANDARD))
    drilled = Drilled(find("vip-flood"), figures, (window,), record(), ())
    text = summary(drilled)
    assert "VIP p99" in text
    assert "51.7 %" in text
    assert "VIP p99 3,000 ms → 312 ms, 52 % of the standard requests turned away" in text
    bare = Drilled(find("batching"), figures, (DrillWindow("after", stats),), record(), ())
    assert "turned away" not in summary(bare)
