"""The gateway beside odd things: a model that lies, no file left to open, upkeep that breaks down."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import struct
import tempfile
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.encoder.shape import MAX_TOKENS
from latencydoctor.stack.encoder.tokenize import Tokens
from latencydoctor.stack.endpoints import Ports, endpoints_for
from latencydoctor.stack.faq_entries import load_entries
from latencydoctor.stack.gateway.effective import SettingsFile
from latencydoctor.stack.gateway.events import EventLog, unhindered
from latencydoctor.stack.gateway.inference import InferenceError, TritonModel
from latencydoctor.stack.gateway.process import RunningGateway, listen, listen_privately, serve
from latencydoctor.stack.gateway.turns import ServingFile
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.replicas import save_serving
from latencydoctor.stack.settings import Settings


class Lying(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]  # generated, untyped
    """A server on Triton's protocol that answers every question with one score."""

    def __init__(self, score: float) -> None:
        self._score = score

    def ModelInfer(self, request: Any, context: Any) -> Any:  # noqa: N802  # named by the protocol
        """The same answer to everything."""
        response = service_pb2.ModelInferResponse(model_name=request.model_name, model_version="1")
        for name, kind, content in (
            ("answer_index", "INT32", struct.pack("<i", 1)),
            ("score", "FP32", struct.pack("<f", self._score)),
        ):
            response.outputs.add(name=name, datatype=kind, shape=(1, 1))
            response.raw_output_contents.append(content)
        return response


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_no_answer(score: float) -> None:
    async def scene(address: str) -> None:
        model = TritonModel(address, "faq-encoder")
        tokens = Tokens((0,) * MAX_TOKENS, (0,) * MAX_TOKENS)
        try:
            with pytest.raises(InferenceError, match="score is"):
                await model.infer(tokens, version="", priority=0, timeout_s=5.0)
        finally:
            await model.close()

    server = grpc.server(futures.ThreadPoolExecutor(1))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Lying(score), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        asyncio.run(scene(f"127.0.0.1:{port}"))
    finally:
        server.stop(None).wait(5)


@contextmanager
def no_file_left() -> Iterator[None]:
    """As when a crowd's connections have taken all files that the process may have open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_settings_that_could_not_be_opened_are_read_later(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    stack_settings.save(path, Settings())
    found = SettingsFile(path)
    assert found.changed() == Settings()
    stack_settings.save(path, Settings().next_generation())
    with no_file_left():
        assert found.changed() is None
    assert "Too many open files" in found.error
    assert found.changed() == Settings().next_generation()
    assert found.error == ""


def test_replicas_that_could_not_be_read_stay_and_are_read_later(tmp_path: Path) -> None:
    path = tmp_path / "serving.json"
    save_serving(path, [1, 2])
    found = ServingFile(path, ("a:1", "b:2", "c:3"))
    save_serving(path, [1, 2, 3])
    with no_file_left():
        assert not found.changed()
    assert list(found.serving) == ["a:1", "b:2"]
    assert found.changed()
    assert list(found.serving) == ["a:1", "b:2", "c:3"]


def test_a_log_that_is_not_read_for_now_holds_nothing_up() -> None:
    """As by a supervisord that is stopped, or waits for its disk: a pipe holds 64 kB."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as log, os.fdopen(writing, "w") as plain:
        stream = unhindered(plain)
        events = EventLog(stream, itertools.count(1.0, 2.0).__next__, lambda _: None)
        for number in range(2000):
            events.emit("INFO", "many", "x" * 100, number=number)
        os.set_blocking(reading, False)
        kept = log.read().splitlines()
        assert [json.loads(line)["number"] for line in kept] == list(range(len(kept)))
        assert 100 < len(kept) < 2000
        events.emit("INFO", "many", "read again", number=7)
        assert json.loads(log.read())["message"] == "read again"


def test_a_log_that_is_no_pipe_stays_what_it_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        assert unhindered(stream) is stream


class Failing(RunningGateway):
    """Its upkeep breaks down."""

    async def tidy(self) -> None:
        """Never gets there."""
        raise RuntimeError("upkeep broke down")


def test_a_gateway_whose_upkeep_broke_down_ends_so_that_another_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    """It would go on answering, and never take settings up again."""
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(Path(folder))
        layout.run.mkdir()
        stack_settings.save(layout.settings, Settings())
        endpoints = endpoints_for(layout.run, Ports(0, 0, 0, 0, 1, 0, 0), "cpu", alertmanager=False)
        front, admin = listen(0), listen_privately(Path(endpoints.admin_socket))
        with front, admin:
            ended = serve(lambda: Failing(layout, endpoints, load_entries()), front, admin)
            asyncio.run(asyncio.wait_for(ended, 10.0))
    assert "upkeep broke down" in capsys.readouterr().out
