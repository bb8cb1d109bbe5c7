"""The admin socket and the controller's page over real sockets, and what strange answers become."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from latencydoctor.errors import ContentError, KnownError
from latencydoctor.targets.admin import MAX_ANSWER_BYTES, render
from latencydoctor.targets.controller_page import MAX_REASON_CHARS, ControllerState, read_controller, read_reason
from latencydoctor.targets.folder import GuardedFolder
from latencydoctor.targets.torchserve import TorchServeTarget
from latencydoctor.targets.torchserve_changer import NAMES, TorchServeChanger
from latencydoctor.targets.torchserve_client import Connection, Management


class Answering(BaseHTTPRequestHandler):
    """Answers everything with what the test put there."""

    status = 200
    body = b""
    asked: list[tuple[str, bytes]] = []  # noqa: RUF012  # one handler a request; the class is the only common place

    def do_POST(self) -> None:
        """As a GET."""
        self.do_GET()

    def do_DELETE(self) -> None:
        """As a GET."""
        self.do_GET()

    def do_GET(self) -> None:
        """The one answer."""
        length = int(self.headers.get("Content-Length") or 0)
        self.asked.append((f"{self.command} {self.path}", self.rfile.read(length)))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def address_string(self) -> str:
        """A Unix socket's peer has no address."""
        return ""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Silence."""


class UnixServer(socketserver.ThreadingUnixStreamServer):
    """An HTTP server on a Unix socket."""

    daemon_threads = True


@pytest.fixture
def answer() -> type[Answering]:
    return type("Here", (Answering,), {"asked": []})


@pytest.fixture
def admin(answer: type[Answering], tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "a.sock")
    with UnixServer(path, answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield path
        server.shutdown()


@pytest.fixture
def page(answer: type[Answering]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/metrics"
        server.shutdown()


def test_render_posts_the_settings_and_returns_the_compiled_text(admin: str, answer: type[Answering]) -> None:
    answer.body = json.dumps({"config_pbtxt": "max_batch_size: 8\n", "errors": []}).encode()
    assert render(admin, "a: Ü\n").compiled == "max_batch_size: 8\n"
    assert answer.asked == [("POST /render", "a: Ü\n".encode())]


def test_what_the_stack_refuses_is_told(admin: str, answer: type[Answering]) -> None:
    answer.status, answer.body = 400, json.dumps({"config_pbtxt": "", "errors": ["too large", "too old"]}).encode()
    with pytest.raises(ContentError, match="too large; too old"):
        render(admin, "a: 1\n")


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"<html>", "something else than JSON"),
        (200, b"[]", "something else than JSON"),
        (500, b"{}", "answered 500 without a configuration"),
        (200, b'{"config_pbtxt": 5}', "without a configuration"),
        (200, b"x" * (MAX_ANSWER_BYTES + 1), "more than"),
    ],
)
def test_strange_answers(admin: str, answer: type[Answering], status: int, body: bytes, message: str) -> None:
    answer.status, answer.body = status, body
    with pytest.raises(KnownError, match=message):
        render(admin, "a: 1\n")


def test_no_admin_socket(tmp_path: Path) -> None:
    with pytest.raises(KnownError, match="does not answer") as refused:
        render(str(tmp_path / "absent.sock"), "a: 1\n")
    assert "stack status" in refused.value.hint


def test_the_controllers_word(page: str, answer: type[Answering]) -> None:
    answer.body = (
        b"# HELP x y\nstack_settings_generation 7\nstack_settings_seen_generation 8.0\n"
        b'stack_settings_last_error{reason="x"} 1\nother 3\n'
    )
    assert read_controller(page) == ControllerState(in_effect=7, seen=8, failed=True)
    answer.body = b"stack_settings_generation 7\n"
    assert read_controller(page) == ControllerState(in_effect=7, seen=7, failed=False)


def test_the_controllers_reason(page: str, answer: type[Answering]) -> None:
    answer.body = json.dumps({"error": "Triton refused\n the configuration: " + "x" * 900}).encode()
    answer.asked.clear()
    assert read_reason(page).startswith("Triton refused the configuration: xx")
    assert len(read_reason(page)) == MAX_REASON_CHARS
    assert {path for path, _ in answer.asked} == {"GET /state"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"7", b'{"error": 5}', b'{"error": null}', b"\xff"])
def test_a_controller_that_says_no_reason(page: str, answer: type[Answering], body: bytes) -> None:
    answer.body = body
    assert read_reason(page) == ""


def test_a_controller_that_is_gone_says_no_reason() -> None:
    assert read_reason("http://127.0.0.1:9/metrics") == ""


@pytest.mark.parametrize("number", [b"1e999", b"..", b"1e", b"-"])
def test_a_page_with_odd_numbers(page: str, answer: type[Answering], number: bytes) -> None:
    answer.body = b"stack_settings_generation " + number + b"\n"
    with pytest.raises(KnownError, match="stack_settings_generation"):
        read_controller(page)


def test_a_state_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """Where a run keeps the lock and the notes of a server that it reaches over the network only."""
    (tmp_path / "file").write_text("in the way")
    target = TorchServeTarget(Management(Connection("http://127.0.0.1:9"), "bert"))
    changer = TorchServeChanger(target, GuardedFolder(tmp_path / "file" / "bert", NAMES))
    with pytest.raises(KnownError, match="cannot be made: Not a directory"), changer.hold("run"):
        pass


def test_a_page_without_the_numbers(page: str, answer: type[Answering]) -> None:
    answer.status, answer.body = 404, b"not here"
    with pytest.raises(KnownError, match="answered 404 without stack_settings_generation"):
        read_controller(page)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/metrics", ""])
def test_no_controller(url: str) -> None:
    with pytest.raises(KnownError, match="does not answer"):
        read_controller(url)
