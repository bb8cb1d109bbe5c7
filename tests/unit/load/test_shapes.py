"""Arrivals come at the rate and as irregularly as independent people's do; phases follow each other or are switched."""

from __future__ import annotations

from itertools import islice, pairwise
from statistics import mean, pstdev

import pytest

from latencydoctor.errors import UsageError
from latencydoctor.load.shapes import Due, Timetable, arrival_offsets, check
from latencydoctor.model.load import LoadPlan, Mix, Phase

GOOD = LoadPlan("http://127.0.0.1:8000", (Phase("calm", 100.0, None),), ("Where is my parcel?",))


def taken(timetable: Timetable, count: int) -> list[Due]:
    found: list[Due] = []
    while timetable.due is not None and len(found) < count:
        found.append(timetable.due)
        timetable.take()
    return found


@pytest.mark.parametrize("rate_rps", [20.0, 310.0, 800.0])
def test_the_rate_is_the_offered_one_within_two_per_cent(rate_rps: float) -> None:
    count = sum(1 for _ in arrival_offsets(Phase("a", rate_rps, 20000 / rate_rps), seed=1, number=0))
    assert count == pytest.approx(20000, rel=0.02)


def test_gaps_are_exponential_and_not_regular() -> None:
    offsets = list(islice(arrival_offsets(Phase("a", 100.0, None), seed=1, number=0), 20000))
    gaps = [later - earlier for earlier, later in pairwise(offsets)]
    assert all(gap >= 0 for gap in gaps)
    assert pstdev(gaps) / mean(gaps) == pytest.approx(1.0, abs=0.05)


def test_the_seed_alone_decides() -> None:
    def first(seed: int, number: int) -> list[float]:
        return list(islice(arrival_offsets(Phase("a", 100.0, None), seed, number), 50))

    assert first(1, 0) == first(1, 0)
    assert first(1, 0) != first(2, 0)
    assert first(1, 0) != first(1, 1)


def test_phases_follow_each_other_to_the_second_and_end() -> None:
    timetable = Timetable((Phase("calm", 10.0, 2.0), Phase("crowd", 50.0, 1.0)), seed=3, start_s=100.0)
    found = taken(timetable, 10_000)
    assert timetable.due is None
    assert [(due.phase, due.at_s) for due in found if due.opens] == [(0, 100.0), (1, 102.0)]
    assert all(100.0 < due.at_s <= 102.0 for due in found if due.phase == 0 and not due.opens)
    assert all(102.0 < due.at_s <= 103.0 for due in found if due.phase == 1 and not due.opens)
    assert [due.at_s for due in found] == sorted(due.at_s for due in found)


def test_an_endless_phase_lasts_until_the_switch() -> None:
    timetable = Timetable((Phase("calm", 10.0, None), Phase("crowd", 50.0, 1.0)), seed=3, start_s=0.0)
    assert {due.phase for due in taken(timetable, 500)} == {0}
    timetable.switch(1, 7.25)
    assert timetable.due == Due(7.25, 1, opens=True)
    rest = taken(timetable, 500)
    assert rest[-1].at_s <= 8.25
    assert timetable.due is None


def test_a_switch_keeps_what_a_late_sender_still_owes() -> None:
    prompt = Timetable((Phase("calm", 10.0, None), Phase("crowd", 50.0, None)), seed=3, start_s=0.0)
    owed = [due for due in taken(prompt, 200) if due.at_s <= 4.0]
    late = Timetable((Phase("calm", 10.0, None), Phase("crowd", 50.0, None)), seed=3, start_s=0.0)
    late.switch(1, 4.0)
    assert taken(late, len(owed)) == owed
    assert late.due == Due(4.0, 1, opens=True)
    assert {due.phase for due in taken(late, 200)} == {1}


def test_a_phases_arrivals_do_not_depend_on_when_it_began() -> None:
    def offsets(start_s: float) -> list[float]:
        timetable = Timetable((Phase("calm", 10.0, None), Phase("crowd", 50.0, None)), seed=3, start_s=0.0)
        timetable.switch(1, start_s)
        return [due.at_s - start_s for due in taken(timetable, 1500) if due.phase == 1][:20]

    assert offsets(4.0) == pytest.approx(offsets(64.0))


def test_a_good_plan_passes() -> None:
    check(GOOD)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"phases": ()}, "no phases"),
        ({"phases": (Phase("a", 0.0, None),)}, "'a': the rate"),
        ({"phases": (Phase("a", 1000.5, None),)}, "'a': the rate"),
        ({"phases": (Phase("a", 10.0, 0.0),)}, "'a': it must last"),
        ({"phases": (Phase("a", 10.0, 1.0), Phase("a", 20.0, 1.0))}, "two phases are called 'a'"),
        ({"url": "127.0.0.1:8000"}, "not an http address"),
        ({"questions": (" ",)}, "no questions"),
        ({"deadline_ms": 0.0}, "deadline"),
        ({"bound_s": 0}, "bounded"),
        ({"mix": Mix(hot_share_ratio=1.1)}, "hot share"),
        ({"mix": Mix(vip_share_ratio=-0.1)}, "VIP share"),
        ({"mix": Mix(hot_count=0)}, "at least one popular question"),
        ({"mix": Mix(session_count=0)}, "one session"),
        ({"mix": Mix(zipf_exponent=-1.0)}, "exponent"),
    ],
)
def test_each_mistake_of_a_plan_is_named(change: dict[str, object], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        check(LoadPlan(**{**{name: getattr(GOOD, name) for name in ("url", "phases", "questions")}, **change}))


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(UsageError, match=r"no phases.*not an http address"):
        check(LoadPlan("ftp://x", (), ("Why?",)))


def test_the_bounds_themselves_are_allowed() -> None:
    check(LoadPlan("https://h", (Phase("a", 1000.0, 0.1),), ("Why?",), bound_s=1, mix=Mix(1.0, 1, 0.0, 1, 1.0)))


@pytest.mark.parametrize("rate_rps", [0.4, 65.0, 355.0, 355.5])
def test_two_windows_of_a_phase_hold_the_same_number_of_requests(rate_rps: float) -> None:
    offsets = list(arrival_offsets(Phase("crowd", rate_rps, 60.0), 7, 1))
    assert len(offsets) == int(rate_rps * 60)
    assert offsets == sorted(offsets)
    windows = [sum(start < one <= start + 20 for one in offsets) for start in (3.3, 27.9, 40.0)]
    assert max(windows) - min(windows) <= max(0.02 * rate_rps * 20, 2)
