"""A canary on a screen of 80 columns, worst case included."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from latencydoctor.model.canary import CanaryCheck, CanaryKind, CanaryTrial
from latencydoctor.model.remedy import Decision, Reading
from latencydoctor.remedy.staging import NoCanary, Stage
from latencydoctor.report.canary import show_stage, show_trial
from latencydoctor.report.markdown_canary import canary

BAD = Reading(p99_ms=10_999.0, error_ratio=0.1234, memory_bytes=None, requests=123_456.0)
GOOD = Reading(p99_ms=96.4, error_ratio=0.0, memory_bytes=None, requests=1690.0)
BLIND = Reading(None, None, None, None, "the metrics are stale\x1b[31m")


def shown(trial: CanaryTrial) -> str:
    stream = io.StringIO()
    show_trial(trial, Console(file=stream, width=80))
    return stream.getvalue()


def trial(decision: Decision, *sides: tuple[Reading, Reading, str]) -> CanaryTrial:
    checks = tuple(
        CanaryCheck(1_800_000_000.0 + 10 * n, 1_800_000_010.0 + 10 * n, canary, baseline, note, 0)
        for n, (canary, baseline, note) in enumerate(sides)
    )
    return CanaryTrial(CanaryKind.REPLICA, 0.5, checks, decision, "p99 is 0.01 times the baseline's", None)


def test_each_window_stands_beside_its_peers_with_units() -> None:
    page = shown(trial(Decision.KEEP, (GOOD, BAD, "")))
    assert page.splitlines()[0] == "canary: one replica, 50 % of the sessions; times in UTC"
    assert page.splitlines()[2].split() == ["08:00:10", "96.4", "ms", "11", "s", "0.01", "0", "%", "12.3", "%", "1,690"]
    assert page.splitlines()[-1] == "promote: p99 is 0.01 times the baseline's"


@pytest.mark.parametrize("sides", [(BAD, BAD, ""), (BLIND, GOOD, "canary: the metrics are stale\x1b[31m")])
def test_it_fits_the_screen_and_nothing_escapes(sides: tuple[Reading, Reading, str]) -> None:
    page = shown(trial(Decision.HOLD, sides))
    assert max(map(len, page.splitlines())) <= 80
    assert "\x1b" not in page
    assert "hold: " in page


def test_absence_is_a_dash_and_says_why() -> None:
    page = shown(trial(Decision.HOLD, (BLIND, GOOD, "canary: no data on requests")))
    assert page.splitlines()[2].split() == ["08:00:10", "-", "96.4", "ms", "-", "-", "0", "%", "-"]
    assert "not conclusive: canary: no data on requests" in page


def test_the_report_in_markdown_holds_every_window() -> None:
    lines = canary(trial(Decision.KEEP, (GOOD, BAD, ""), (BLIND, GOOD, "a | b")))
    assert lines[:2] == ["## Canary", ""]
    assert "| window (UTC) | p99 | peers | times | errors | peers | requests | note |" in lines
    assert "**promote**: p99 is 0.01 times the baseline's" in lines
    assert "| 08:00:10 | 96.4 ms | 11 s | 0.01 | 0 % | 12.3 % | 1,690 |  |" in lines
    assert lines[-2].startswith("| 08:00:20 | - | 96.4 ms | - | - | 0 % | - | a ")
    assert lines[-2].count("|") == 9 + lines[-2].count("\\|")


def test_what_is_to_come_is_said_before_the_question() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=120)
    show_stage(Stage(CanaryKind.REPLICA, 0.5, (), "one of 2 replicas"), console)
    show_stage(NoCanary("there is no second replica"), console)
    assert stream.getvalue().splitlines() == [
        "canary: one of 2 replicas, tries it first and is judged beside its peers, at least 5 windows",
        "no canary: there is no second replica; the full change is verified",
    ]
