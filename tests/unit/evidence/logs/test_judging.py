"""Which classes one line shows: levels, programs, statuses, figures; and what makes it benign."""

from __future__ import annotations

import pytest

from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import Burst, LogRule, NumberGate
from tests.unit.log_builders import counts, read, rule

TRITON = "E1130 07:20:26.000001 1 a.cc:1] odd\n"
VLLM_INFO = "INFO 11-30 07:20:26 [core.py:7] odd\n"
NUMBERS = (r"took (?P<wait_ms>\d{1,9} ?ms)", r"of (?P<limit_ms>\d{1,9} ?ms)")


@pytest.mark.parametrize(
    ("changes", "triton", "vllm", "bare"),
    [
        ({}, True, True, True),
        ({"level_at_least": Severity.ERROR}, True, False, True),
        ({"level_at_least": Severity.CRITICAL}, False, False, True),
        ({"level_at_most": Severity.INFO}, False, True, True),
        ({"programs": ("triton",)}, True, False, True),
        ({"programs": ("vllm", "tgi")}, False, True, True),
        ({"statuses": (500, 599)}, False, False, False),
    ],
)
def test_level_and_program_decide_where_they_are_known(
    changes: dict[str, object], triton: bool, vllm: bool, bare: bool
) -> None:
    one = rule("odd", "odd", **changes)
    assert [bool(counts([one], text)) for text in (TRITON, VLLM_INFO, "odd\n")] == [triton, vllm, bare]


@pytest.mark.parametrize(("status", "counted"), [(499, False), (500, True), (504, True), (505, False)])
def test_status_of_an_access_line(status: int, counted: bool) -> None:
    line = f'INFO:     10.0.0.9:1 - "POST /v1/x HTTP/1.1" {status} Phrase\n'
    assert bool(counts([rule("slow", "/v1/x", statuses=(500, 504))], line)) is counted


@pytest.mark.parametrize(
    ("gate", "line", "counted"),
    [
        (NumberGate("wait_ms", above=500.0), "took 500 ms", False),
        (NumberGate("wait_ms", above=500.0), "took 501 ms", True),
        (NumberGate("wait_ms", below=500.0), "took 500 ms", False),
        (NumberGate("wait_ms", above=100.0, below=500.0), "took 499 ms", True),
        (NumberGate("wait_ms", above=100.0, below=500.0), "took 99 ms", False),
        (NumberGate("wait_ms", at_least_group="limit_ms"), "took 5 ms of 5 ms", True),
        (NumberGate("wait_ms", above_group="limit_ms"), "took 5 ms of 5 ms", False),
        (NumberGate("wait_ms", above_group="limit_ms"), "took 6 ms of 5 ms", True),
        (NumberGate("wait_ms", above_group="limit_ms"), "took 6 ms", False),
        (NumberGate("wait_ms", above_group="limit_ms", counts_when_absent=True), "took 6 ms", True),
        (NumberGate("wait_ms", above=500.0, counts_when_absent=True), "took long", True),
    ],
)
def test_figure_decides(gate: NumberGate, line: str, counted: bool) -> None:
    assert bool(counts([rule("slow", "took", numbers=NUMBERS, gate=gate)], f"{line}\n")) is counted


def test_rules_that_ask_for_the_same_figures_see_the_same() -> None:
    over = rule("over", "took", numbers=NUMBERS, gate=NumberGate("wait_ms", above_group="limit_ms"))
    under = rule("under", "took", numbers=NUMBERS, gate=NumberGate("limit_ms", at_least_group="wait_ms"))
    found = {one.rule: dict(one.numbers) for one in read([over, under], "took 6 ms of 5 ms\ntook 4 ms of 5 ms\n")}
    assert found == {"over": {"wait_ms": 6.0, "limit_ms": 5.0}, "under": {"wait_ms": 4.0, "limit_ms": 5.0}}


def benign(*patterns: str, **changes: object) -> LogRule:
    return rule("fine", *patterns, benign=True, level=Severity.INFO, **changes)


@pytest.mark.parametrize(
    ("one", "mutes"),
    [
        (benign("odd"), True),
        (benign("even"), False),
        (benign("odd", unless=("but real",)), False),
        (benign("odd", level_at_most=Severity.INFO), False),
        (benign("odd", programs=("vllm",)), False),
        (benign("odd", numbers=(r"odd (?P<n>\d)",), gate=NumberGate("n", below=5.0)), True),
        (benign("odd", numbers=(r"odd (?P<n>\d)",), gate=NumberGate("n", below=3.0)), False),
        (benign("odd", only_after=("stopping",)), False),
    ],
)
def test_benign_rule_makes_a_line_mean_nothing(one: LogRule, mutes: bool) -> None:
    line = "E1130 07:20:26.000001 1 a.cc:1] odd 3 but real\n"
    assert bool(counts([rule("odd", "odd"), one], line)) is not mutes


def test_benign_after_a_line_only() -> None:
    rules = [rule("odd", "odd"), benign("odd", only_after=("stopping",))]
    assert counts(rules, TRITON + TRITON.replace("odd", "stopping") + TRITON.replace("26.0", "27.0")) == {"odd": 1}


def test_line_that_shows_a_class_in_several_ways_counts_once() -> None:
    ways = rule("odd", "odd", burst=Burst(2, 60.0), variants=(rule("odd", "odd thing", burst=Burst(2, 60.0)),))
    assert counts([ways], "odd thing 1\nodd thing 2\n") == {"odd": 2}
    sure = rule("odd", "odd", burst=Burst(9, 60.0), variants=(rule("odd", "odd thing"),))
    assert counts([sure], "odd thing 1\nodd 2\n") == {"odd": 1}
    only = rule("odd", "never", variants=(rule("odd", "odd"), rule("odd", "thing")))
    assert counts([only], "odd thing\n") == {"odd": 1}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"time": "2026-11-30T07:20:26Z", "level": "WARNING", "event": "odd", "message": "x", "n": 4}', {"odd": 1}),
        ('{"time": "2026-11-30T07:20:26Z", "level": "INFO", "event": "odd", "message": "x", "n": 1}', {}),
        ('{"time": "2026-11-30T07:20:26Z", "level": "INFO", "event": "question", "message": "odd 4"}', {}),
        ('{"time": "2026-11-30T07:20:26Z", "level": "ERROR", "event": "question", "message": "odd 4"}', {"odd": 1}),
    ],
)
def test_json_line_names_its_class_or_its_message_decides_unless_it_is_quiet(
    line: str, expected: dict[str, int]
) -> None:
    one = rule("odd", "odd", numbers=(r"odd (?P<n>\d)",), gate=NumberGate("n", above=3.0))
    assert counts([one], line + "\n") == expected
