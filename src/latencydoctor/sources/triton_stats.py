"""Reads over gRPC what a Triton says of itself: the configuration in effect and the sizes of executed batches.

Neither has a history: facts, not series. `batch_stats` counts since the model was loaded.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from latencydoctor.evidence.redact import plain
from latencydoctor.model.evidence import Fact, Gap, GapReason, Proof, QueryRecord, Selection
from latencydoctor.model.readings import Readings

SOURCE = "triton"
DEADLINE_S = 3.0
"""For both questions together: a healthy Triton answers within milliseconds, also under load (its own threads)."""

_UNITS = {
    "config_max_batch_size": "items",
    "config_preferred_batch_size": "items",
    "config_queue_delay_ms": "ms",
    "config_dynamic_batching": "",
    "config_instance_count": "instances",
    "executed_batch_size_p50": "items",
}
_CONFIG_SIGNALS = tuple(signal for signal in _UNITS if signal.startswith("config_"))
_STATISTICS_SIGNALS = ("executed_batch_size_p50",)


@dataclass(frozen=True, slots=True)
class TritonStatistics:
    """A `FactSource` over Triton's gRPC address (`host:port`)."""

    address: str
    deadline_s: float = DEADLINE_S

    def read(self, selection: Selection) -> Readings:
        """Configuration and batch sizes of the selected model, or of the only one loaded; the rest are gaps."""
        ends_s = time.monotonic() + min(self.deadline_s, DEADLINE_S)
        # A proxy that the environment names is for the web.
        with triton.InferenceServerClient(self.address, channel_args=[("grpc.enable_http_proxy", 0)]) as client:
            session = _Session(client, ends_s)
            try:
                model = selection.model or session.only_model()
            except InferenceServerException as error:
                return _failed((*_CONFIG_SIGNALS, *_STATISTICS_SIGNALS), "models", error)
            if not model:
                gap = Gap("", GapReason.NOT_CONFIGURED, "several models are loaded and none was selected", "--model")
                return Readings(gaps=tuple(_for(signal, gap) for signal in _UNITS))
            return _joined(session.configuration(model), session.statistics(model))


@dataclass(frozen=True, slots=True)
class _Session:
    """The questions put to one server before `ends_s`."""

    client: triton.InferenceServerClient
    ends_s: float

    def _left_s(self) -> float:
        # Zero would mean no limit at all.
        return max(self.ends_s - time.monotonic(), 0.001)

    def only_model(self) -> str:
        """The name of the model that is ready, empty when it is not exactly one."""
        index = self.client.get_model_repository_index(client_timeout=self._left_s())
        names = sorted({str(model.name) for model in index.models if model.state == "READY"})
        return names[0] if len(names) == 1 else ""

    def configuration(self, model: str) -> Readings:
        """The batching settings in effect."""
        query = f"ModelConfig({plain(model)})"
        try:
            config = self.client.get_model_config(model, client_timeout=self._left_s()).config
        except InferenceServerException as error:
            return _failed(_CONFIG_SIGNALS, query, error)
        batching = config.dynamic_batching
        values = {
            "config_max_batch_size": float(config.max_batch_size),
            "config_preferred_batch_size": float(max(batching.preferred_batch_size, default=0)),
            "config_queue_delay_ms": batching.max_queue_delay_microseconds / 1000,
            "config_dynamic_batching": float(config.HasField("dynamic_batching")),
            # Triton fills `gpus` in; an instance on each of them is one instance more.
            "config_instance_count": float(
                sum(group.count * max(len(group.gpus), 1) for group in config.instance_group)
            ),
        }
        return _told(values, query)

    def statistics(self, model: str) -> Readings:
        """The median executed batch, and for each size how many executions there were and what they took on average.

        The latter two are for forecasts: `batch_<size>_executions` and `batch_<size>_time_ms`.
        """
        query = f"ModelStatistics({plain(model)})"
        try:
            answer = self.client.get_inference_statistics(model, client_timeout=self._left_s())
        except InferenceServerException as error:
            return _failed(_STATISTICS_SIGNALS, query, error)
        counts: dict[int, int] = {}
        took_ns: dict[int, int] = {}
        for version in answer.model_stats:
            for batch in version.batch_stats:
                size = int(batch.batch_size)
                counts[size] = counts.get(size, 0) + int(batch.compute_infer.count)
                parts = (batch.compute_input, batch.compute_infer, batch.compute_output)
                took_ns[size] = took_ns.get(size, 0) + sum(int(part.ns) for part in parts)
        middle = weighted_median(counts.items())
        if middle is None:
            gap = Gap("", GapReason.TOO_FEW_SAMPLES, "nothing was executed since the model was loaded")
            record = QueryRecord(SOURCE, query, gap.reason.value, 0)
            return Readings(gaps=tuple(_for(signal, gap) for signal in _STATISTICS_SIGNALS), queries=(record,))
        told = _told({"executed_batch_size_p50": float(middle)}, query)
        return replace(told, facts=(*told.facts, *_by_size(counts, took_ns, query)))


def _by_size(counts: Mapping[int, int], took_ns: Mapping[int, int], query: str) -> Iterator[Fact]:
    proof = Proof(SOURCE, query)
    for size, count in sorted(counts.items()):
        if count > 0:
            yield Fact(f"batch_{size}_executions", "executions", float(count), proof)
            yield Fact(f"batch_{size}_time_ms", "ms", took_ns[size] / count / 1e6, proof)


def weighted_median(counts: Iterable[tuple[int, int]]) -> int | None:
    """The value at which half of all counts is reached; None when nothing was counted."""
    ordered = sorted((value, count) for value, count in counts if count > 0)
    half = sum(count for _, count in ordered) / 2
    reached = 0
    for value, count in ordered:
        reached += count
        if reached >= half:
            return value
    return None


def _told(values: dict[str, float], query: str) -> Readings:
    proof = Proof(SOURCE, query)
    facts = tuple(Fact(signal, _UNITS[signal], value, proof) for signal, value in values.items())
    return Readings(facts=facts, queries=(QueryRecord(SOURCE, query, "ok", len(facts)),))


def _failed(signals: Iterable[str], query: str, error: InferenceServerException) -> Readings:
    status = str(error.status() or "")
    late = "DEADLINE" in status or "Deadline" in str(error)
    if late:
        gap = Gap("", GapReason.DEADLINE, "Triton did not answer in time")
    elif "UNAVAILABLE" in status:
        refused = "refused" in str(error.message()).lower()
        told = f"Triton does not answer: {'connection refused' if refused else 'there is no gRPC server'}"
        gap = Gap("", GapReason.UNREACHABLE, told, "Triton's gRPC address, port 8001 by default (--triton HOST:PORT)")
    else:
        gap = Gap("", GapReason.BAD_ANSWER, plain(str(error.message())))
    record = QueryRecord(SOURCE, query, gap.reason.value, 0)
    return Readings(gaps=tuple(_for(signal, gap) for signal in signals), queries=(record,))


def _for(signal: str, gap: Gap) -> Gap:
    return Gap(signal, gap.reason, gap.detail, gap.needs)


def _joined(first: Readings, second: Readings) -> Readings:
    return Readings(
        facts=(*first.facts, *second.facts),
        gaps=(*first.gaps, *second.gaps),
        queries=(*first.queries, *second.queries),
    )
