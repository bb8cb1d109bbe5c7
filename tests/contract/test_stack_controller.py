"""The controller against a settings file on disk and a Triton that refuses, is away, or loads."""

from __future__ import annotations

import json
import socket
import time
from concurrent import futures
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

from latencydoctor.errors import KnownError
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.compile import model_config, to_json, to_pbtxt
from latencydoctor.stack.controller.fleet import Standing
from latencydoctor.stack.controller.kept import KeptGenerations
from latencydoctor.stack.controller.loop import Controller, NotYetError, Served
from latencydoctor.stack.controller.stubs import StubWatch
from latencydoctor.stack.controller.triton import Triton, TritonUnavailableError
from latencydoctor.stack.controller_state import SharedProgress
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, Settings
from latencydoctor.stack.settings_canary import CanarySettings
from tests.contract.gateway_client import eventually


class Server:
    """A Triton that does as the test says."""

    def __init__(self) -> None:
        self.config = model_config(Settings())
        self.away = False
        self.refuses = False
        self.loaded: list[str] = []

    def effective(self, model: str) -> model_config_pb2.ModelConfig:
        if self.away:
            raise TritonUnavailableError("away")
        return self.config

    def load(self, model: str, config_json: str) -> None:
        if self.away:
            raise TritonUnavailableError("away")
        if self.refuses:
            raise KnownError("Triton refused the configuration: too large")
        self.loaded.append(config_json)

    def reload(self, model: str, config_json: str) -> None:
        self.load(model, config_json)


class Desk:
    """A controller with its file, its server and its log."""

    def __init__(self, folder: Path, replicas: int = 1, fleet: type[Standing[Server]] = Standing) -> None:
        self.settings = folder / "settings.yaml"
        self.pbtxt = folder / "models" / "faq-encoder" / "config.pbtxt"
        self.pbtxt.parent.mkdir(parents=True)
        self.pbtxt.write_text(to_pbtxt(Settings()), encoding="utf-8")
        self.servers = [Server() for _ in range(replicas)]
        self.server = self.servers[0]
        self.progress = SharedProgress()
        self.events: list[str] = []
        self.living = [{number} for number in range(replicas)]
        self.now_s = 0.0
        served = [Served(server, self.watch(living)) for server, living in zip(self.servers, self.living, strict=True)]
        self.history = folder / "settings-history.json"
        self.fleet = fleet(served)
        self.start_again()

    def start_again(self) -> None:
        """Another controller on the same files."""
        models, kept = self.pbtxt.parents[1], KeptGenerations(self.history)
        self.controller = Controller(self.settings, models, self.fleet, self.progress, self.log, kept)

    def watch(self, living: set[int]) -> StubWatch:
        """The watch over the processes of one server's model."""
        return StubWatch(lambda: tuple(living), living.__contains__, lambda: self.now_s)

    def kept(self) -> list[str]:
        """The texts that can be brought back."""
        return [one["text"] for one in json.loads(self.history.read_text(encoding="utf-8"))["generations"]]

    def log(self, level: str, event: str, message: str, **fields: object) -> None:
        self.events.append(event)

    def write(self, settings: Settings) -> None:
        stack_settings.save(self.settings, settings)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def larger(settings: Settings) -> Settings:
    batching = replace(settings.inference.batching, max_batch_size=64)
    return replace(settings.next_generation(), inference=replace(settings.inference, batching=batching))


def test_settings_that_are_in_effect_already_are_not_loaded(desk: Desk) -> None:
    desk.write(Settings())
    assert desk.controller.step()
    assert desk.server.loaded == []
    assert desk.progress.current.generation == 1
    assert desk.controller.step()
    assert desk.events == ["settings_in_effect"]


def test_a_change_is_written_and_loaded(desk: Desk) -> None:
    changed = larger(Settings())
    desk.write(changed)
    desk.controller.step()
    assert desk.server.loaded == [to_json(changed)]
    assert desk.pbtxt.read_text(encoding="utf-8") == to_pbtxt(changed)
    assert desk.progress.current.generation == 2
    assert desk.progress.current.reloads == 1


def test_a_refused_change_leaves_the_old_file_and_says_why(desk: Desk) -> None:
    desk.write(Settings())
    desk.controller.step()
    desk.server.refuses = True
    desk.write(larger(Settings()))
    assert desk.controller.step()
    assert desk.pbtxt.read_text(encoding="utf-8") == to_pbtxt(Settings())
    assert desk.progress.current.generation == 1
    assert desk.progress.current.seen_generation == 2
    assert "too large" in desk.progress.current.error
    assert desk.events[-1] == "settings_refused"


def test_what_came_into_effect_is_kept_as_it_was_written_and_what_was_refused_is_not(desk: Desk) -> None:
    first = "# by hand\n" + stack_settings.dump(Settings())
    desk.settings.write_text(first, encoding="utf-8")
    desk.controller.step()
    desk.server.refuses = True
    desk.write(larger(Settings()))
    desk.controller.step()
    assert desk.kept() == [first]
    desk.server.refuses = False
    third = stack_settings.dump(replace(larger(Settings()), generation=3))
    desk.settings.write_text(third, encoding="utf-8")
    desk.controller.step()
    assert desk.kept() == [first, third]


def test_settings_that_cannot_be_kept_are_in_effect_all_the_same(desk: Desk) -> None:
    desk.history.mkdir()
    desk.write(Settings())
    assert desk.controller.step()
    assert desk.progress.current.generation == 1
    assert desk.progress.current.error == ""
    assert desk.events == ["settings_in_effect", "settings_not_kept"]


def test_a_broken_file_and_a_missing_one_say_why(desk: Desk) -> None:
    desk.controller.step()
    assert "cannot read it" in desk.progress.current.error
    desk.settings.write_text("inference: 3", encoding="utf-8")
    desk.controller.step()
    assert "must be a mapping" in desk.progress.current.error
    desk.write(Settings())
    desk.controller.step()
    assert desk.progress.current.error == ""


def test_every_replica_gets_what_it_does_not_have(tmp_path: Path) -> None:
    desk = Desk(tmp_path, replicas=2)
    changed = larger(replace(Settings(), inference=InferenceSettings(replicas=2)))
    desk.server.config = model_config(changed)
    desk.write(changed)
    assert desk.controller.step()
    assert [server.loaded for server in desk.servers] == [[], [to_json(changed)]]
    assert desk.progress.current.generation == 2


def test_another_number_of_replicas_is_refused_where_nobody_starts_them(desk: Desk) -> None:
    desk.write(replace(Settings(), inference=InferenceSettings(replicas=2)))
    assert desk.controller.step()
    assert "inference.replicas is 2, 1 run" in desk.progress.current.error
    assert desk.events == ["settings_refused"]


def test_an_absent_triton_is_waited_for_and_logged_once(desk: Desk) -> None:
    desk.server.away = True
    changed = larger(Settings())
    desk.write(changed)
    assert not desk.controller.step()
    assert not desk.controller.step()
    assert desk.events == ["triton_unavailable"]
    # A Triton that starts now reads the new file.
    assert desk.pbtxt.read_text(encoding="utf-8") == to_pbtxt(changed)
    desk.server.away = False
    assert desk.controller.step()
    assert desk.progress.current.generation == 2
    assert desk.progress.current.error == ""


def test_a_dead_model_process_is_started_again(desk: Desk) -> None:
    desk.write(Settings())
    desk.controller.step()
    desk.now_s += 1.0
    desk.controller.step()
    desk.living[0].clear()
    desk.server.away = True
    desk.now_s += 1.0
    desk.controller.step()
    assert desk.events[-1] == "model_restart_failed"
    desk.server.away = False
    desk.now_s += 1.0
    desk.controller.step()
    assert desk.server.loaded == [to_json(Settings())]
    assert desk.progress.current.model_restarts == 1
    assert desk.events[-1] == "model_process_died"


class Leaving(Standing[Server]):
    """A fleet whose third Triton never ends."""

    def grow(self, replicas: int) -> None:
        """The first so many run."""

    def release(self, replicas: int, deadline_s: float) -> None:
        """Not yet over where the third is to go."""
        if replicas < 3:
            raise NotYetError("triton-3 is ending")


def test_a_replica_that_was_let_go_is_not_taken_for_one_that_died(tmp_path: Path) -> None:
    desk = Desk(tmp_path, 3, Leaving)
    desk.write(Settings(inference=InferenceSettings(replicas=3)))
    assert desk.controller.step()
    desk.now_s += 1.0
    assert desk.controller.step()
    desk.write(Settings(inference=InferenceSettings(replicas=1)).next_generation())
    assert not desk.controller.step()
    desk.living[1].clear()
    desk.now_s += 1.0
    assert not desk.controller.step()
    assert desk.servers[1].loaded == []
    assert desk.progress.current.model_restarts == 0


def test_a_triton_that_was_away_for_long_is_found_at_once() -> None:
    """The library's own backoff would ask again only seconds later, and minutes later after a long absence."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
    client = Triton(address)
    away_until_s = time.monotonic() + 6.0
    while time.monotonic() < away_until_s:
        with pytest.raises(TritonUnavailableError):
            client.effective("bert")
        time.sleep(0.1)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Present(), server)
    assert server.add_insecure_port(address)
    server.start()
    try:
        eventually(lambda: answers(client), "the client finds it", 1.6)
    finally:
        client.close()
        server.stop(None).wait(5)


class Present(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]  # generated, untyped
    """A server on Triton's protocol with one model."""

    def ModelConfig(self, request: Any, context: Any) -> Any:  # noqa: N802  # named by the protocol
        """An empty configuration."""
        return service_pb2.ModelConfigResponse(config={"name": "bert"})


def answers(client: Triton) -> bool:
    """Whether the client reaches its server."""
    try:
        return bool(client.effective("bert").name == "bert")
    except TritonUnavailableError:
        return False


def test_a_canary_of_batching_is_loaded_into_the_last_replica_only(tmp_path: Path) -> None:
    desk = Desk(tmp_path, replicas=2)
    stable = Settings(inference=InferenceSettings(replicas=2))
    tried = replace(stable.next_generation(), canary=CanarySettings(BatchingSettings(max_batch_size=64)))
    desk.write(tried)
    assert desk.controller.step()
    first, last = desk.servers
    assert (first.loaded, last.loaded) == ([], [to_json(tried.of_replica(2))])
    # A replica that is started again begins as all others, until it is looked at.
    assert desk.pbtxt.read_text(encoding="utf-8") == to_pbtxt(stable)
    assert desk.progress.current.generation == 2


def test_a_replica_that_lost_its_canary_gets_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latencydoctor.stack.controller.loop.CANARY_LOOK_S", 0.0)
    desk = Desk(tmp_path, replicas=2)
    tried = Settings(
        inference=InferenceSettings(replicas=2), canary=CanarySettings(BatchingSettings(max_batch_size=64))
    )
    desk.write(tried)
    desk.controller.step()
    last = desk.servers[1]
    last.config = model_config(tried.of_replica(2))
    desk.controller.step()
    assert len(last.loaded) == 1
    last.config = model_config(tried)
    desk.controller.step()
    assert last.loaded == [to_json(tried.of_replica(2))] * 2
    assert desk.events[-1] == "canary_loaded_again"
    last.away = True
    assert desk.controller.step()
    assert desk.events[-1] == "canary_unknown"
