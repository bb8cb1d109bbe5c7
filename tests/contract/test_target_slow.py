"""What the doctor asks on its way to a change answers byte by byte, or breaks off: nothing may wait for its end."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.targets import admin, controller_page, torchserve_client
from latencydoctor.targets.torchserve_client import Connection, Management, UnansweredError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n"
WITHIN_S = 0.4


def drip_body(connection: socket.socket, ended: threading.Event) -> None:
    """The head at once, the rest for ever."""
    connection.sendall(HEAD)
    while not ended.wait(0.1):
        connection.sendall(b"[")


def drip_head(connection: socket.socket, ended: threading.Event) -> None:
    """Not even the head ends."""
    connection.sendall(HEAD[:20])
    while not ended.wait(0.1):
        connection.sendall(b"X")


def break_off(connection: socket.socket, _ended: threading.Event) -> None:
    """Half an answer, which looks like a whole one."""
    connection.sendall(HEAD + b"{}")


Speaking = Callable[[socket.socket, threading.Event], None]


@pytest.fixture(params=[drip_body, drip_head, break_off])
def speaking(request: pytest.FixtureRequest) -> Speaking:
    """How the server answers."""
    found: Speaking = request.param
    return found


def serving(listening: socket.socket, speaking: Speaking) -> Iterator[None]:
    """Answers every connection so, each in a thread of its own."""
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                speaking(connection, ended)
            except OSError:
                return  # the other side has had enough

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    listening.listen()
    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield
    ended.set()
    listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.fixture
def port(speaking: Speaking) -> Iterator[int]:
    """A server on loopback."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        for _ in serving(listening, speaking):
            yield listening.getsockname()[1]


@pytest.fixture
def path(speaking: Speaking) -> Iterator[str]:
    """The same on a Unix socket."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/s")
        for _ in serving(listening, speaking):
            yield str(Path(folder) / "s")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Patience is short here; each test is over soon."""
    for module in (admin, controller_page, torchserve_client):
        monkeypatch.setattr(module, "TIMEOUT_S", WITHIN_S)
    started_s = time.monotonic()
    yield
    assert time.monotonic() - started_s < 5 * WITHIN_S


def test_a_torchserve(port: int) -> None:
    with pytest.raises(UnansweredError):
        Management(Connection(f"http://127.0.0.1:{port}"), "bert").read()


def test_a_controller(port: int) -> None:
    with pytest.raises(KnownError, match="does not answer"):
        controller_page.read_controller(f"http://127.0.0.1:{port}/metrics")


def test_a_gateway(path: str) -> None:
    with pytest.raises(KnownError, match="does not answer"):
        admin.render(path, "generation: 1")
