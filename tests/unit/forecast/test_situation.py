"""What a forecast starts from: evidence and facts of one service, or times that somebody typed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.forecast import situation
from latencydoctor.forecast.batcher import Batching
from latencydoctor.forecast.curve import BatchTime
from latencydoctor.model.evidence import (
    Collected,
    Evidence,
    Fact,
    Gap,
    GapReason,
    Incident,
    IncidentState,
    Measure,
    Proof,
    Selection,
    Series,
    Window,
)

PROOF = Proof("test", "q")
WINDOW = Window(100.0, 400.0)
VALUES = {
    "request_rate_rps": 500.0,
    "cache_hit_ratio": 0.2,
    "execution_rate_eps": 40.0,
    "compute_time_ms": 28.0,
    "batch_size_mean": 8.0,
    "accelerator_busy_ratio": 0.16,
    "config_dynamic_batching": 1.0,
    "config_preferred_batch_size": 8.0,
    "config_max_batch_size": 16.0,
    "config_queue_delay_ms": 5.0,
    "config_instance_count": 2.0,
    "e2e_mean_ms": 40.0,
    "server_time_ms": 36.0,
}


def evidence(values: dict[str, float], dialects: tuple[str, ...] = ("triton",)) -> Evidence:
    return Evidence(
        selection=Selection("m"),
        now_s=400.0,
        window=WINDOW,
        baseline_window=None,
        incident=Incident(IncidentState.HEALTHY, "", None, None, None, None, 0, 5),
        measures=tuple(Measure(name, "", value, None, value, WINDOW, None, PROOF) for name, value in values.items()),
        gaps=(Gap("config_max_batch_size", GapReason.NOT_CONFIGURED, "", "Triton's gRPC address (--triton)"),),
        log_events=(),
        dialects=dialects,
        queries=(),
    )


def collected(facts: tuple[Fact, ...] = (), rates: tuple[float, ...] = ()) -> Collected:
    times = tuple(90.0 + 30.0 * number for number in range(len(rates)))
    series = (Series("request_rate_rps", "requests/s", times, rates, PROOF),) if rates else ()
    return Collected(400.0, 30.0, 5.0, Selection("m"), ("triton",), series, facts, (), (), ())


def fact(signal: str, value: float) -> Fact:
    return Fact(signal, "", value, PROOF)


def test_a_service_is_read_from_its_evidence() -> None:
    facts = (
        fact("batch_8_executions", 30.0),
        fact("batch_8_time_ms", 28.0),
        fact("batch_4_executions", 12.0),
        fact("batch_4_time_ms", 24.0),
        fact("batch_2_executions", 3.0),
        fact("batch_x_executions", 3.0),
        fact("config_max_batch_size", 16.0),
    )
    known = situation.of(evidence(VALUES), collected(facts, (1.0, 500.0, 510.0)), replicas=2)
    assert known.batching == Batching(True, 8, 16, 5.0)
    assert (known.instances, known.replicas, known.rate_rps, known.hit_ratio) == (2, 2, 500.0, 0.2)
    assert known.times == (BatchTime(4, 12, 24.0), BatchTime(8, 30, 28.0))
    # The first point lies before the windows looked at.
    assert known.rates_rps == (500.0, 510.0)
    # Executions are those of two servers, a device's busy time that of one.
    assert known.measured["execution_rate_eps"] == 20.0
    assert known.engine == ""


def test_what_is_missing_is_named_with_what_it_needs() -> None:
    known = situation.of(evidence({"request_rate_rps": 0.0}), collected())
    assert known.batching is None
    assert known.rate_rps is None
    assert known.need("config_max_batch_size") == "config_max_batch_size (Triton's gRPC address (--triton))"
    assert known.need("request_rate_rps") == "request_rate_rps"


def test_an_engine_that_batches_inside_is_known() -> None:
    assert situation.of(evidence(VALUES, ("gateway", "vllm")), collected()).engine == "vllm"


def test_a_scenario_is_one_replica_under_the_whole_traffic() -> None:
    known = situation.of(evidence(VALUES), collected(), replicas=2)
    found = situation.scenario(known, 900.0, Batching(True, 16, 32, 10.0))
    assert not isinstance(found, str)
    one, told = found
    assert (one.traffic.rate_rps, one.instances, one.hit_ratio, one.outside_ms) == (900.0, 2, 0.2, 4.0)
    assert one.curve.batch_ms(8) == pytest.approx(28.0)
    assert "calibrated from the incident's own metrics" in told


def test_the_way_to_the_server_is_that_of_before_an_incident() -> None:
    seen = evidence(VALUES | {"network_time_ms": 14.0, "cache_time_ms": 0.5})
    before = tuple(replace(one, baseline=1.5) if one.signal == "network_time_ms" else one for one in seen.measures)
    known = situation.of(replace(seen, measures=before), collected())
    found = situation.scenario(known, 900.0, Batching(True, 16, 32, 10.0))
    assert not isinstance(found, str)
    assert found[0].outside_ms == pytest.approx(2.0)


def test_measured_burstiness_goes_with_another_rate() -> None:
    bursty = tuple(500.0 + (60.0 if number % 2 else -60.0) for number in range(12))
    known = replace(situation.of(evidence(VALUES), collected()), rates_rps=bursty, window_s=30.0)
    found = situation.scenario(known, 250.0, Batching(True, 16, 32, 10.0))
    assert not isinstance(found, str)
    assert found[0].traffic.group > 1
    assert found[0].traffic.rate_rps == 250.0


def test_without_a_curve_there_is_a_reason() -> None:
    known = situation.of(evidence({"request_rate_rps": 5.0}), collected())
    told = situation.scenario(known, 5.0, Batching(True, 16, 32, 10.0))
    assert isinstance(told, str)
    assert told.startswith("not measured: compute_time_ms")


def test_typed_times_count_as_exact() -> None:
    found = situation.scenario(situation.typed(20.0, 1.0), 100.0, Batching(True, 16, 32, 10.0))
    assert not isinstance(found, str)
    assert found[0].curve.batch_ms(32) == 52.0
    assert found[1] == "as given"


@pytest.mark.parametrize(
    ("told", "count"), [({}, 1), ({"config_instance_count": 0.0}, 1), ({"config_instance_count": 2e9}, 1024)]
)
def test_instances_are_as_many_as_a_server_can_have(told: dict[str, float], count: int) -> None:
    """Each is a place in memory."""
    assert situation.instances_of(told) == count
