"""Each fact by itself: what a description has to hold for it, and what is said when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from latencydoctor.model.evidence import Gap, GapReason
from latencydoctor.sources.torchserve_description import SIGNALS, Described, facts_of
from latencydoctor.sources.transport import TransportError

WHOLE: dict[str, Any] = {
    "modelName": "tiny",
    "modelVersion": "1.0",
    "minWorkers": 2,
    "maxWorkers": 4,
    "batchSize": 8,
    "maxBatchDelay": 50,
    "continuousBatching": False,
    "stateful": False,
    "workers": [{"status": "READY"}, {"status": "READY"}],
    "jobQueueStatus": {"remainingCapacity": 97, "pendingRequests": 3},
}
NEVER = {"config_preferred_batch_size", "executed_batch_size_p50"}


def described(**changed: object) -> Described:
    """A description with some fields given another value, or left out where that is None."""
    return facts_of([{key: value for key, value in (WHOLE | changed).items() if value is not None}], "tiny")


def values(found: Described) -> dict[str, float]:
    return {one.signal: one.value for one in found.told}


def gaps(found: Described) -> dict[str, Gap]:
    return {gap.signal: gap for gap in found.gaps if gap.signal not in NEVER}


def test_a_whole_description_is_read() -> None:
    found = described()
    assert values(found) == {
        "config_max_batch_size": 8,
        "config_queue_delay_ms": 50,
        "config_dynamic_batching": 1,
        "config_instance_count": 2,
        "instances_ready": 2,
        "requests_waiting": 3,
        "config_queue_size": 100,
    }
    assert found.version == "default version 1.0"
    assert {gap.signal for gap in found.gaps} == NEVER


@pytest.mark.parametrize("key", WHOLE.keys() - {"modelName"})
@pytest.mark.parametrize("value", [None, "8", True, -1, 10**400, [], {}, [7], {"status": 3}, [{"status": 3}]])
def test_whatever_a_field_holds_each_signal_is_told_or_a_gap(key: str, value: object) -> None:
    found = described(**{key: value})
    told = [one.signal for one in found.told] + [gap.signal for gap in found.gaps]
    assert sorted(told) == sorted(SIGNALS)


@pytest.mark.parametrize(
    ("changed", "batched"), [({}, 1.0), ({"batchSize": 1}, 0.0), ({"batchSize": 1, "continuousBatching": True}, 1.0)]
)
def test_a_batch_of_one_is_no_batching_unless_it_is_continuous(changed: dict[str, object], batched: float) -> None:
    assert values(described(**changed))["config_dynamic_batching"] == batched


@pytest.mark.parametrize("size", [0, None, "4", True, 2.0**60])
def test_without_a_batch_size_nothing_is_said_of_batching(size: object) -> None:
    found = described(batchSize=size)
    reason = GapReason.NOT_SUPPORTED if size is None else GapReason.BAD_ANSWER
    assert {signal: gap.reason for signal, gap in gaps(found).items()} == {
        "config_max_batch_size": reason,
        "config_dynamic_batching": reason,
    }
    assert "batchSize" in gaps(found)["config_max_batch_size"].detail


def test_workers_that_were_added_count_and_those_that_are_not_ready_are_named() -> None:
    workers = [{"status": "READY"}, {"status": "UNLOADING"}, {"status": "READY"}]
    found = described(workers=workers)
    assert values(found)["config_instance_count"] == 3
    (ready,) = (one for one in found.told if one.signal == "instances_ready")
    assert (ready.value, ready.field) == (2, "workers[].status: 2 READY, 1 UNLOADING")


def test_workers_that_are_gone_are_still_configured() -> None:
    found = values(described(workers=[]))
    assert (found["config_instance_count"], found["instances_ready"]) == (2, 0)


def test_a_model_without_workers_has_none() -> None:
    found = values(described(minWorkers=0, workers=[]))
    assert (found["config_instance_count"], found["instances_ready"]) == (0, 0)


def test_a_server_older_than_its_queue_s_status_says_so() -> None:
    found = gaps(described(jobQueueStatus=None))
    assert set(found) == {"requests_waiting", "config_queue_size"}
    assert {gap.reason for gap in found.values()} == {GapReason.NOT_SUPPORTED}


@pytest.mark.parametrize("missing", ["remainingCapacity", "pendingRequests"])
def test_half_a_queue_gives_no_size(missing: str) -> None:
    queue = {key: value for key, value in WHOLE["jobQueueStatus"].items() if key != missing}
    assert f"jobQueueStatus.{missing}" in gaps(described(jobQueueStatus=queue))["config_queue_size"].detail


def test_one_of_many_queues_is_not_taken_for_all() -> None:
    found = gaps(described(stateful=True))
    assert set(found) == {"requests_waiting", "config_queue_size"}


def test_foreign_words_are_tidied() -> None:
    found = described(modelVersion="\x1b[31m1\n0", workers=[{"status": "\x07" + "x" * 99}])
    assert "\x1b" not in found.version
    assert all(one.field.isprintable() and len(one.field) < 80 for one in found.told)


@pytest.mark.parametrize(
    "description",
    [None, {}, [], 3, "tiny", [3], [[]], [{}], [WHOLE, WHOLE], [WHOLE | {"modelName": "other"}], WHOLE],
)
def test_what_describes_another_or_nothing_is_refused(description: object) -> None:
    with pytest.raises(TransportError, match="TorchServe"):
        facts_of(description, "tiny")
