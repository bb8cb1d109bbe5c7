"""What is asked most: counted, ranked, and told without a word of a question."""

from __future__ import annotations

from latencydoctor.stack.gateway import popular
from latencydoctor.stack.gateway.popular import WINDOW_S, Popular, id_of


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_questions_asked_more_than_once_are_ranked_by_how_often() -> None:
    tally = Popular(Clock())
    for key in ("faq:1:a", "faq:1:b", "faq:1:b", "faq:1:c", "faq:1:c", "faq:1:c", "faq:2:b", "faq:2:b"):
        tally.missed(key)
    tally.hit("faq:1:c", b"answer")
    found = tally.ranking("faq:1:")
    assert [(one.key, one.asked, one.missed, one.value) for one in found.repeated] == [
        ("faq:1:c", 4, 3, b"answer"),
        ("faq:1:b", 2, 2, None),
    ]
    assert (found.asked, found.missed, found.distinct, found.once) == (7, 6, 3, 1)
    assert found.repeated[0].id == id_of("faq:1:c")
    assert len(found.repeated[0].id) == 16


def test_a_models_answer_is_remembered_with_its_question() -> None:
    tally = Popular(Clock())
    tally.missed("a")
    tally.missed("a")
    tally.answered("a", b"new")
    tally.answered("never asked", b"x")
    assert tally.ranking("").repeated[0].value == b"new"
    assert tally.ranking("").distinct == 1


def test_two_windows_count_and_a_third_forgets_the_first() -> None:
    clock = Clock()
    tally = Popular(clock)
    tally.missed("a")
    tally.answered("a", b"first")
    clock.now_s += WINDOW_S
    tally.missed("a")
    found = tally.ranking("")
    assert [(one.asked, one.value) for one in found.repeated] == [(2, b"first")]
    assert found.window_s == WINDOW_S
    clock.now_s += WINDOW_S
    assert tally.ranking("").repeated == ()
    assert tally.ranking("").asked == 1


def test_many_different_questions_close_a_window_early() -> None:
    tally = Popular(Clock())
    for number in range(3 * popular.MAX_KEYS):
        tally.missed(str(number))
    assert tally.ranking("").distinct <= 2 * popular.MAX_KEYS
