"""supervisord's socket with somebody behind it who takes calls and answers none, as one that is stopped does."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack import revival, supervisor
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.supervisor import Supervisor


@pytest.fixture
def stopped() -> Iterator[str]:
    """The path of a socket that takes calls."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        path = str(Path(folder) / "s")
        listening.bind(path)
        listening.listen()
        yield path


def test_one_that_takes_calls_and_answers_none_is_not_waited_for(stopped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "ANSWER_S", 0.2)
    started_s = time.monotonic()
    asked = Supervisor(stopped)
    assert not asked.alive()
    with pytest.raises(KnownError, match="does not answer"):
        asked.programs()
    assert time.monotonic() - started_s < 5


CONFIG = """
[supervisord]
logfile={folder}/supervisord.log
pidfile={folder}/pid
childlogdir={folder}
[unix_http_server]
file={folder}/s
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[group:stack]
programs=triton-1,other
[program:triton-1]
command=/bin/sh -c "test -e {folder}/mended && exec sleep 60"
startretries=0
startsecs=1
[program:other]
command=/bin/false
startretries=0
"""


def states(asked: Supervisor) -> dict[str, str]:
    return {one.name: one.state for one in asked.programs()}


def wait_for(asked: Supervisor, name: str, state: str) -> None:
    ends_s = time.monotonic() + 20
    while states(asked).get(name) != state:
        assert time.monotonic() < ends_s, states(asked)
        time.sleep(0.05)


def test_a_program_that_was_given_up_is_started_again_on_demand() -> None:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "config").write_text(CONFIG.format(folder=folder))
        supervisor.start(folder / "config", os.environ)
        asked = Supervisor(str(folder / "s"))
        try:
            wait_for(asked, "triton-1", "FATAL")
            wait_for(asked, "other", "FATAL")
            assert all(one.is_given_up for one in asked.programs())
            (folder / "mended").touch()
            assert asked.start_given_up({"triton-1", "gateway"}) == ("triton-1",)
            wait_for(asked, "triton-1", "RUNNING")
            assert states(asked)["other"] == "FATAL", "what is not asked for is left alone"
            assert asked.start_given_up({"triton-1"}) == ()
        finally:
            asked.shut_down()
            ends_s = time.monotonic() + 20
            while (folder / "pid").exists() and time.monotonic() < ends_s:
                time.sleep(0.05)


def test_one_that_does_not_get_into_the_background_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "START_S", 0.001)
    with pytest.raises(KnownError, match="did not start within"):
        supervisor.start(tmp_path / "supervisord.conf", os.environ)


@pytest.mark.parametrize("why", ["too slow", "no folder for its log"])
def test_a_revival_that_does_not_begin_is_logged_and_ends_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The controller that asks for it has no supervisord any more that would start it again."""
    monkeypatch.setattr(revival, "BEGIN_S", 0.001 if why == "too slow" else 30.0)
    layout = Layout(tmp_path)
    told: list[str] = []
    if why == "too slow":
        layout.create()
    revival.begin(layout, lambda _level, event, _message: told.append(event))
    assert told == ["supervisor_gone", "revival_failed"]
