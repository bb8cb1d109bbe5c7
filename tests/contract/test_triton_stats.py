"""What Triton says of itself: against the stack's real Triton, and against servers that answer oddly."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from latencydoctor.model.evidence import GapReason, Selection
from latencydoctor.model.readings import Readings
from latencydoctor.sources.triton_stats import TritonStatistics, weighted_median
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout

CONFIG = {
    "config_max_batch_size",
    "config_preferred_batch_size",
    "config_queue_delay_ms",
    "config_dynamic_batching",
    "config_instance_count",
}
ALL = CONFIG | {"executed_batch_size_p50"}


def values(readings: Readings) -> dict[str, float]:
    return {fact.signal: fact.value for fact in readings.facts}


@pytest.mark.stack
def test_the_settings_in_effect_are_read_from_a_real_triton(live_stack: Endpoints, live_layout: Layout) -> None:
    wanted = stack_settings.load(live_layout.settings).inference.batching
    readings = TritonStatistics(live_stack.triton_grpc).read(Selection(""))
    found = values(readings)
    assert found["config_max_batch_size"] == wanted.max_batch_size
    assert found["config_preferred_batch_size"] == wanted.preferred_batch_size
    assert found["config_queue_delay_ms"] == wanted.timeout_micros / 1000
    assert found["config_dynamic_batching"] == 1.0
    assert found["config_instance_count"] == 1.0
    told = {signal for signal in found if not signal.startswith("batch_")}
    assert told | {gap.signal for gap in readings.gaps} == ALL
    assert {record.query for record in readings.queries} == {"ModelConfig(faq-encoder)", "ModelStatistics(faq-encoder)"}


@pytest.mark.stack
def test_a_model_that_a_real_triton_does_not_know_is_a_gap(live_stack: Endpoints) -> None:
    readings = TritonStatistics(live_stack.triton_grpc).read(Selection("no-such-model"))
    assert readings.facts == ()
    assert {gap.reason for gap in readings.gaps} == {GapReason.BAD_ANSWER}
    assert "no-such-model" in readings.gaps[0].detail


@dataclass(slots=True)
class Odd:
    """A server on Triton's protocol that says what it is told to."""

    models: tuple[tuple[str, str], ...] = (("bert", "READY"),)
    config: dict[str, Any] = field(default_factory=dict)
    batches: tuple[tuple[int, int], ...] = ()
    late_s: float = 0.0

    def servicer(self) -> service_pb2_grpc.GRPCInferenceServiceServicer:
        told = self

        class Servicer(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]  # generated, untyped
            def RepositoryIndex(self, request: Any, context: Any) -> Any:  # noqa: N802  # named by the protocol
                return service_pb2.RepositoryIndexResponse(
                    models=[{"name": name, "version": "1", "state": state} for name, state in told.models]
                )

            def ModelConfig(self, request: Any, context: Any) -> Any:  # noqa: N802  # named by the protocol
                time.sleep(told.late_s)
                return service_pb2.ModelConfigResponse(config=told.config)

            def ModelStatistics(self, request: Any, context: Any) -> Any:  # noqa: N802  # named by the protocol
                batches = [{"batch_size": size, "compute_infer": {"count": count}} for size, count in told.batches]
                return service_pb2.ModelStatisticsResponse(model_stats=[{"name": "bert", "batch_stats": batches}])

        return Servicer()


@contextlib.contextmanager
def serving(odd: Odd) -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(odd.servicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait(5)


def test_a_model_without_batching_and_with_instances_on_two_gpus() -> None:
    groups = [{"count": 2, "gpus": [0, 1]}, {"count": 1}]
    with serving(Odd(config={"max_batch_size": 8, "instance_group": groups})) as address:
        found = values(TritonStatistics(address).read(Selection("")))
    assert found == {
        "config_max_batch_size": 8.0,
        "config_preferred_batch_size": 0.0,
        "config_queue_delay_ms": 0.0,
        "config_dynamic_batching": 0.0,
        "config_instance_count": 5.0,
    }


def test_the_largest_preferred_size_and_the_median_batch_are_told() -> None:
    batching = {"preferred_batch_size": [4, 16], "max_queue_delay_microseconds": 1500}
    odd = Odd(config={"dynamic_batching": batching}, batches=((1, 10), (8, 30), (32, 15)))
    with serving(odd) as address:
        readings = TritonStatistics(address).read(Selection("bert"))
    found = values(readings)
    assert (found["config_preferred_batch_size"], found["config_queue_delay_ms"]) == (16.0, 1.5)
    assert found["executed_batch_size_p50"] == 8.0
    assert [found[f"batch_{size}_executions"] for size in (1, 8, 32)] == [10.0, 30.0, 15.0]
    assert readings.gaps == ()


def test_nothing_executed_yet_is_a_gap() -> None:
    with serving(Odd()) as address:
        readings = TritonStatistics(address).read(Selection("bert"))
    assert [(gap.signal, gap.reason) for gap in readings.gaps] == [
        ("executed_batch_size_p50", GapReason.TOO_FEW_SAMPLES)
    ]


@pytest.mark.parametrize("models", [(), (("a", "READY"), ("b", "READY"))])
def test_without_exactly_one_model_nothing_is_guessed(models: tuple[tuple[str, str], ...]) -> None:
    with serving(Odd(models)) as address:
        readings = TritonStatistics(address).read(Selection(""))
    assert {gap.signal for gap in readings.gaps} == ALL
    assert {gap.reason for gap in readings.gaps} == {GapReason.NOT_CONFIGURED}


def test_models_that_are_not_ready_do_not_count() -> None:
    with serving(Odd((("a", "UNAVAILABLE"), ("bert", "READY")))) as address:
        readings = TritonStatistics(address).read(Selection(""))
    assert readings.queries[0].query == "ModelConfig(bert)"


def test_a_late_answer_ends_at_the_deadline() -> None:
    with serving(Odd(late_s=4)) as address:
        started_s = time.monotonic()
        readings = TritonStatistics(address, 0.4).read(Selection("bert"))
        assert time.monotonic() - started_s < 3
    assert {gap.reason for gap in readings.gaps if gap.signal in CONFIG} == {GapReason.DEADLINE}
    assert readings.facts == ()


@pytest.mark.parametrize("model", ["", "bert"])
def test_a_closed_port_is_a_gap_at_once(model: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        started_s = time.monotonic()
        readings = TritonStatistics(f"127.0.0.1:{taken.getsockname()[1]}").read(Selection(model))
        assert time.monotonic() - started_s < 2.5
    assert {gap.signal for gap in readings.gaps} == ALL
    assert {gap.reason for gap in readings.gaps} == {GapReason.UNREACHABLE}


@pytest.mark.parametrize(
    ("counts", "middle"),
    [([], None), ([(8, 0)], None), ([(1, 1), (8, 1)], 1), ([(8, 3), (1, 1)], 8), ([(1, 5), (2, 4), (32, 2)], 2)],
)
def test_the_median_is_by_executions(counts: list[tuple[int, int]], middle: int | None) -> None:
    assert weighted_median(counts) == middle
