"""Predicted hit ratios against traffic that is played out request by request."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict

import pytest

from latencydoctor.model.popular import Popularity, PopularQuestion
from latencydoctor.remedy.hit_ratio import Room, entries_needed, fill_time_s, reach, steady

WINDOW_S = 60.0
RATE_RPS = 320.0


def stream(
    rng: random.Random, hot_share: float, hot: int, seconds: float, zipf: float = 0.0
) -> list[tuple[float, str]]:
    """(time, question): popular ones by rank, every other one new."""
    weights = [1 / rank**zipf for rank in range(1, hot + 1)]
    count = round(RATE_RPS * seconds)
    drawn = rng.choices(range(hot), weights, k=count)
    asked = [f"hot {drawn[n]}" if rng.random() < hot_share else f"new {rng.random()}" for n in range(count)]
    return [(n / RATE_RPS, question) for n, question in enumerate(asked)]


def counted(asked: list[tuple[float, str]], window_s: float = WINDOW_S) -> Popularity:
    counts = Counter(question for _, question in asked)
    questions = tuple(PopularQuestion(name, n, n, True, None) for name, n in counts.most_common() if n > 1)
    once = sum(n == 1 for n in counts.values())
    return Popularity(window_s, len(asked), len(asked), len(counts), once, questions, ())


def played(asked: list[tuple[float, str]], room: Room, warmed: tuple[str, ...] = ()) -> float:
    """The hit ratio of a cache that puts out what was unused for longest, entries living from their writing."""
    cache: OrderedDict[str, float] = OrderedDict((name, room.ttl_s) for name in warmed)
    hits = 0
    for at_s, question in asked:
        if cache.get(question, -1.0) > at_s:
            hits += 1
            cache.move_to_end(question)
        else:
            cache[question] = at_s + room.ttl_s
            cache.move_to_end(question)
            while len(cache) > room.max_entries:
                cache.popitem(last=False)
    return hits / len(asked)


@pytest.mark.parametrize(
    ("hot_share", "hot", "zipf", "room"),
    [
        (0.46, 430, 0.0, Room(300.0, 10_000)),
        (0.46, 430, 0.0, Room(2.0, 10_000)),
        (0.46, 430, 1.0, Room(300.0, 10_000)),
        (0.85, 900, 0.0, Room(5.0, 10_000)),
        (0.46, 430, 0.0, Room(300.0, 300)),
        (0.60, 2000, 0.8, Room(300.0, 1_000)),
    ],
)
def test_the_predicted_ratio_is_the_played_one_within_five_points(
    hot_share: float, hot: int, zipf: float, room: Room
) -> None:
    rng = random.Random(7)
    sample = counted(stream(rng, hot_share, hot, WINDOW_S, zipf))
    warmed = tuple(one.id for one in sample.questions)
    predicted = reach(sample, warmed, room)
    seen = played(stream(rng, hot_share, hot, 60.0, zipf), room, warmed)
    assert predicted.ratio == pytest.approx(seen, abs=0.05)
    assert predicted.low <= seen + 0.02
    assert predicted.low <= predicted.ratio <= predicted.high


def test_the_interval_covers_what_a_later_window_shows_in_nine_of_ten() -> None:
    covered = 0
    for seed in range(20):
        rng = random.Random(seed)
        sample = counted(stream(rng, 0.46, 430, 20.0), 20.0)
        predicted = reach(sample, tuple(one.id for one in sample.questions), Room(300.0, 10_000))
        covered += (
            predicted.low <= played(stream(rng, 0.46, 430, 10.0), Room(300.0, 10_000), _ids(sample)) <= predicted.high
        )
    assert covered >= 18


def _ids(sample: Popularity) -> tuple[str, ...]:
    return tuple(one.id for one in sample.questions)


def test_questions_that_were_picked_out_by_their_last_lookup_promise_nothing() -> None:
    """A sample in which every question came twice by chance of a wide choice: few of them will come again."""
    rng = random.Random(3)
    asked = [(n / RATE_RPS, f"wide {rng.randrange(20_000)}") for n in range(3000)]
    sample = counted(asked, 3000 / RATE_RPS)
    naive = sum(one.asked for one in sample.questions) / sample.asked
    warmed = set(_ids(sample))
    later = [f"wide {rng.randrange(20_000)}" for _ in range(20_000)]
    truth = sum(name in warmed for name in later) / len(later)
    found = reach(sample, _ids(sample), Room(1e6, 100_000))
    assert naive > 2 * truth
    assert found.low <= truth <= found.high + 0.1
    assert found.ratio < naive


def test_nothing_asked_promises_nothing() -> None:
    empty = Popularity(0.0, 0, 0, 0, 0, (), ())
    assert steady(empty, Room(300.0, 10)) == 0.0
    assert (reach(empty, (), Room(300.0, 10)).low, reach(empty, (), Room(300.0, 10)).high) == (0.0, 1.0)


def test_a_cache_with_room_for_a_whole_time_to_live_is_never_full() -> None:
    sample = counted(stream(random.Random(1), 0.5, 100, WINDOW_S))
    assert fill_time_s(sample, Room(10.0, 10_000)) == float("inf")
    assert 5.0 < fill_time_s(sample, Room(300.0, 2_000)) < 300.0


def test_the_entries_needed_are_as_many_as_keep_what_comes_back() -> None:
    sample = counted(stream(random.Random(1), 0.46, 430, WINDOW_S))
    needed = entries_needed(sample, Room(300.0, 300), 0.01)
    assert 1_000 < needed < 10_000
    assert steady(sample, Room(300.0, needed)) > steady(sample, Room(300.0, 300)) + 0.05
    assert entries_needed(sample, Room(300.0, 10_000), 0.01) == 10_000
