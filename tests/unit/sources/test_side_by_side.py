"""Questions side by side, up to a deadline."""

from __future__ import annotations

import threading

import pytest

from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.transport import Deadline


def test_answers_come_in_the_order_of_the_questions() -> None:
    assert run_side_by_side(lambda n: n * n, range(50), Deadline.after(5), -1) == [n * n for n in range(50)]
    assert run_side_by_side(lambda n: n, [], Deadline.after(5), -1) == []


def test_what_is_late_is_said_to_be_late_and_nothing_more_is_started() -> None:
    release, started = threading.Event(), []

    def ask(number: int) -> int:
        started.append(number)
        if number:
            release.wait(5)
        return number

    answers = run_side_by_side(ask, range(10), Deadline.after(0.05), -1, workers=2)
    assert answers == [0, *[-1] * 9]
    release.set()
    assert set(started) <= {0, 1, 2}


def test_questions_really_run_at_the_same_time() -> None:
    together = threading.Barrier(4)
    answers = run_side_by_side(lambda _: together.wait(5) >= 0, range(4), Deadline.after(5), late=False, workers=4)
    assert answers == [True] * 4


def test_what_a_question_raises_is_a_defect_and_not_a_late_answer() -> None:
    def ask(number: int) -> int:
        if number == 3:
            raise ZeroDivisionError("of the third")
        return number

    with pytest.raises(ZeroDivisionError, match="of the third"):
        run_side_by_side(ask, range(10), Deadline.after(5), -1, workers=2)
