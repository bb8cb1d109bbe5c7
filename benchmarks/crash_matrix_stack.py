"""A stack small enough to be killed at a thousand times: real edges, and no model behind them.

    python -m benchmarks.crash_matrix_stack STATE [REPLICAS]

Real are the settings file, the controller with its page, the gateway's admin API on its Unix socket, and for each
replica a gRPC server that speaks Triton's protocol: it tells which configuration it runs and takes another one, as
Triton does. Says "ready" on stdout, and ends when its stdin does.
"""

from __future__ import annotations

import sys
import threading
from concurrent import futures
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
from latencydoctor.stack.compile import model_config, to_pbtxt
from latencydoctor.stack.controller.fleet import Standing
from latencydoctor.stack.controller.loop import Controller, Served
from latencydoctor.stack.controller.page import serve
from latencydoctor.stack.controller.stubs import StubWatch
from latencydoctor.stack.controller.triton import Triton
from latencydoctor.stack.controller_state import SharedProgress
from latencydoctor.stack.gateway.admin import admin_app
from latencydoctor.stack.gateway.admin_cache import AdminCache
from latencydoctor.stack.gateway.entries import Entry
from latencydoctor.stack.gateway.popular import Ranking
from latencydoctor.stack.gateway.warming import Warmer
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.replicas import save_serving
from latencydoctor.stack.settings import CacheSettings, InferenceSettings, Settings

LOOK_S = 0.005
"""How often the controller looks at the settings here: twenty times as often as the whole stack's."""


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


class Bare:
    """A gateway without questions: the admin API asks it for little, and a change of settings for nothing."""

    ttl_s = 300
    cache_settings = CacheSettings()
    caches = False
    waits_ms = 0.0

    def ranking(self) -> Ranking:
        """Nobody asked anything."""
        return Ranking(1.0, 0, 0, 0, 0, ())

    def refresh(self) -> None:
        """There is nothing to take up."""

    async def compute(self, key: str) -> Entry:
        """There is no model."""
        raise KnownError(f"there is no answer for {key!r} here")

    def state(self) -> dict[str, object]:
        """Nothing is told."""
        return {}


def _log(*_: object, **__: object) -> None:
    """The kills tell enough."""


def main(state: Path, replicas: int) -> None:
    """Serves until stdin ends."""
    layout = Layout(state)
    layout.create()
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
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_text(to_pbtxt(settings), encoding="utf-8")

    for one in endpoints.tritons:
        server = grpc.server(futures.ThreadPoolExecutor(4))
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(OneModel(model_config(settings)), server)
        server.add_insecure_port(one.grpc)
        server.start()
        servers.append(server)
    progress = SharedProgress()
    serve(addresses.LOOPBACK, ports.controller_metrics, progress)
    bare, cache = Bare(), AdminCache(Valkey(unix_socket_path=endpoints.valkey_socket))
    app = admin_app(bare, cache, Warmer(bare, cache))
    admin = uvicorn.Server(uvicorn.Config(app, uds=endpoints.admin_socket, log_level="critical"))
    threading.Thread(target=admin.run, daemon=True).start()
    watch = StubWatch(lambda: (), lambda _: True)
    served = [Served(Triton(one.grpc), watch) for one in endpoints.tritons]
    controller = Controller(layout.settings, layout.models, Standing(served), progress, _log)
    stopped = threading.Event()
    threading.Thread(target=_work, args=(controller, stopped), daemon=True).start()
    while not (Path(endpoints.admin_socket).exists() and progress.current.generation == settings.generation):
        stopped.wait(LOOK_S)
    print("ready", flush=True)
    sys.stdin.read()
    stopped.set()


def _work(controller: Controller, stopped: threading.Event) -> None:
    while not stopped.wait(LOOK_S):
        controller.step()


if __name__ == "__main__":
    explain(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
