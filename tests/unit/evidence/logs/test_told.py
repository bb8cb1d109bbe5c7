"""Tellings and places: which are near each other, and which words two of them share."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.told import At, near
from tests.unit.log_builders import rule, told

SLOW = rule("slow", "slow")


@pytest.mark.parametrize(
    ("one", "other", "is_near"),
    [
        ((10.0, 1), (15.0, 9999), True),
        ((15.0, 9999), (10.0, 1), True),
        ((10.0, 1), (15.1, 2), False),
        ((None, 1), (15.0, 4), True),
        ((None, 1), (15.0, 5), False),
        ((None, 9), (None, 6), True),
    ],
    ids=["in time", "backwards", "late, though beside it", "by lines", "too many lines", "no times at all"],
)
def test_times_decide_and_lines_where_one_has_none(
    one: tuple[float | None, int], other: tuple[float | None, int], is_near: bool
) -> None:
    assert near(At(*one), At(*other), within_s=5.0, within_lines=3) == is_near


def test_a_gap_has_a_sign_and_is_unknown_without_a_time() -> None:
    assert At(12.0, 1).gap_s(At(10.0, 5)) == 2.0
    assert At(10.0, 5).gap_s(At(12.0, 1)) == -2.0
    assert At(None, 1).gap_s(At(10.0, 5)) is None
    assert At(10.0, 5).gap_s(At(None, 1)) is None


def test_words_are_what_is_left_without_figures() -> None:
    one = told(SLOW, 1, text="rank 3 waited 600.25 s for 0x7fA1 at step 12")
    other = told(SLOW, 1, text="rank 11 waited 7 s for 0x1 at step 9")
    assert one.words == other.words == "rank # waited # s for # at step #"


def test_words_of_a_long_message_are_its_beginning() -> None:
    assert told(SLOW, 1, text="x" * 399 + " a").words == told(SLOW, 1, text="x" * 399 + " b").words
    assert told(SLOW, 1, text="x" * 398 + " a").words != told(SLOW, 1, text="x" * 398 + "b").words


def test_a_telling_is_of_its_ways_rule() -> None:
    assert told(SLOW, 1).rule_id == "slow"
