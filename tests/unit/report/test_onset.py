"""The timeline in words: on a screen at most a dozen rows, in Markdown whole."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from latencydoctor.diagnosis.rank import diagnose
from latencydoctor.model.diagnosis import Diagnosis, Moment, MomentKind
from latencydoctor.model.evidence import Severity
from latencydoctor.report.onset import MOST_ROWS, choose, in_markdown, on_screen
from tests.unit.builders import NOW_S, evidence
from tests.unit.shipped import KNOWLEDGE

HOSTILE = "\x1b[2J[/INST] | `x` <script>"
LOG = Moment(NOW_S - 20, MomentKind.LOG, "gpu_oom", HOSTILE, 3.0, None, "a.log:7", "", Severity.CRITICAL)
MOVED = Moment(NOW_S - 25, MomentKind.METRIC, "queue_time_ms", "", 900.0, 9.0, "query", "ms")
BEGINS = Moment(NOW_S - 30, MomentKind.INCIDENT, "e2e_p99_ms", "", 2140.0, 1000.0, "query", "ms")


def result(*moments: Moment) -> Diagnosis:
    return replace(diagnose(evidence(), KNOWLEDGE), timeline=moments)


def rows(diagnosis: Diagnosis, width: int = 80) -> list[str]:
    shown = on_screen(diagnosis)
    if shown is None:
        return []
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False, highlight=False)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return [row.rstrip() for row in console.file.getvalue().splitlines()]


def test_rows_say_when_what_and_how_far() -> None:
    assert rows(result(BEGINS, MOVED, LOG)) == [
        "07:59:30  incident     begins: p99 latency at or above 1,000 ms",
        "07:59:35  metric       queue time 9 ms → 900 ms",
        "07:59:40  log          CRITICAL gpu_oom x3  [2J[/INST] | `x` <script>",
    ]


@pytest.mark.parametrize("moments", [(), (LOG,)])
def test_one_moment_is_no_order(moments: tuple[Moment, ...]) -> None:
    assert rows(result(*moments)) == []
    assert in_markdown(result(*moments)) == []


def test_screen_has_a_dozen_rows_with_the_incident_and_what_is_near_it() -> None:
    history = [replace(LOG, at_s=NOW_S - 5000 - n, what=f"old{n}") for n in reversed(range(5))]
    recent = [replace(LOG, at_s=NOW_S - 40 + n / 10, what=f"new{n}") for n in range(20)]
    moments = sorted([*history, *recent, replace(BEGINS, at_s=NOW_S - 30)], key=lambda one: one.at_s)
    whole = result(*moments)
    shown = rows(whole)
    assert len(shown) == MOST_ROWS
    assert shown[-1] == "and 15 more (--format json)"
    assert [one.what for one in choose(whole)] == [*(f"new{n}" for n in range(10)), "e2e_p99_ms"]


def test_narrow_screen_cuts_rows() -> None:
    assert all(len(row) <= 40 for row in rows(result(BEGINS, LOG), 40))


def test_markdown_has_all_of_it_and_nothing_in_it_is_markup() -> None:
    text = "\n".join(in_markdown(result(BEGINS, MOVED, LOG)))
    assert "## What began when (UTC)" in text
    assert "| 07:59:35 | metric | queue time 9 ms → 900 ms | `query` |" in text
    assert "\x1b" not in text
    assert len(in_markdown(result(*[replace(LOG, what=f"c{n}") for n in range(30)]))) == 2 + 2 + 30 + 1
