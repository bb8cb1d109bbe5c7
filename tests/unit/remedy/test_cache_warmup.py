"""What the warm-up proposes, what it leaves alone, and what of a plan it takes back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from latencydoctor.errors import KnownError, Refused
from latencydoctor.model.configuration import Slo
from latencydoctor.model.popular import Popularity, PopularQuestion
from latencydoctor.model.remedy import NothingToDo, Operation, OperationKind, TargetState
from latencydoctor.remedy import cache_warmup
from latencydoctor.remedy.cache_warmup import (
    ENABLED,
    ENTRIES,
    SINGLE_FLIGHT,
    TTL,
    Warming,
    WarmUp,
    change,
    lives_s,
    operation_of,
    propose,
    read_operation,
    repairs,
)
from latencydoctor.remedy.change import Change

SETTINGS = ((ENABLED, "true"), (TTL, "300"), (ENTRIES, "10000"), (SINGLE_FLIGHT, "true"))


def name(number: int) -> str:
    return f"{number:016x}"


def state(**values: str) -> TargetState:
    return TargetState("bundled:/x", (), tuple((f"cache.{key}", value) for key, value in values.items()), "", (), "")


def popularity(
    hot: int = 400, asked: int = 20, *, left_s: float | None = None, known: bool = True, once: int = 9000
) -> Popularity:
    """A minute of `hot` questions asked `asked` times each, beside `once` others."""
    questions = tuple(PopularQuestion(name(n), asked, asked, known, left_s) for n in range(hot))
    total = hot * asked + once
    return Popularity(60.0, total, total if left_s is None else once, hot + once, once, questions, SETTINGS)


def proposed(of: TargetState, what: Popularity) -> WarmUp:
    found = propose(of, what, None)
    assert isinstance(found, WarmUp), found
    return found


def test_an_emptied_cache_is_warmed_and_its_healthy_settings_stay() -> None:
    found = proposed(state(), popularity())
    assert found.values == ()
    assert found.warming == Warming(tuple(name(n) for n in range(400)), 300)
    assert found.reach.ratio == pytest.approx(8000 / 17_000, abs=0.01)
    assert any("400 questions were asked more than once" in note for note in found.notes)
    assert any("400 are known" in note for note in found.notes)


def test_a_time_to_live_that_loses_what_comes_back_is_put_right() -> None:
    found = proposed(state(ttl_seconds="2"), popularity())
    assert found.values == ((TTL, "300"),)
    assert found.warming is not None
    assert found.warming.ttl_s == 300
    assert any("Entries live 2 s" in note for note in found.notes)


def test_a_short_time_to_live_that_costs_little_is_left_and_holds_for_warmed_entries_too() -> None:
    found = proposed(state(ttl_seconds="120"), popularity())
    assert found.values == ()
    assert found.warming is not None
    assert found.warming.ttl_s == 120


@pytest.mark.parametrize(
    ("values", "repaired"),
    [
        ({"enabled": "false"}, {ENABLED: "true"}),
        ({"single_flight": "false"}, {SINGLE_FLIGHT: "true"}),
        ({"ttl_seconds": "1", "single_flight": "false"}, {TTL: "300", SINGLE_FLIGHT: "true"}),
        ({"max_entries": "9000"}, {}),
    ],
)
def test_what_is_repaired(values: dict[str, str], repaired: dict[str, str]) -> None:
    assert dict(repairs(state(**values), popularity())) == repaired


def test_too_few_entries_are_made_as_many_as_are_needed() -> None:
    ((key, value),) = repairs(state(max_entries="200"), popularity())
    assert key == ENTRIES
    assert 400 < int(value) <= 6400


def test_settings_the_file_does_not_state_are_those_the_gateway_says() -> None:
    told = dataclasses.replace(popularity(), settings=((TTL, "2"), *SETTINGS[2:]))
    assert repairs(state(), told) == ((TTL, "300"),)


def test_a_warm_cache_has_nothing_to_do() -> None:
    found = propose(state(), popularity(left_s=200.0), 0.47)
    assert isinstance(found, NothingToDo)
    assert "it holds 400 of the 400 questions" in found.reason


def test_entries_that_are_about_to_go_are_missing() -> None:
    assert proposed(state(), popularity(left_s=5.0)).warming is not None


def test_traffic_that_does_not_repeat_has_nothing_to_warm() -> None:
    found = propose(state(), popularity(hot=0), 0.0)
    assert isinstance(found, NothingToDo)
    assert "asked twice" in found.reason


def test_at_most_two_thousand_are_warmed_the_most_asked_first() -> None:
    found = proposed(state(), popularity(hot=2500))
    assert found.warming is not None
    assert len(found.warming.ids) == cache_warmup.MAX_QUESTIONS


def test_the_plan_demands_the_hit_ratio_and_no_worse_p99() -> None:
    found = change(state(ttl_seconds="2"), Slo(), {"e2e_p99_ms": 200.0, "cache_hit_ratio": 0.12}, popularity())
    assert isinstance(found, Change)
    demands = {one.signal: one.at_most for one in found.requirements}
    (told,) = found.predictions
    assert told.before == 0.12
    assert told.after is not None
    assert demands == {"e2e_p99_ms": pytest.approx(220.0), "cache_miss_ratio": pytest.approx(1 - told.after + 0.05)}
    incident = change(state(), Slo(), {"e2e_p99_ms": 3000.0}, popularity())
    assert isinstance(incident, Change)
    assert incident.requirements[0].at_most == Slo().p99_ms
    assert any("540" not in effect and "270 to 330 s" in effect for effect in found.side_effects)


def test_without_a_front_end_that_counts_nothing_can_be_said() -> None:
    with pytest.raises(KnownError, match="not known"):
        change(state(), Slo(), {}, None)


def test_the_operation_is_read_back_as_it_was_planned() -> None:
    warming = Warming((name(1), name(2)), 300)
    assert read_operation(operation_of(warming)) == warming


@pytest.mark.parametrize(
    "wrong",
    [
        {"object": "settings.yaml"},
        {"key": "warm for ever"},
        {"key": "warm for 0 s"},
        {"key": "warm for 999999 s"},
        {"before": "x"},
        {"after": ""},
        {"after": "../../etc/passwd"},
        {"after": f"{name(1)} {name(1)}"},
        {"after": " ".join(name(n) for n in range(2001))},
    ],
)
def test_an_operation_that_no_fix_would_plan_is_refused(wrong: dict[str, Any]) -> None:
    good = operation_of(Warming((name(1),), 300))
    with pytest.raises(Refused):
        read_operation(dataclasses.replace(good, **wrong))


def test_expiries_are_spread_evenly_over_a_tenth_either_way() -> None:
    lives = sorted(lives_s(Warming((), 300), name(n)) for n in range(2000))
    assert 270 <= lives[0] <= 272
    assert 328 <= lives[-1] <= 330
    assert lives[1000] == pytest.approx(300, abs=4)
    most = max(lives.count(second) for second in set(lives))
    assert most < 2000 / 60 * 2, "no second has many more than its share"
    assert lives_s(Warming((), 1), name(1)) == 1


def test_the_kind_of_the_operation_is_its_own() -> None:
    assert operation_of(Warming((name(1),), 300)).kind is OperationKind.WARM_CACHE
    assert isinstance(operation_of(Warming((name(1),), 300)), Operation)


def test_questions_of_no_traffic_are_nothing_to_warm() -> None:
    asked = dataclasses.replace(popularity(hot=3), asked=0)
    assert isinstance(propose(state(), asked, None), NothingToDo)
