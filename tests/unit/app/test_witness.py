"""What the queue model says of a suspicion, asked with what the diagnosis has measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.app.witness import ask_queue
from latencydoctor.model.cause import CauseRule, Undo
from latencydoctor.model.diagnosis import Answer
from tests.unit.builders import evidence, measure
from tests.unit.diagnosis.rules import above, rule

SLO_MS = 1000.0
SUSPECT = rule("suspect", 10, above("queue_time_ms"))

# One replica with batches of one: 20 ms an execution, 50 requests/s served, 60 arrive.
OVERLOADED = (
    measure("e2e_p99_ms", 4000, 60),
    measure("e2e_mean_ms", 2500, 30),
    measure("server_time_ms", 2490, 25),
    measure("request_rate_rps", 60, 20),
    measure("compute_time_ms", 20, 20),
    measure("execution_time_ms", 20, 20),
    measure("batch_size_mean", 1, 1),
    measure("execution_rate_eps", 50, 20),
    measure("accelerator_busy_ratio", 0.5, 0.2),
    measure("config_max_batch_size", 1),
    measure("config_dynamic_batching", 0),
    measure("config_instance_count", 1),
)


def suspect(undo: Undo | None) -> CauseRule:
    return replace(SUSPECT, undo=undo)


@pytest.mark.parametrize("undo", [Undo.BATCHING, Undo.RATE])
def test_undoing_what_overloads_a_server_would_be_enough(undo: Undo) -> None:
    said = ask_queue(suspect(undo), evidence(*OVERLOADED), SLO_MS)
    assert said is not None
    assert said.answer is Answer.YES
    assert said.undone_p99_ms is not None
    assert said.undone_p99_ms < SLO_MS == said.limit_ms
    assert said.measured_p99_ms == 4000


def test_undoing_what_did_not_change_would_not_be_enough() -> None:
    said = ask_queue(suspect(Undo.EXECUTION_TIME), evidence(*OVERLOADED), SLO_MS)
    assert said is not None
    assert said.answer is Answer.NO


def test_what_is_not_measured_is_unknown_and_named() -> None:
    without_rate = [one for one in OVERLOADED if one.signal != "request_rate_rps"]
    said = ask_queue(suspect(Undo.RATE), evidence(*without_rate), SLO_MS)
    assert said is not None
    assert said.answer is Answer.UNKNOWN
    assert "request_rate_rps" in said.reason


def test_a_cause_that_turned_nothing_in_the_queue_is_not_asked_about() -> None:
    assert ask_queue(suspect(None), evidence(*OVERLOADED), SLO_MS) is None


@pytest.mark.parametrize("limit", [None, 0.0])
def test_a_server_that_tells_no_batch_limit_has_no_queue_to_simulate(limit: float | None) -> None:
    others = [one for one in OVERLOADED if one.signal != "config_max_batch_size"]
    told = [measure("config_max_batch_size", limit)] if limit is not None else []
    assert ask_queue(suspect(Undo.RATE), evidence(*others, *told), SLO_MS) is None
