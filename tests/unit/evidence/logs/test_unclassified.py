"""Loud lines that no rule knows: what they have in common, and when they are shown."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.logs.blocks import whole_lines
from latencydoctor.evidence.logs.reader import LogReader
from latencydoctor.evidence.logs.unclassified import (
    MOST_SHOWN,
    MOST_TEMPLATES,
    OTHERS,
    Group,
    Loud,
    Templates,
    template,
)
from latencydoctor.model.evidence import LogEvent, Severity
from tests.unit.log_builders import REFERENCE_S, START_S, at, read, rule

KNOWN = [rule("known", "known thing")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("worker 7 lost after 12.5 s", "worker <*> lost after <*> s"),
        ("key 'a b' and \"c\" unknown", "key <*> and <*> unknown"),
        ("can't open /var/lib/m/1.bin of http://h:80/x?y=1", "can't open <*> of <*>"),
        ("id cmpl-9f2c0d and 0xdeadbeef at 10.0.0.7:8000", "id <*> and <*> at <*>"),
        ("sizes 1, 22, 333 differ", "sizes <*> differ"),
        ("first\nsecond", "first"),
        ("", ""),
    ],
)
def test_template_masks_what_differs(text: str, expected: str) -> None:
    assert template(text) == expected


@given(st.text(max_size=600))
def test_any_text_has_a_short_template(text: str) -> None:
    assert len(template(text)) <= 3 * 400
    assert "\n" not in template(text)


def test_template_of_a_hostile_text_is_quick() -> None:
    started_s = time.perf_counter()
    for text in ("'" * 400, '"a' * 200, "a-" * 200, "/" * 400, "1.1" * 133, "a" * 400):
        for _ in range(200):
            template(text)
    assert time.perf_counter() - started_s < 5


def unknown(*texts: str) -> list[LogEvent]:
    return [one for one in read(KNOWN, *texts) if one.unclassified]


def lines(*seconds: float, text: str = "ERROR odd thing {n}") -> str:
    return "".join(f"{at(one)} {text.format(n=n)}\n" for n, one in enumerate(seconds))


def test_what_came_in_no_burst_is_kept_most_frequent_first() -> None:
    reader = LogReader(KNOWN)
    burst = lines(2000, 2001, 2002, 2003, 2004, text="ERROR x")
    told = lines(0, 90, 180) + lines(1000, text="ERROR odder thing {n}") + burst
    reader.read("0.log", whole_lines([told.encode()]), REFERENCE_S)
    assert [(one.line, one.count, one.place) for one in reader.quiet()] == [
        ("odd thing <*>", 3, "0.log:1"),
        ("odder thing <*>", 1, "0.log:4"),
    ]


def test_burst_of_loud_lines_is_shown_as_one() -> None:
    (one,) = unknown(lines(0, 15, 30, 45, 60))
    assert (one.rule, one.severity, one.count, one.line) == ("unclassified", Severity.ERROR, 5, "odd thing <*>")
    assert (one.first_s, one.last_s, one.place, one.sources) == (START_S, START_S + 60, "0.log:1", ("0.log",))


@pytest.mark.parametrize(
    "text",
    [
        lines(0, 15, 30, 45),
        lines(0, 16, 32, 48, 64),
        lines(0, 1, 2, 3, 4, text="WARNING odd thing {n}"),
        lines(0, 1, 2, 3, 4, text="odd thing {n}"),
        lines(0, 1, 2, 3, 4, text="ERROR known thing {n}"),
    ],
)
def test_few_quiet_or_known_lines_are_not_shown(text: str) -> None:
    assert unknown(text) == []


@pytest.mark.parametrize(("first", "shown"), [(0, True), (120, False)])
def test_three_are_a_burst_where_there_was_silence_before(first: float, shown: bool) -> None:
    early = f"{at(first)} ERROR something else\n"
    assert bool(unknown(early + lines(400, 410, 420))) is shown


def test_what_was_seen_often_before_needs_a_real_burst() -> None:
    assert unknown(lines(*range(0, 1200, 61), 1220, 1225)) == []
    assert len(unknown(lines(0, 1000, 1005, 1010))) == 1


def test_burst_may_be_spread_over_files_but_not_over_hours() -> None:
    (one,) = unknown(*[lines(n) for n in range(5)])
    assert (one.count, one.sources) == (5, ("0.log", "1.log", "2.log", "3.log", "4.log"))
    assert unknown(*[lines(n * 61) for n in range(5)]) == []


def test_critical_lines_are_errors_until_a_rule_says_otherwise() -> None:
    assert unknown(lines(0, 1, 2, 3, 4, text="CRITICAL odd thing {n}"))[0].severity is Severity.ERROR


def test_traceback_counts_once_and_shows_its_exception() -> None:
    text = "".join(
        f"{at(n)} ERROR request failed\nTraceback (most recent call last):\n  File 'x', line {n}\nKeyError: 'k{n}'\n"
        for n in range(5)
    )
    (one,) = unknown(text)
    assert (one.count, one.line) == (5, "request failed: KeyError: <*>")
    bare = "Traceback (most recent call last):\n  File 'x', line 1\nKeyError: 'k'\n"
    (one,) = unknown(bare * 5)
    assert (one.count, one.line) == (5, "KeyError: <*>")


def test_secrets_are_taken_out() -> None:
    (one,) = unknown(lines(*range(5), text="ERROR login with password=hunter-and-more {n}"))
    assert "hunter" not in one.line


def loud(text: str, seconds: float = 0.0, count: int = 1) -> Loud:
    return Loud(Severity.ERROR, text, START_S + seconds, 1, "a.log:1", "a.log", "", count)


def test_memory_and_screen_are_bounded() -> None:
    templates = Templates()
    for first in range(60):
        for second in range(60):
            templates.add(
                loud(f"{chr(97 + first % 26) * (1 + first // 26)} {chr(97 + second % 26) * (1 + second // 26)}", 0, 5)
            )
    assert len(templates.groups) == MOST_TEMPLATES + 1
    assert templates.groups[OTHERS].count == (3600 - MOST_TEMPLATES) * 5
    assert len(templates.events()) == MOST_SHOWN
    other = Templates()
    other.add(loud("new words", 0, 5))
    templates.merge(other)
    assert len(templates.groups) == MOST_TEMPLATES + 1
    assert templates.groups[OTHERS].count == (3600 - MOST_TEMPLATES + 1) * 5


def test_loud_lines_that_are_all_different_are_not_hidden() -> None:
    def words(number: int) -> str:
        return " ".join(chr(97 + number // 26**place % 26) * 3 for place in range(4))

    (one,) = unknown("".join(f"{at(0)} ERROR {words(number)}\n" for number in range(MOST_TEMPLATES + 50)))
    assert (one.line, one.count, one.severity) == (OTHERS, 50, Severity.ERROR)
    assert one.place == f"0.log:{MOST_TEMPLATES + 1}"


def test_worst_and_most_frequent_first() -> None:
    templates = Templates()
    for text, count in (("a", 5), ("b", 9), ("c", 5)):
        templates.add(loud(text, 0, count))
    assert [one.line for one in templates.events()] == ["b", "a", "c"]
    assert isinstance(templates.groups["a"], Group)
