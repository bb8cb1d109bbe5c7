"""The controller where something goes wrong beside a change: what is away for long, refused half way, or hidden."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2

from latencydoctor.errors import ContentError
from latencydoctor.stack.compile import model_config, to_pbtxt
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, Settings
from latencydoctor.stack.settings_canary import CanarySettings
from tests.contract.test_stack_controller import Desk, Leaving, Server, larger

TWO = Settings(inference=InferenceSettings(replicas=2))
THREE = Settings(inference=InferenceSettings(replicas=3))


def obedient(server: Server) -> None:
    """From now on the server runs what it was told to load."""
    plain = server.load

    def load(model: str, config_json: str) -> None:
        plain(model, config_json)
        server.config = json_format.Parse(config_json, model_config_pb2.ModelConfig())

    server.load = load  # type: ignore[method-assign]  # in place of the server's


def test_a_triton_that_stays_away_is_not_told_of_every_second(desk: Desk) -> None:
    desk.write(Settings())
    desk.controller.step()
    desk.now_s += 1.0
    desk.controller.step()
    desk.living[0].clear()
    desk.server.away = True
    for _ in range(5):
        desk.now_s += 1.0
        desk.controller.step()
    assert desk.events == ["settings_in_effect", "model_restart_failed"]


def test_a_canary_that_stays_away_is_not_told_of_at_every_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latencydoctor.stack.controller.loop.CANARY_LOOK_S", 0.0)
    desk = Desk(tmp_path, replicas=2)
    desk.write(replace(TWO, canary=CanarySettings(BatchingSettings(max_batch_size=64))))
    desk.controller.step()
    desk.servers[1].away = True
    for _ in range(5):
        desk.controller.step()
    assert desk.events.count("canary_unknown") == 1


def test_a_canary_that_has_been_decided_on_is_not_loaded_again_while_replicas_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latencydoctor.stack.controller.loop.CANARY_LOOK_S", 0.0)
    desk = Desk(tmp_path, 3, Leaving)
    for server in desk.servers:
        obedient(server)
    tried = replace(THREE, canary=CanarySettings(BatchingSettings(max_batch_size=64)))
    desk.write(tried)
    assert desk.controller.step()
    promoted = replace(larger(TWO), generation=2)
    desk.write(promoted)
    for _ in range(4):
        assert not desk.controller.step()
    assert [len(server.loaded) for server in desk.servers] == [1, 1, 1]
    assert desk.servers[0].config.max_batch_size == 64
    assert "canary_loaded_again" not in desk.events


def test_a_refusal_while_replicas_end_leaves_what_they_run_by_then(tmp_path: Path) -> None:
    desk = Desk(tmp_path, 3, Leaving)
    desk.write(THREE)
    assert desk.controller.step()
    for server in desk.servers:
        obedient(server)
    half = replace(larger(TWO), generation=2)
    desk.write(half)
    assert not desk.controller.step()
    desk.server.refuses = True
    tiny = replace(half, generation=3, inference=replace(half.inference, batching=BatchingSettings(max_batch_size=16)))
    desk.write(tiny)
    assert desk.controller.step()
    assert desk.events[-1] == "settings_refused"
    assert desk.pbtxt.read_text(encoding="utf-8") == to_pbtxt(half), "a Triton that starts now runs what the others do"
    assert desk.progress.current.generation == 2


def test_a_dead_model_is_started_again_while_another_triton_is_away(tmp_path: Path) -> None:
    desk = Desk(tmp_path, replicas=2)
    desk.write(TWO)
    desk.controller.step()
    desk.now_s += 1.0
    desk.controller.step()
    desk.servers[1].away = True
    desk.write(larger(TWO))
    assert not desk.controller.step()
    desk.living[0].clear()
    desk.now_s += 1.0
    assert not desk.controller.step()
    assert desk.progress.current.model_restarts == 1


def test_settings_that_become_readable_are_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write(Settings())
    with monkeypatch.context() as denied:
        denied.setattr("latencydoctor.stack.controller.loop.read_text", denied_text)
        desk.controller.step()
        desk.controller.step()
    assert desk.events == ["settings_refused"]
    desk.settings.chmod(0o644)
    desk.controller.step()
    assert desk.progress.current.generation == 1


def denied_text(path: Path) -> str:
    """As another user's file is read, whatever user runs the tests."""
    raise ContentError(f"cannot read {path}: Permission denied")


def test_a_disk_that_was_full_for_a_moment_refuses_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write(Settings())
    desk.controller.step()
    desk.write(larger(Settings()))
    for full in (
        "latencydoctor.stack.controller.loop.write_atomically",
        "latencydoctor.stack.controller.fleet.Standing.serve",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(full, no_room)
            for _ in range(3):
                assert not desk.controller.step()
        assert "No space left" in desk.progress.current.error
        assert desk.progress.current.generation == 1
    assert desk.controller.step()
    assert desk.progress.current.generation == 2
    assert desk.events == ["settings_in_effect", "disk_unavailable", "settings_in_effect"]


def no_room(*_: object) -> None:
    """What writing comes to."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_controller_killed_while_it_tried_settings_leaves_nothing_of_those_that_are_refused(desk: Desk) -> None:
    """A Triton that starts again would load what nobody could, and end."""
    desk.write(Settings())
    desk.controller.step()
    tried = larger(Settings())
    desk.write(tried)
    desk.pbtxt.write_text(to_pbtxt(tried), encoding="utf-8")
    desk.server.refuses = True
    desk.start_again()
    assert desk.controller.step()
    assert desk.pbtxt.read_text(encoding="utf-8") == to_pbtxt(Settings())


def test_a_damaged_configuration_in_the_model_folder_is_replaced(desk: Desk) -> None:
    desk.pbtxt.write_bytes(b"\xff\xfe")
    desk.write(Settings())
    assert desk.controller.step()
    assert desk.pbtxt.read_text(encoding="utf-8") == to_pbtxt(Settings())
    assert desk.progress.current.generation == 1


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_scene_is_sound() -> None:
    assert model_config(larger(Settings())).max_batch_size == 64
