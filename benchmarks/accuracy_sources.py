"""What the matrix puts between the program and its Prometheus: settings told as facts, and families taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from latencydoctor.app.ports import MetricsSource
from latencydoctor.model.evidence import Fact, Proof, Selection
from latencydoctor.model.readings import Discovery, RangeQuery, Readings
from latencydoctor.model.rule import Dialect

FAMILIES: dict[str, tuple[str, ...]] = {
    "accelerator": ("DCGM_", "nv_gpu_"),
    "latency parts": (
        "nv_inference_queue_duration_us",
        "nv_inference_compute_",
        "vllm:request_queue_time_seconds",
        "vllm:request_prefill_time_seconds",
        "vllm:request_decode_time_seconds",
        "vllm:request_inference_time_seconds",
        "ts_queue_latency_microseconds",
    ),
    "batching": ("nv_inference_exec_count", "nv_inference_count", "vllm:iteration_tokens_total"),
    "engine state": ("vllm:num_requests_", "vllm:kv_cache_", "vllm:num_preemptions", "nv_inference_pending"),
    "tokens": (
        "vllm:prompt_tokens",
        "vllm:generation_tokens",
        "vllm:request_prompt_tokens",
        "vllm:request_generation_tokens",
        "vllm:prefix_cache_",
        "vllm:inter_token_latency",
        "vllm:time_to_first_token",
    ),
    "cache": ("redis_", "nv_cache_"),
    "front end": ("nginx_ingress_", "envoy_", "gateway_", "http_request"),
    "platform": ("kube_", "container_", "coredns_"),
    "configuration": (),
}
"""What is taken away at a time: prefixes of metric names; `configuration` is the settings, which are no metrics."""


SERVERS = {"triton": "nv_", "vllm": "vllm:", "torchserve": "ts_"}
"""How the metrics of each engine begin."""


def families_of(engine: str) -> tuple[str, ...]:
    """The families whose absence an engine's diagnosis can feel; another server's metrics were never there."""
    others = tuple(prefix for name, prefix in SERVERS.items() if name != engine)
    return tuple(
        family
        for family, prefixes in FAMILIES.items()
        if any(not prefix.startswith(others) for prefix in prefixes) or (not prefixes and engine != "vllm")
    )


@dataclass(frozen=True, slots=True)
class Pruned:
    """A metrics source that has never heard of one family."""

    source: MetricsSource
    family: str

    def discover(self, dialects: Sequence[Dialect], selection: Selection, at_s: float) -> Discovery:
        """What is there, less the family."""
        found = self.source.discover(dialects, selection, at_s)
        return replace(found, names=self._kept(found.names), shared_names=self._kept(found.shared_names))

    def collect(self, queries: Sequence[RangeQuery]) -> Readings:
        """The answers as they are: what is not known to be there is not asked for."""
        return self.source.collect(queries)

    def _kept(self, names: frozenset[str]) -> frozenset[str]:
        prefixes = FAMILIES[self.family]
        return frozenset(name for name in names if not prefixes or not name.startswith(prefixes))


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in effect, as the server's own API would tell them."""

    values: Mapping[str, float]
    units: Mapping[str, str]

    def read(self, selection: Selection) -> Readings:
        """Each setting as a fact."""
        del selection
        proof = Proof("simulated server", "configuration")
        facts = (Fact(signal, self.units.get(signal, ""), value, proof) for signal, value in self.values.items())
        return Readings(facts=tuple(facts))
