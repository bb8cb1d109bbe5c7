"""A TorchServe's descriptions as records, and as settings and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from latencydoctor.errors import ContentError, KnownError
from latencydoctor.targets.torchserve_state import Registration, parsed, same_version, served

REGISTRATION = Registration("tiny", "1.0", "tiny-1.0.mar", 4, 50, 2, 3, 120, 66)


def described(**changed: Any) -> dict[str, Any]:
    told = {
        "modelName": "tiny",
        "modelVersion": "1.0",
        "modelUrl": "tiny-1.0.mar",
        "runtime": "python",
        "minWorkers": 2,
        "maxWorkers": 3,
        "batchSize": 4,
        "maxBatchDelay": 50,
        "responseTimeout": 120,
        "startupTimeout": 66,
        "deviceType": "cpu",
        "loadedAtStartup": True,
        "workers": [{"status": "READY"}, {"status": "UNLOADING"}, {"status": "READY"}],
        "jobQueueStatus": {"remainingCapacity": 92, "pendingRequests": 8},
    }
    return {**told, **changed}


def test_a_description_becomes_a_version() -> None:
    found = served([described()], [described(), described(modelVersion="2.0")], "tiny")

    assert found.default == "1.0"
    assert [version.name for version in found.versions] == ["1.0", "2.0"]
    assert found.versions[0].registration == REGISTRATION
    assert (found.versions[0].ready, found.versions[0].waiting) == (2, 8)


def test_what_changes_by_itself_is_not_part_of_a_versions_digest() -> None:
    def digest(**changed: Any) -> str:
        return served([described(**changed)], [described(**changed)], "tiny").versions[0].digest

    assert digest() == digest(workers=[], loadedAtStartup=False, jobQueueStatus={"pendingRequests": 0})
    for changed in ({"batchSize": 5}, {"deviceType": "gpu"}, {"maxWorkers": 4}, {"startupTimeout": 1}, {"stateful": 1}):
        assert digest() != digest(**changed)


@pytest.mark.parametrize(
    ("every", "says"),
    [
        ([], "not TorchServe's"),
        ({"code": 1}, "not TorchServe's"),
        (["tiny"], "not TorchServe's"),
        ([described(modelName="other")], "not TorchServe's"),
        ([described(workers=None)], "not TorchServe's"),
        ([described(batchSize=True)], "does not tell batchSize"),
        ([described(batchSize=1e3)], "does not tell batchSize"),
        ([described(minWorkers=-1)], "does not tell minWorkers"),
        ([described(responseTimeout=None)], "does not tell responseTimeout"),
        ([described(modelUrl="")], "does not tell modelUrl"),
        ([described(modelUrl="a\nb")], "does not tell modelUrl"),
        ([described(modelVersion="2.0")], "changed while they were read"),
    ],
)
def test_what_is_no_description_is_said(every: object, says: str) -> None:
    with pytest.raises(KnownError, match=says):
        served([described()], every, "tiny")


def test_a_queue_that_is_not_told_is_not_an_empty_one() -> None:
    (version,) = served([described()], [described(jobQueueStatus=None)], "tiny").versions
    assert version.waiting is None


@pytest.mark.parametrize("archive", ["tiny-1.0.mar", "https://store.example/a b?c=d&e='f'", 'quo"ted.mar', "Ü 😀.mar"])
def test_settings_say_the_same_there_and_back(archive: str) -> None:
    registration = replace(REGISTRATION, archive=archive, model="a: b #c")

    assert parsed(registration.text()) == registration
    assert parsed(registration.text()).text() == registration.text()


def test_settings_of_something_else_are_refused() -> None:
    with pytest.raises(ContentError, match="no settings of a TorchServe"):
        parsed("inference: {model: x}\n")
    with pytest.raises(ContentError, match="timeout_micros is 50500"):
        parsed(REGISTRATION.text().replace("50000", "50500"))


def test_versions_are_compared_as_torchserve_does() -> None:
    assert same_version("1.0", "1.00")
    assert not same_version("1.0", "1.1")
    assert same_version("a", "a")
