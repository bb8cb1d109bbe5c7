"""A real TorchServe's management API: idle, overloaded, without one of its workers, and as it was recorded."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from latencydoctor.model.configuration import Credentials, TorchServeSource
from latencydoctor.model.evidence import Selection
from latencydoctor.model.readings import Readings
from latencydoctor.sources.torchserve_management import TorchServeManagement
from scripts.record import torchserve_management as recipe
from scripts.record import torchserve_server as torchserve
from tests.contract.torchserve_replay import RECORDED, TINY, only_gaps, proof, values


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[torchserve.Server]:
    """A real TorchServe with its tokens on."""
    if shutil.which("java") is None:
        pytest.skip("TorchServe is a Java program, and there is no java on PATH")
    if importlib.util.find_spec("ts") is None:
        pytest.skip("torchserve is not installed: pip install torchserve==0.12.0")
    with torchserve.serving(Path(sys.executable), tmp_path_factory.mktemp("torchserve") / "it") as server:
        yield server


def ask(server: torchserve.Server, model: str = "") -> Readings:
    source = TorchServeSource(server.management, Credentials(bearer_file=str(server.key_file)))
    return TorchServeManagement(source).read(Selection(model))


@pytest.mark.slow
def test_a_real_torchserve_is_read_idle_overloaded_and_without_a_worker(real: torchserve.Server) -> None:
    assert values(ask(real)) == TINY
    found: list[Readings] = []
    recipe.overloaded(real, lambda: found.append(ask(real)))
    assert values(found[0])["requests_waiting"] > 0
    # TorchServe reads the two halves of its queue one after the other.
    assert values(found[0])["config_queue_size"] == pytest.approx(8, abs=4)
    recipe.worker_lost(real)
    lost = ask(real)
    assert values(lost) == TINY | {"instances_ready": 1}
    assert "1 READY, 1 UNLOADING" in proof(lost, "instances_ready")


@pytest.mark.slow
def test_a_real_torchserve_answers_as_recorded(real: torchserve.Server) -> None:
    for name, token, at in (("no_token", False, ""), ("absent", True, ""), ("metrics_port", True, real.metrics)):
        told = RECORDED[name]
        answer = real.get(told["path"], token=token, at=at)
        assert (answer.status, answer.content_type, answer.body) == (
            told["status"],
            told["content_type"],
            told["body"],
        )
    source = TorchServeSource(real.management)
    assert "Token Authorization" in only_gaps(TorchServeManagement(source).read(Selection("")))[1]
    assert "registered are: tiny" in only_gaps(ask(real, "ranker"))[1]
