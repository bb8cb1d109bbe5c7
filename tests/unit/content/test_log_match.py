"""The `match` block of a log rule: what it gives, and every mistake in it at its place."""

from __future__ import annotations

import pytest

from latencydoctor.content.log_match import Match, read_matches
from latencydoctor.content.reader import Problems, parse_mapping
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import Burst, NumberGate, Sequel


def read(text: str, *, compiled: bool = True, benign: bool = False) -> tuple[tuple[Match, ...], list[str]]:
    """The blocks, and the problems as they are shown."""
    problems = Problems()
    block = parse_mapping(text, "slow.yaml", problems)
    assert block is not None
    found = read_matches(block, compiled=compiled, benign=benign)
    return found, [str(problem) for problem in problems.found]


def test_every_field_is_read() -> None:
    (match,), problems = read(
        "any: [waited]\n"
        "unless: [benign]\n"
        "numbers: ['waited (?P<wait_ms>\\d{1,9})', 'of (?P<limit_ms>\\d{1,9})']\n"
        "gate: {number: wait_ms, above_number: limit_ms, when_absent: counts}\n"
        "level_at_least: WARNING\n"
        "level_at_most: ERROR\n"
        "programs: [triton, vllm]\n"
        "statuses: [500, 599]\n"
        "burst: {count: 3, within_s: 60}\n"
        "climbs: wait_ms\n"
        "only_after: [ready]\n"
        "echoes: [again]\n"
        "not_after: {any: [stopped], within_s: 30}\n"
        "recovered_by: {any: [mended], within_s: 5}\n"
        "real_when: {any: [failed], within_s: 9}\n"
    )
    assert problems == []
    assert match == Match(
        patterns=("waited",),
        unless=("benign",),
        numbers=("waited (?P<wait_ms>\\d{1,9})", "of (?P<limit_ms>\\d{1,9})"),
        gate=NumberGate("wait_ms", above_group="limit_ms", counts_when_absent=True),
        level_at_least=Severity.WARNING,
        level_at_most=Severity.ERROR,
        programs=("triton", "vllm"),
        statuses=(500, 599),
        burst=Burst(3, 60.0),
        climbs="wait_ms",
        only_after=("ready",),
        echoes=("again",),
        not_after=Sequel(("stopped",), 30.0),
        recovered_by=Sequel(("mended",), 5.0),
        real_when=Sequel(("failed",), 9.0),
    )


def test_what_is_left_out_has_no_bound() -> None:
    assert read("any: [waited]\n") == ((Match(("waited",)),), [])


def test_or_blocks_are_ways_of_their_own_with_or_without_one_before() -> None:
    both, problems = read("any: [one]\nor:\n  - any: [two]\n    burst: {count: 2, within_s: 9}\n  - any: [three]\n")
    assert (problems, [match.patterns for match in both]) == ([], [("one",), ("two",), ("three",)])
    assert both[1].burst == Burst(2, 9.0)
    only, problems = read("or:\n  - any: [two]\n")
    assert (problems, [match.patterns for match in only]) == ([], [("two",)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("any: []\n", "matches nothing"),
        ("unless: [x]\n", "any"),
        ("any: [x]\nunless: []\n", "unless is empty: leave it out"),
        ("any: [x]\nor: []\n", "or is empty: leave it out"),
        ("any: [x]\nonly: [y]\n", "only"),
        ("any: ['(']\n", "the pattern cannot be used"),
        ("any: ['(?=x)']\n", "the pattern cannot be used"),
        ("any: [x]\nnumbers: ['(']\n", "is no regular expression"),
        ("any: [x]\nnumbers: ['waited \\d{1,9}']\n", "has no named group"),
        ("any: [x]\nnumbers: ['(?P<wait_ms>\\d+)']\n", "number pattern"),
        ("any: [x]\nnumbers: ['(?P<n>\\d{1,9})']\ngate: {number: n}\n", "exactly one of"),
        ("any: [x]\nnumbers: ['(?P<n>\\d{1,9})']\ngate: {number: n, above: 1, above_number: n}\n", "exactly one of"),
        ("any: [x]\ngate: {number: n, above: 1}\n", "no number pattern has a group 'n'"),
        ("any: [x]\nclimbs: n\n", "no number pattern has a group 'n'"),
        ("any: [x]\nprograms: [fortran]\n", "'fortran', not one of: triton"),
        ("any: [x]\nstatuses: [599, 500]\n", "first and the last of a range"),
        ("any: [x]\nstatuses: [500]\n", "first and the last of a range"),
        ("any: [x]\nburst: {count: 1, within_s: 9}\n", "at least 2 events"),
        ("any: [x]\nburst: {count: 2, within_s: 0}\n", "above 0 and at most 3600"),
        ("any: [x]\nreal_when: {any: [y], within_s: 3601}\n", "above 0 and at most 3600"),
        ("any: [x]\nreal_when: {any: [], within_s: 9}\n", "matches nothing"),
        ("any: [x]\nlevel_at_least: LOUD\n", "level_at_least"),
    ],
)
def test_a_mistake_is_told_once_with_its_line(text: str, words: str) -> None:
    _, problems = read(text)
    assert len(problems) == 1
    assert words in problems[0]
    assert "slow.yaml" in problems[0]


def test_of_several_patterns_the_bad_ones_are_named_and_the_good_ones_kept() -> None:
    (match,), problems = read("any: [good, '(', fine, '[']\n")
    assert match.patterns == ("good", "fine")
    assert sorted(problem.count("'('") + problem.count("'['") for problem in problems) == [1, 1]


def test_patterns_are_tried_only_when_asked() -> None:
    (match,), problems = read("any: ['(']\n", compiled=False)
    assert (match.patterns, problems) == (("(",), [])


@pytest.mark.parametrize(
    "key", ["burst: {count: 3, within_s: 60}", "echoes: [x]", "real_when: {any: [x], within_s: 9}"]
)
def test_a_benign_rule_decides_on_lines_alone(key: str) -> None:
    _, problems = read(f"any: [x]\n{key}\n", benign=True)
    assert len(problems) == 1
    assert "decides on lines, not on events" in problems[0]
    assert read(f"any: [x]\n{key}\n")[1] == []
