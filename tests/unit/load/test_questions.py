"""The share of repeated questions, and with it the hit ratio of a warm cache, is what the mix says."""

from __future__ import annotations

from collections import Counter

import pytest

from latencydoctor.errors import UsageError
from latencydoctor.load.questions import Ask, Asker, first_order_number, with_order
from latencydoctor.model.load import Mix

TEXTS = tuple(f"How do I do thing {chr(97 + number % 26) * (1 + number // 26)}?" for number in range(300))
TTL_S = 300.0


def hits_by_second(rate_rps: int, seconds: int, mix: Mix, seed: int = 1) -> list[float]:
    """What a cache with a time to live makes of the asks: the hit ratio of each second."""
    asker = Asker(TEXTS, mix, seed, first_order=1)
    stored_s: dict[str, float] = {}
    ratios = []
    for second in range(seconds):
        hits = 0
        for number in range(rate_rps):
            now_s = second + number / rate_rps
            question = asker.ask().question
            if now_s - stored_s.get(question, -TTL_S) < TTL_S:
                hits += 1
            else:
                stored_s[question] = now_s
        ratios.append(hits / rate_rps)
    return ratios


@pytest.mark.parametrize("rate_rps", [100, 310])
def test_the_hit_ratio_stays_near_the_hot_share_over_two_times_to_live(rate_rps: int) -> None:
    ratios = hits_by_second(rate_rps, 700, Mix())
    tens = [sum(ratios[start : start + 10]) / 10 for start in range(10, 700, 10)]
    assert min(tens) > 0.085
    assert max(tens) < 0.155
    assert sum(tens) / len(tens) == pytest.approx(0.12, abs=0.005)


def test_a_cold_cache_is_warm_after_ten_seconds() -> None:
    ratios = hits_by_second(100, 20, Mix())
    assert sum(ratios[10:]) / 10 == pytest.approx(0.12, abs=0.03)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_share_is_a_parameter(share: float) -> None:
    ratios = hits_by_second(200, 60, Mix(hot_share_ratio=share))
    assert sum(ratios[10:]) / 50 == pytest.approx(share, abs=0.03)


def test_popularity_falls_with_rank() -> None:
    asker = Asker(TEXTS, Mix(hot_share_ratio=1.0, hot_count=3), 1, 1)
    counts = Counter(asker.ask().question for _ in range(11_000))
    assert set(counts) == set(asker.hot)
    # 1 + 1/2 + 1/3 = 11/6, so out of 11,000 the first three get 6,000, 3,000 and 2,000.
    assert [counts[text] for text in asker.hot] == pytest.approx([6000, 3000, 2000], rel=0.06)


def test_the_same_seed_asks_the_same() -> None:
    def first(seed: int) -> list[Ask]:
        asker = Asker(TEXTS, Mix(vip_share_ratio=0.2), seed, 7)
        return [asker.ask() for _ in range(200)]

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_the_order_of_the_texts_and_blank_ones_do_not_matter() -> None:
    assert Asker(TEXTS, Mix(), 1, 7).hot == Asker((*reversed(TEXTS), " ", TEXTS[0] + " "), Mix(), 1, 7).hot


def test_every_other_question_carries_a_number_of_its_own() -> None:
    asker = Asker(TEXTS, Mix(hot_share_ratio=0.0), 1, 48213)
    asked = [asker.ask().question for _ in range(1000)]
    assert len(set(asked)) == 1000
    assert asked[0].endswith(" (order 48213)")
    assert asked[-1].endswith(" (order 49212)")
    assert with_order("Where is it?", 5) == "Where is it? (order 5)"


def test_a_run_of_the_highest_rate_ends_below_the_numbers_of_the_next() -> None:
    began_s, lasted_s = 1_796_000_000.25, 60
    assert first_order_number(began_s) + 1000 * lasted_s <= first_order_number(began_s + lasted_s)


def test_sessions_and_priorities_follow_the_mix() -> None:
    asker = Asker(TEXTS, Mix(session_count=50, vip_share_ratio=0.2), 1, 1)
    asks = [asker.ask() for _ in range(5000)]
    assert len({ask.session for ask in asks}) == 50
    assert sum(ask.priority == "vip" for ask in asks) / 5000 == pytest.approx(0.2, abs=0.02)
    assert {ask.priority for ask in asks} == {"vip", "standard"}


def test_without_questions_there_is_nothing_to_ask() -> None:
    with pytest.raises(UsageError, match="no questions"):
        Asker((" ",), Mix(), 1, 1)
