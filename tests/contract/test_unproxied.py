"""A proxy that the environment names is for the web: a Triton, and what is on this machine, are asked directly."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent import futures
from http.server import BaseHTTPRequestHandler, HTTPServer

import grpc
import pytest
from tritonclient.grpc import service_pb2_grpc

from latencydoctor.model.evidence import Selection
from latencydoctor.sources.allowance import Allowance
from latencydoctor.sources.transport import Deadline, GuardedSession
from latencydoctor.sources.triton_stats import TritonStatistics
from latencydoctor.stack.probes import http_get
from latencydoctor.targets.triton import read_effective
from latencydoctor.targets.triton_server import TritonServer
from tests.contract.test_stack_controller import Present

NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment with a proxy that is not there."""
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, NOBODY)


@pytest.fixture
def address() -> Iterator[str]:
    """A server on Triton's protocol."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Present(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait(5)


def test_the_configuration_in_effect(address: str) -> None:
    assert 'name: "bert"' in read_effective(address, "bert").pbtxt


def test_a_model_of_any_triton(address: str) -> None:
    assert TritonServer(address).config("bert").name == "bert"


def test_the_facts_of_a_diagnosis(address: str) -> None:
    found = TritonStatistics(address, 3.0).read(Selection(model="bert"))
    assert "config_max_batch_size" in {fact.signal for fact in found.facts}


class Page(BaseHTTPRequestHandler):
    """Says what it was asked for."""

    def do_GET(self) -> None:
        body = json.dumps({"status": "success", "asked": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Silent."""


@pytest.fixture
def url() -> Iterator[str]:
    """A web server on loopback, and a question to it."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/api/v1/query?query=sum(up)"
        server.shutdown()
        thread.join()


def test_a_prometheus_on_this_machine(url: str) -> None:
    deadline = Deadline.after(5.0)
    session = GuardedSession(lambda: deadline, Allowance)
    assert session.get(url).json()["asked"] == "/api/v1/query?query=sum(up)"


def test_a_part_of_the_bundled_stack(url: str) -> None:
    assert json.loads(http_get(url).body)["asked"] == "/api/v1/query?query=sum(up)"
