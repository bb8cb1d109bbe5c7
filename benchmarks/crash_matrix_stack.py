"""A stack small enough to be killed at a thousand times: real edges, and no model behind them.

    python -m benchmarks.crash_matrix_stack STATE [REPLICAS]

Real are the settings file and what was in effect before, the controller with its page, the gateway's admin API on its
Unix socket with all that warms the cache, the Valkey behind it, and for each replica a gRPC server that speaks Triton's
protocol: it tells which configuration it runs and takes another one, as Triton does. The gateway's questions and their
answers are made up. Says "ready" on stdout, and ends when its stdin does.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
import uvicorn
from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc
from valkey.asyncio import Valkey

from benchmarks.told import explain
from latencydoctor.errors import KnownError
from latencydoctor.stack import endpoints as addresses
from latencydoctor.stack import settings as stack_settings
from latencydoctor.stack.binaries import valkey_server
from latencydoctor.stack.compile import model_config, to_pbtxt
from latencydoctor.stack.controller.fleet import Standing
from latencydoctor.stack.controller.kept import KeptGenerations
from latencydoctor.stack.controller.loop import Controller, Served
from latencydoctor.stack.controller.page import serve
from latencydoctor.stack.controller.stubs import StubWatch
from latencydoctor.stack.controller.triton import Triton
from latencydoctor.stack.controller_state import SharedProgress
from latencydoctor.stack.gateway.admin import admin_app
from latencydoctor.stack.gateway.admin_cache import AdminCache
from latencydoctor.stack.gateway.entries import Entry, cache_key, dump_entry
from latencydoctor.stack.gateway.popular import Question, Ranking, id_of
from latencydoctor.stack.gateway.warming import Warmer
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.replicas import save_serving
from latencydoctor.stack.settings import CacheSettings, InferenceSettings, Settings

LOOK_S = 0.005
"""How often the controller looks at the settings here: twenty times as often as the whole stack's."""

POPULAR, UNANSWERED = 208, 6
"""So many questions are asked again and again: with their answers known two batches of a warm-up, and two goes of
computing for the rest."""

TIMES, ONCE = 20, 400
"""How often each of those was asked, and how many others were asked once."""


class OneModel(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]  # tritonclient is untyped
    """Triton as far as a change of settings sees it: one model and the configuration it runs with."""

    def __init__(self, config: model_config_pb2.ModelConfig) -> None:
        self._config = config

    def ModelConfig(self, _request: object, _context: object) -> object:  # noqa: N802  # the protocol's name
        """The configuration in effect."""
        return service_pb2.ModelConfigResponse(config=self._config)

    def RepositoryModelLoad(self, request: object, _context: object) -> object:  # noqa: N802  # the protocol's name
        """Runs the configuration that the request carries from now on."""
        text = request.parameters["config"].string_param  # type: ignore[attr-defined]  # the message is untyped
        self._config = json_format.Parse(text, model_config_pb2.ModelConfig())
        return service_pb2.RepositoryModelLoadResponse()


class Asked:
    """A gateway whose questions are always the same: popular ones, the last few of which were never answered."""

    ttl_s = 300
    cache_settings = CacheSettings()
    caches = True
    waits_ms = 0.0

    def ranking(self) -> Ranking:
        """Each popular question was asked alike often, and found nothing in the cache."""
        repeated = tuple(_question(number) for number in range(POPULAR))
        asked = POPULAR * TIMES + ONCE
        return Ranking(60.0, asked, asked, POPULAR + ONCE, ONCE, repeated)

    def refresh(self) -> None:
        """There is nothing to take up."""

    async def compute(self, key: str) -> Entry:
        """The model's answer, at once."""
        return Entry(int(key.rpartition(" ")[2]), 0.9)

    def state(self) -> dict[str, object]:
        """Nothing is told."""
        return {}


def question_key(number: int) -> str:
    """Under what the answer to a popular question is kept."""
    return cache_key("1", f"question {number}")


def _question(number: int) -> Question:
    key = question_key(number)
    answer = dump_entry(Entry(number, 0.9)) if number < POPULAR - UNANSWERED else None
    return Question(id_of(key), key, TIMES, TIMES, answer)


def _log(*_: object, **__: object) -> None:
    """The kills tell enough."""


def main(state: Path, replicas: int) -> None:
    """Serves until stdin ends."""
    layout = Layout(state)
    layout.create()
    # One that was killed left its own: they would pass for this one's before anybody listens.
    layout.remove_sockets()
    settings = (
        stack_settings.load(layout.settings)
        if layout.settings.exists()
        else Settings(inference=InferenceSettings(replicas=replicas))
    )
    if not layout.settings.exists():
        stack_settings.save(layout.settings, settings)
    ports, servers = addresses.free_ports(replicas), []
    endpoints = addresses.endpoints_for(layout.sockets(), ports, settings.accelerator, alertmanager=False)
    save_serving(layout.serving, range(1, replicas + 1))
    addresses.save(layout.endpoints, endpoints)
    stored = layout.models / settings.inference.model / "config.pbtxt"
    (stored.parent / "1").mkdir(parents=True, exist_ok=True)
    (stored.parent / "1" / "model.py").write_text("what is served", encoding="utf-8")
    stored.write_text(to_pbtxt(settings), encoding="utf-8")

    for one in endpoints.tritons:
        server = grpc.server(futures.ThreadPoolExecutor(4))
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(OneModel(model_config(settings)), server)
        server.add_insecure_port(one.grpc)
        server.start()
        servers.append(server)
    progress = SharedProgress()
    serve(addresses.LOOPBACK, ports.controller_metrics, progress)
    asked, cache = Asked(), AdminCache(Valkey(unix_socket_path=endpoints.valkey_socket))
    app = admin_app(asked, cache, Warmer(asked, cache))
    admin = uvicorn.Server(uvicorn.Config(app, uds=endpoints.admin_socket, log_level="critical"))
    threading.Thread(target=admin.run, daemon=True).start()
    watch = StubWatch(lambda: (), lambda _: True)
    served = [Served(Triton(one.grpc), watch) for one in endpoints.tritons]
    kept = KeptGenerations(layout.kept_generations)
    controller = Controller(layout.settings, layout.models, Standing(served), progress, _log, kept)
    stopped = threading.Event()
    threading.Thread(target=_work, args=(controller, stopped), daemon=True).start()
    with _valkey(endpoints.valkey_socket):
        while not (Path(endpoints.admin_socket).exists() and progress.current.generation == settings.generation):
            stopped.wait(LOOK_S)
        print("ready", flush=True)
        sys.stdin.read()
    stopped.set()
    for server in servers:
        server.stop(None)
    layout.remove_sockets()


@contextmanager
def _valkey(socket: str) -> Iterator[None]:
    """The cache's server, without files, for as long as the context lasts."""
    command = [str(valkey_server()), "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            while not Path(socket).exists():
                if process.poll() is not None:
                    raise KnownError(f"the cache's server ended with {process.returncode}")
                time.sleep(LOOK_S)
            yield
        finally:
            process.kill()


def _work(controller: Controller, stopped: threading.Event) -> None:
    while not stopped.wait(LOOK_S):
        controller.step()


if __name__ == "__main__":
    explain(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
