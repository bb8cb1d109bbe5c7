"""From TorchServe's description of a model to facts: foreign JSON in, values or the reason why not out.

A description is a list that holds one version of the model. `batchSize` and `maxBatchDelay` (ms) are set when a model
is registered; TorchServe starts `minWorkers` workers and keeps up to `maxWorkers` that were asked for later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from latencydoctor.evidence.redact import plain
from latencydoctor.model.evidence import Fact, Gap, GapReason, Proof
from latencydoctor.sources.transport import FailureKind, TransportError

READY = "READY"
"""A worker that runs and has the model loaded; TorchServe calls every other one UNLOADING."""

MOST_STATES_SHOWN = 4

_LARGEST = 2.0**53
"""Above it neighbouring whole numbers are the same float; JSON's numbers have no bound of their own."""

_UNITS = {
    "config_max_batch_size": "items",
    "config_queue_delay_ms": "ms",
    "config_dynamic_batching": "",
    "config_instance_count": "instances",
    "config_queue_size": "requests",
    "instances_ready": "instances",
    "requests_waiting": "requests",
}
_UNTOLD = {
    "config_preferred_batch_size": "TorchServe has no preferred size: it waits for batchSize, up to maxBatchDelay",
    "executed_batch_size_p50": "TorchServe does not count batches",
}
SIGNALS = (*_UNITS, *_UNTOLD)


@dataclass(frozen=True, slots=True)
class Told:
    """One value, and the field of the description that it was read from."""

    signal: str
    value: float
    field: str

    def fact(self, proof: Proof) -> Fact:
        """The value as a fact."""
        return Fact(self.signal, _UNITS[self.signal], self.value, proof)


@dataclass(frozen=True, slots=True)
class Described:
    """What a description tells; `version` says which version it is of, in words."""

    version: str
    told: tuple[Told, ...]
    gaps: tuple[Gap, ...]


def facts_of(description: object, model: str) -> Described:
    """The facts of a model's default version; `TransportError` when this describes no such model."""
    version = _version(description, model)
    found = tuple(_batching(version)) + tuple(_workers(version)) + tuple(_queue(version))
    untold = tuple(Gap(signal, GapReason.NOT_SUPPORTED, reason) for signal, reason in _UNTOLD.items())
    name = version.get("modelVersion")
    return Described(
        version=f"default version {plain(name, 40)}" if isinstance(name, str) and name else "default version",
        told=tuple(item for item in found if isinstance(item, Told)),
        gaps=(*(item for item in found if isinstance(item, Gap)), *untold),
    )


def _version(description: object, model: str) -> Mapping[str, object]:
    entries = description if isinstance(description, list) else []
    if len(entries) != 1 or not isinstance(entries[0], dict) or entries[0].get("modelName") != model:
        # A lenient server may answer any path with something; only what names the model is about it.
        raise TransportError(FailureKind.NOT_JSON, "the server sent JSON that is not TorchServe's")
    return entries[0]


def _batching(version: Mapping[str, object]) -> Iterator[Told | Gap]:
    size = _number(version, "batchSize", "config_max_batch_size", least=1)
    yield size
    yield _number(version, "maxBatchDelay", "config_queue_delay_ms")
    if version.get("continuousBatching") is True:
        yield Told("config_dynamic_batching", 1.0, "continuousBatching")
    elif isinstance(size, Told):
        yield Told("config_dynamic_batching", float(size.value > 1), "batchSize")
    else:
        yield Gap("config_dynamic_batching", size.reason, size.detail)


def _workers(version: Mapping[str, object]) -> Iterator[Told | Gap]:
    wanted = _number(version, "minWorkers", "config_instance_count")
    states = _states(version.get("workers"))
    if states is None:
        yield wanted
        yield _absent(version, "workers", "instances_ready")
        return
    listed = sum(states.values())
    if isinstance(wanted, Told) and wanted.value >= listed:
        yield wanted
    else:
        yield Told("config_instance_count", float(listed), "workers")
    ordered = sorted(states.items(), key=lambda pair: (pair[0] != READY, pair[0]))[:MOST_STATES_SHOWN]
    words = ", ".join(f"{count} {plain(state, 30)}" for state, count in ordered) or "none"
    yield Told("instances_ready", float(states.get(READY, 0)), f"workers[].status: {words}")


def _states(workers: object) -> dict[str, int] | None:
    """How many workers are in each state; None when that is not told of each of them."""
    if not isinstance(workers, list):
        return None
    counts: dict[str, int] = {}
    for worker in workers:
        state = worker.get("status") if isinstance(worker, dict) else None
        if not isinstance(state, str):
            return None
        counts[state] = counts.get(state, 0) + 1
    return counts


def _queue(version: Mapping[str, object]) -> Iterator[Told | Gap]:
    queue = version.get("jobQueueStatus")
    if not isinstance(queue, dict):
        yield _absent(version, "jobQueueStatus", "requests_waiting")
        yield _absent(version, "jobQueueStatus", "config_queue_size")
        return
    if version.get("stateful") is True:
        reason = "with sequence batching TorchServe tells only the first of its queues"
        yield Gap("requests_waiting", GapReason.NOT_SUPPORTED, reason)
        yield Gap("config_queue_size", GapReason.NOT_SUPPORTED, reason)
        return
    waiting = _number(queue, "pendingRequests", "requests_waiting", within="jobQueueStatus.")
    left = _number(queue, "remainingCapacity", "config_queue_size", within="jobQueueStatus.")
    yield waiting
    if isinstance(waiting, Told) and isinstance(left, Told):
        # Read one after the other by TorchServe, so under load the sum may be off by what happened in between.
        fields = "jobQueueStatus.remainingCapacity + pendingRequests"
        yield Told("config_queue_size", waiting.value + left.value, fields)
    else:
        failed = left if isinstance(left, Gap) else waiting
        assert isinstance(failed, Gap), "one of the two was not told"
        yield Gap("config_queue_size", failed.reason, failed.detail)


def _number(told: Mapping[str, object], key: str, signal: str, *, least: float = 0, within: str = "") -> Told | Gap:
    value = told.get(key)
    # JSON's true is an int to Python.
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= _LARGEST:
        return Told(signal, float(value), within + key)
    return _absent(told, key, signal, within)


def _absent(told: Mapping[str, object], key: str, signal: str, within: str = "") -> Gap:
    if told.get(key) is None:
        return Gap(signal, GapReason.NOT_SUPPORTED, f"this TorchServe does not tell {within}{key}")
    return Gap(signal, GapReason.BAD_ANSWER, f"TorchServe's {within}{key} is not what it should be")
