from __future__ import annotations

import pytest

from latencydoctor.errors import Refused
from latencydoctor.model.diagnosis import Answer, Cause, Confidence, Finding
from latencydoctor.model.remedy import NothingToDo, Requirement, TargetState
from latencydoctor.remedy.change import Change
from latencydoctor.remedy.scale_out import (
    INSTANCES,
    MEMORY,
    MOST,
    MOST_INSTANCES,
    REPLICAS,
    UNKNOWN,
    Need,
    number,
    propose,
    refuse_where_wrong,
)
from tests.unit.builders import WINDOW


def state(replicas: str | None = "1") -> TargetState:
    settings = () if replicas is None else ((REPLICAS, replicas),)
    return TargetState("t", (), settings, "", (), "")


def needs(replicas: int | None) -> Need:
    return Need(replicas, "at 340 requests/s so many hold it")


@pytest.mark.parametrize(("running", "needed", "then"), [("1", 2, "2"), ("1", 3, "3"), ("2", 4, "4"), (None, 2, "2")])
def test_as_many_as_the_forecast_asks_for(running: str | None, needed: int, then: str) -> None:
    found = propose(state(running), needs(needed), {})
    assert isinstance(found, Change)
    assert found.values == ((REPLICAS, then),)
    assert found.grounds == ("Forecast: at 340 requests/s so many hold it.",)


def test_what_cannot_be_forecast_is_tried_with_one_more() -> None:
    found = propose(state("2"), UNKNOWN, {})
    assert isinstance(found, Change)
    assert found.values == ((REPLICAS, "3"),)


def test_more_than_there_is_room_for_is_said() -> None:
    found = propose(state("1"), needs(7), {})
    assert isinstance(found, Change)
    assert found.values == ((REPLICAS, str(MOST)),)
    assert found.grounds[1].startswith("7 would be needed and 4 is the most: shed standard traffic as well")


def test_nothing_to_do_at_the_most_there_can_be_even_if_a_person_insists() -> None:
    for insisted in (False, True):
        found = propose(state("4"), needs(6), {}, insisted=insisted)
        assert isinstance(found, NothingToDo)
        assert "room for no more" in found.reason
        assert "by hand" in found.notes[0]


@pytest.mark.parametrize(("needed", "told"), [(1, "the 2 there are should do"), (2, "should do"), (0, "not be enough")])
def test_nothing_to_do_where_the_forecast_says_so_unless_a_person_insists(needed: int, told: str) -> None:
    found = propose(state("2"), needs(needed), {})
    assert isinstance(found, NothingToDo)
    assert told in found.reason
    insisted = propose(state("2"), needs(needed), {}, insisted=True)
    assert isinstance(insisted, Change)
    assert insisted.values == ((REPLICAS, "3"),)


def test_side_effects_and_memory_follow_the_number() -> None:
    found = propose(state("1"), needs(2), {MEMORY: 100.0, "request_rate_rps": 340.0})
    assert isinstance(found, Change)
    assert "gets 1/2 of the 340 requests/s, 1/1 before" in found.side_effects[0]
    assert found.requirements == (Requirement(MEMORY, "bytes", 250.0),)
    assert propose(state("1"), needs(2), {}) == propose(state("1"), needs(2), {})


def test_a_number_is_read_from_the_settings_text() -> None:
    assert [number(text) for text in ("3", "", "x", "0", "-1")] == [3, 1, 1, 1, 1]


def cause(scaling: str, fix: str = "batch-floor") -> Cause:
    def item(signal: str, value: float | None) -> Finding:
        return Finding(signal, Answer.YES, "above", value, 50.0, None, "ms", WINDOW, None)

    proof = (item("queue_time_ms", 930.0), item("unseen", None))
    return Cause(
        "batching-failed",
        "Batching has failed",
        "",
        "Enforce a batch floor.",
        "Do not add replicas; the device has time left.",
        fix,
        Confidence.HIGH,
        proof,
        (),
        scaling,
    )


def test_a_cause_that_more_replicas_do_not_cure_is_refused_with_its_proof() -> None:
    with pytest.raises(Refused) as caught:
        refuse_where_wrong(cause("wrong"))
    assert caught.value.message == (
        "capacity is not the problem: Batching has failed (batching-failed, confidence high): "
        "queue_time_ms 930 ms (above 50). Do not add replicas; the device has time left."
    )
    assert "`latencydoctor plan batch-floor` is for it" in caught.value.hint
    assert "--force" in caught.value.hint
    with pytest.raises(Refused) as caught:
        refuse_where_wrong(cause("wrong", fix=""))
    assert caught.value.hint.startswith("Instead: Enforce a batch floor; ")


@pytest.mark.parametrize("scaling", ["cures", "buys time", ""])
def test_a_cause_that_they_cure_or_ease_is_not(scaling: str) -> None:
    refuse_where_wrong(cause(scaling))


def on_one_server(instances: str) -> TargetState:
    """A target that can set instances and knows no replicas."""
    settings = ((INSTANCES, instances),)
    return TargetState("torchserve:x", (), settings, "", (), "", settable=frozenset({INSTANCES}))


def test_a_server_without_replicas_gets_as_many_instances_as_the_forecast_asks_for() -> None:
    found = propose(on_one_server("2"), needs(4), {MEMORY: 4e9})
    assert isinstance(found, Change)
    assert found.values == ((INSTANCES, "4"),)
    assert "share one server" in found.side_effects[0]
    assert found.requirements == (Requirement(MEMORY, "bytes", 4e9 * 2 * 1.25),)


def test_without_a_forecast_it_gets_one_more() -> None:
    found = propose(on_one_server("2"), UNKNOWN, {})
    assert isinstance(found, Change)
    assert found.values == ((INSTANCES, "3"),)


def test_no_instance_is_added_to_an_accelerator_that_has_no_time_left() -> None:
    busy = {"accelerator_busy_ratio": 0.93}
    found = propose(on_one_server("1"), needs(2), busy)
    assert isinstance(found, NothingToDo)
    assert "busy 93 %" in found.reason
    assert isinstance(propose(on_one_server("1"), needs(2), {"accelerator_busy_ratio": 0.85}), Change)
    assert isinstance(propose(on_one_server("1"), needs(2), busy, insisted=True), Change)
    assert isinstance(propose(state("1"), needs(2), busy), Change)


def test_instances_are_not_added_without_end() -> None:
    assert isinstance(propose(on_one_server(str(MOST_INSTANCES)), UNKNOWN, {}, insisted=True), NothingToDo)
