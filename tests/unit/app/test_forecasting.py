"""Questions to a forecast: settings, rates, replicas, and what is refused or cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.app.forecasting import (
    ENABLED,
    HIT_RATIO,
    INSTANCES,
    MAXIMUM,
    PREFERRED,
    REPLICAS,
    WAIT,
    Question,
    batching_of,
    forecast,
)
from latencydoctor.errors import CannotTell, UsageError
from latencydoctor.forecast.batcher import Batching
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.forecast.situation import Situation, typed

BAD = Batching(True, 0, 8, 0.0)
SCENE = Situation(
    measured={"request_rate_rps": 250.0, "e2e_p99_ms": 2140.0, "e2e_mean_ms": 60.0, "server_time_ms": 57.0},
    batching=BAD,
    times=tuple(BatchTime(size, 60, 20.0 + size) for size in (2, 4, 8)),
    missing=(("request_rate_rps", "a request counter"), ("config_max_batch_size", "--triton")),
    simulated=True,
)
GOOD = ((MAXIMUM, "32"), (PREFERRED, "16"), (WAIT, "100000"))


def test_other_settings_stand_beside_those_in_effect() -> None:
    found = forecast(SCENE, Question(values=GOOD))
    assert [row.settings for row in found.rows] == [
        "as it is: at most 8, none preferred, waits 0 ms",
        "max_batch_size 32, preferred_batch_size 16, timeout_micros 100000",
    ]
    now, after = (row.estimate for row in found.rows)
    assert now.load_ratio == pytest.approx(250 / 285.7, rel=0.01)
    assert after.load_ratio == pytest.approx(250 / 615.4, rel=0.01)
    assert found.measured_p99_ms == 2140.0
    assert found.simulated
    assert found.basis[0] == (
        "an execution takes 20.0 ms + 1.00 ms a request, fitted to 180 executions of 3 batch sizes; "
        "batches above 8 were never seen"
    )
    assert found.basis[1] == "arrivals independent of each other, 3.0 ms outside the server"
    assert not any("rates" in note for note in found.notes)


def test_several_rates_and_a_factor() -> None:
    found = forecast(SCENE, Question(rates_rps=(100.0, 200.0), times=2.0))
    assert [row.estimate.rate_rps for row in found.rows] == [200.0, 400.0]
    assert found.rows[0].estimate.p99_ms is not None
    assert found.rows[1].estimate.unstable.startswith("arrivals exceed what can be served")


def test_instances_replicas_and_hits_carry_more() -> None:
    def load(*values: tuple[str, str]) -> float:
        return forecast(SCENE, Question(values=values, rates_rps=(500.0,))).rows[-1].estimate.load_ratio

    alone = load((MAXIMUM, "8"))
    assert alone == pytest.approx(1.75, rel=0.01)
    assert load((INSTANCES, "2")) == pytest.approx(alone / 2)
    assert load((REPLICAS, "2")) == pytest.approx(alone / 2)
    assert load((HIT_RATIO, "0.5")) == pytest.approx(alone / 2)


def test_more_instances_are_said_to_share_a_device() -> None:
    found = forecast(SCENE, Question(values=((INSTANCES, "2"),)))
    assert any("on one device they slow each other down" in note for note in found.notes)


def test_measured_burstiness_is_told() -> None:
    def basis(rates: tuple[float, ...]) -> str:
        return forecast(replace(SCENE, rates_rps=rates, window_s=10.0), Question(values=GOOD)).basis[1]

    assert basis(tuple(250.0 + (20.0 if number % 2 else -20.0) for number in range(12))).startswith(
        "arrivals in groups"
    )
    swinging = tuple(250.0 + (25.0 if number % 8 < 4 else -25.0) for number in range(48))
    assert basis(swinging).startswith("a rate that swings by ")


def test_without_a_batcher_requests_go_one_by_one() -> None:
    found = forecast(SCENE, Question(values=((ENABLED, "false"),), rates_rps=(20.0,)))
    assert found.basis[2] == "batcher: no dynamic batching, one request an execution"


def test_levels_are_asked_for_by_their_share() -> None:
    found = forecast(SCENE, Question(vip_ratio=0.2))
    assert found.rows[0].estimate.vip_p99_ms is not None


def test_a_capacity_question() -> None:
    found = forecast(SCENE, Question(values=GOOD, times=5.0, slo_ms=1_000.0))
    assert found.rows == ()
    # Three carry it by the line, but batches of 32 were never seen.
    assert [one.replicas for one in found.sizing] == [4]
    known = replace(SCENE, times=(*SCENE.times, BatchTime(32, 60, 52.0)))
    found = forecast(known, Question(values=GOOD, times=5.0, slo_ms=1_000.0))
    assert [one.replicas for one in found.sizing] == [3]


def test_a_server_at_its_limit_is_said_to_hide_what_arrives() -> None:
    full = replace(SCENE, measured=dict(SCENE.measured) | {"request_rate_rps": 285.0})
    assert any("more may arrive" in note for note in forecast(full, Question(values=GOOD)).notes)
    assert not any("more may arrive" in note for note in forecast(SCENE, Question(values=GOOD)).notes)


def test_times_that_were_typed_need_nothing_measured() -> None:
    found = forecast(typed(20.0, 1.0), Question(values=GOOD, rates_rps=(310.0,)))
    assert [row.settings for row in found.rows] == ["max_batch_size 32, preferred_batch_size 16, timeout_micros 100000"]
    assert found.measured_p99_ms is None


def test_times_from_rates_are_said_to_be() -> None:
    rates = {
        "compute_time_ms": 28.0,
        "batch_size_mean": 8.0,
        "execution_rate_eps": 31.0,
        "accelerator_busy_ratio": 0.25,
    }
    known = replace(SCENE, times=(), measured=dict(SCENE.measured) | rates)
    assert any("Times come from rates" in note for note in forecast(known, Question(values=GOOD)).notes)


@pytest.mark.parametrize(
    ("known", "question", "named"),
    [
        (replace(SCENE, batching=None), Question(), "config_max_batch_size (--triton)"),
        (replace(SCENE, measured={}), Question(), "request_rate_rps (a request counter)"),
        (replace(SCENE, times=()), Question(), "not measured: compute_time_ms"),
        (replace(SCENE, engine="vllm"), Question(), "vllm admits requests"),
    ],
)
def test_what_cannot_be_predicted_names_the_missing_signal(known: Situation, question: Question, named: str) -> None:
    with pytest.raises(CannotTell) as caught:
        forecast(known, question)
    assert named in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("inference.model", "x", "knows no setting"),
        (MAXIMUM, "0", "from 1 to 1024"),
        (MAXIMUM, "many", "a whole number"),
        (MAXIMUM, "1.5", "a whole number"),
        (HIT_RATIO, "1.5", "a number from 0 to 1"),
        (HIT_RATIO, "nan", "a number from 0 to 1"),
        (ENABLED, "yes", "true or false"),
        (PREFERRED, "64", "above the largest, 8"),
    ],
)
def test_settings_that_are_none_are_refused(key: str, value: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        forecast(SCENE, Question(values=((key, value),)))


def test_settings_are_completed_from_those_in_effect() -> None:
    now = Batching(True, 16, 32, 100.0)
    assert batching_of(now, {MAXIMUM: "8"}) == Batching(True, 8, 8, 100.0)
    assert batching_of(now, {ENABLED: "false"}) == Batching(False, 16, 32, 100.0)
    assert batching_of(None, {ENABLED: "false"}) == Batching(False, 0, 1, 0.0)
    assert batching_of(None, {MAXIMUM: "8"}) is None
    assert batching_of(None, dict(GOOD)) == now
