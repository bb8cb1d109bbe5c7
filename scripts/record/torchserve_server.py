"""A real TorchServe whose workers need no torch: its own front end and worker processes, and a handler in plain Python.

TorchServe's worker imports torch only to recognise a tensor among a handler's answers. An empty module in its place
saves gigabytes, and nothing that the management API tells depends on it.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.record import real_server as real

VERSION = "0.12.0"
PATIENCE_S = 50.0

MODEL = "tiny"
HANDLER = """
import time


def handle(rows, context):
    if rows is None:
        return None
    time.sleep(0.2)
    return [0 for _ in rows]
"""
MODEL_CONFIG = "{minWorkers: 2, maxWorkers: 3, batchSize: 4, maxBatchDelay: 50, jobQueueSize: 8}\n"
STAND_IN = "class Tensor:\n    pass\n"
START = "from ts.model_server import start; start()"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said to one request."""

    path: str
    status: int
    content_type: str
    body: str


@dataclass(frozen=True, slots=True)
class Server:
    """One running TorchServe: its addresses, and the file that it writes its keys into."""

    inference: str
    management: str
    metrics: str
    key_file: Path

    def key(self, kind: str) -> str:
        """The key of one kind: management, inference."""
        return str(json.loads(self.key_file.read_text())[kind]["key"])

    def get(self, path: str, *, token: bool = True, at: str = "") -> Answer:
        """Ask the management API, or whatever is at `at`."""
        return self._ask(urllib.request.Request((at or self.management) + path), path, "management" if token else "")

    def register(self, archive: str) -> Answer:
        """Add an archive of the store as a model, or as a further version of one; its workers start meanwhile."""
        path = f"/models?url={archive}"
        return self._ask(urllib.request.Request(self.management + path, method="POST"), path, "management")

    def predict(self) -> int:
        """Ask the model once; the status."""
        path = f"/predictions/{MODEL}"
        return self._ask(urllib.request.Request(self.inference + path, b"0"), path, "inference").status

    def _ask(self, request: urllib.request.Request, path: str, kind: str) -> Answer:
        if kind:
            request.add_header("Authorization", f"Bearer {self.key(kind)}")
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return _answer(path, int(reply.status), str(reply.headers["content-type"]), reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return _answer(path, error.code, str(error.headers["content-type"]), error.read())


def _answer(path: str, status: int, content_type: str, body: bytes) -> Answer:
    return Answer(path, status, content_type, body.decode())


def write_archive(store: Path, model: str, version: str) -> str:
    """Pack the handler as TorchServe's archiver does; the archive's name."""
    name = f"{model}-{version}.mar"
    described = {"modelName": model, "handler": "handler.py", "modelVersion": version, "configFile": "model.yaml"}
    manifest = {"runtime": "python", "model": described, "archiverVersion": VERSION}
    with zipfile.ZipFile(store / name, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps(manifest))
        archive.writestr("handler.py", HANDLER)
        archive.writestr("model.yaml", MODEL_CONFIG)
    return name


@contextmanager
def serving(python: Path, folder: Path) -> Iterator[Server]:
    """A TorchServe with one model, tokens on (as by default) and models that may be added; it ends with the block.

    `python` is that of an environment with torchserve in it; Java 17 is on PATH.
    """
    (folder / "stand_in").mkdir(parents=True)
    (folder / "stand_in" / "torch.py").write_text(STAND_IN)
    (folder / "store").mkdir()
    archive = write_archive(folder / "store", MODEL, "1.0")
    ports = real.free_ports(6)
    (folder / "config.properties").write_text(_settings(ports))
    command: list[str | Path] = [python, "-c", START, "--start", "--foreground", "--ncs", "--enable-model-api"]
    command += ["--model-store", folder / "store", "--models", f"{MODEL}={archive}"]
    command += ["--ts-config", folder / "config.properties"]
    inference, management, metrics = (f"http://127.0.0.1:{port}" for port in ports[:3])
    server = Server(inference, management, metrics, folder / "key_file.json")
    with real.running(command, folder, _environment(folder)):
        real.wait_until(lambda: _ready_workers(server) == 2, PATIENCE_S)
        yield server


def _ready_workers(server: Server) -> int:
    return server.get(f"/models/{MODEL}").body.count('"READY"')


def _settings(ports: list[int]) -> str:
    names = ("inference_address", "management_address", "metrics_address")
    addresses = [f"{name}=http://127.0.0.1:{port}" for name, port in zip(names, ports, strict=False)]
    numbers = [f"grpc_inference_port={ports[3]}", f"grpc_management_port={ports[4]}", f"initial_worker_port={ports[5]}"]
    return "\n".join([*addresses, *numbers, "metrics_mode=prometheus", "job_queue_size=8", ""])


def _environment(folder: Path) -> dict[str, str]:
    found = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(part for part in (str(folder / "stand_in"), found) if part)
    return {"PYTHONPATH": path, "LOG_LOCATION": str(folder), "METRICS_LOCATION": str(folder)}
