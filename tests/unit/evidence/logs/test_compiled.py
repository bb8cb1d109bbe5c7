"""Rules made ready: which patterns the scanner gets, and what sets of them mean."""

from __future__ import annotations

import pytest

from latencydoctor.errors import ContentError
from latencydoctor.evidence.logs.compiled import NOTHING, RuleBook, number_patterns, scanner_for
from latencydoctor.model.evidence import Severity
from latencydoctor.model.rule import LogRule, Sequel
from tests.unit.log_builders import rule

DEATH = rule("death", "died", unless=("never mind",), echoes=("lost",))
RETRY = rule("retry", "no luck", recovered_by=Sequel(("luck",), 9.0), variants=(rule("retry", "hopeless"),))
FINE = rule("fine", "of course", benign=True, level=Severity.INFO)
RULES = [DEATH, RETRY, FINE]
SCANNER = scanner_for(RULES)
BOOK = RuleBook(RULES)


@pytest.mark.parametrize(
    ("text", "ways", "marks", "benign"),
    [
        ("it died", [("death", 0, False)], [], []),
        ("it died and was lost", [("death", 0, True)], [], []),
        ("it died, never mind", [], [], []),
        ("no luck", [("retry", 0, False)], ["retry"], []),
        ("hopeless", [("retry", 1, False)], [], []),
        ("it died of course", [("death", 0, False)], [], ["fine"]),
        ("nothing", [], [], []),
    ],
)
def test_meaning_of_a_line(text: str, ways: list[tuple[str, int, bool]], marks: list[str], benign: list[str]) -> None:
    meaning = BOOK.meaning(SCANNER.which(text))
    assert [(*way.key, echoes) for way, echoes in meaning.ways] == ways
    assert [way.rule.id for way in meaning.marks] == marks
    assert [way.rule.id for way in meaning.benign] == benign


def test_no_pattern_means_nothing() -> None:
    assert BOOK.meaning(frozenset()) is NOTHING
    assert set(BOOK.first_way) == {"death", "retry"}


def test_ways_know_whether_they_wait_and_whether_anything_echoes_them() -> None:
    assert [(BOOK.first_way[one].waits, BOOK.first_way[one].echoing) for one in ("death", "retry")] == [
        (False, True),
        (True, False),
    ]
    other = RuleBook([RETRY, rule("broken", "broken", echo_of=("retry",))])
    assert all(way.echoing for way in other.first_way.values())


@pytest.mark.parametrize(
    "broken",
    [
        rule("broken", "("),
        rule("broken", "x", unless=("(",)),
        rule("broken", "x", variants=(rule("broken", "y", echoes=("(",)),)),
        rule("broken", "x", real_when=Sequel(("(",), 1.0)),
    ],
)
def test_pattern_that_cannot_be_compiled_names_its_rule(broken: LogRule) -> None:
    with pytest.raises(ContentError, match="log rule broken") as caught:
        scanner_for([DEATH, broken])
    assert "rules check" in caught.value.hint


def test_number_patterns_are_compiled_with_the_words_they_need() -> None:
    ((pattern, words),) = number_patterns((r"requested buffer of size (?P<requested_bytes>\d{1,15})",))
    assert pattern.groupindex == {"requested_bytes": 1}
    assert all(word in "requested buffer of size 7" for word in words)
    assert number_patterns((r"(?i)wAited (?P<wait_ms>\d{1,9})",))[0][1] == ()
