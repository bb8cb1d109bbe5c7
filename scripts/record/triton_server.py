"""Starts the Triton of the wheel nvidia-pytriton with the models that the recordings need, and talks to it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.stack import triton_tree

MODEL = Path(__file__).resolve().parent / "triton_models" / "model.py"
START_S = 60.0


@dataclass(frozen=True, slots=True)
class Model:
    """How one model is configured: its times, its instances, and further lines of its configuration."""

    fixed_ms: float
    item_ms: float
    instances: int = 1
    versions: tuple[int, ...] = (1,)
    batch: int = 8
    more: str = ""


def models(*, cached: bool) -> dict[str, Model]:
    """The models by name; `cached` turns the response cache on for those that may have it."""
    cache = "response_cache { enable: true }\n" if cached else ""
    batching = "dynamic_batching { max_queue_delay_microseconds: %d }\n"
    return {
        # Batches of several requests, in two versions of two instances each.
        "plain": Model(10, 1, 2, (1, 2), more=batching % 2000 + "version_policy { all {} }\n"),
        # Questions come again, several clients asking the same at once.
        "cached": Model(20, 1, more=batching % 0 + cache),
        # One request runs, two wait at most, none longer than 60 ms: the others are turned away.
        "narrow": Model(
            50, 0, batch=1, more="dynamic_batching { default_queue_policy { timeout_action: REJECT "
            "default_timeout_microseconds: 60000 max_queue_size: 2 } }\n",
        ),
        # One request in three is refused, one breaks the execution.
        "broken": Model(5, 0, batch=1),
        # Answers in parts, as models of language do.
        "stream": Model(10, 0, 2, batch=0, more="model_transaction_policy { decoupled: true }\n"),
    }  # fmt: skip


def configuration(name: str, model: Model) -> str:
    """The text of config.pbtxt."""
    return f"""name: "{name}"
backend: "python"
max_batch_size: {model.batch}
input {{ name: "x" data_type: TYPE_INT64 dims: [1] }}
output {{ name: "y" data_type: TYPE_INT64 dims: [1] }}
instance_group {{ count: {model.instances} kind: KIND_CPU }}
parameters {{ key: "fixed_ms" value {{ string_value: "{model.fixed_ms}" }} }}
parameters {{ key: "item_ms" value {{ string_value: "{model.item_ms}" }} }}
{model.more}"""


PAIR = """name: "pair"
platform: "ensemble"
max_batch_size: 8
input { name: "x" data_type: TYPE_INT64 dims: [1] }
output { name: "y" data_type: TYPE_INT64 dims: [1] }
ensemble_scheduling {
  step { model_name: "plain" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "z" } }
  step { model_name: "cached" model_version: -1 input_map { key: "x" value: "z" } output_map { key: "y" value: "y" } }
}
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running Triton: its addresses and its repository."""

    http: str
    metrics_url: str
    repository: Path
    cached: bool

    def metrics(self) -> str:
        """The metrics page as it is."""
        return self._get(self.metrics_url)

    def statistics(self) -> str:
        """What the statistics extension says of all models, one line of JSON."""
        return json.dumps(json.loads(self._get(f"{self.http}/v2/models/stats")), separators=(",", ":")) + "\n"

    def version(self) -> str:
        """Triton's own version number."""
        return str(json.loads(self._get(f"{self.http}/v2"))["version"])

    def load(self, name: str, *, response_cache: bool = False, delay_us: int = 0) -> None:
        """Loads a model anew from a changed configuration: in the background when it is loaded already."""
        text = PAIR if name == "pair" else configuration(name, models(cached=self.cached)[name])
        if delay_us:
            text = text.replace("max_queue_delay_microseconds: 2000", f"max_queue_delay_microseconds: {delay_us}")
        if response_cache:
            text += "response_cache { enable: true }\n"
        (self.repository / name / "config.pbtxt").write_text(text, encoding="utf-8")
        self._post(f"v2/repository/models/{name}/load")

    def unload(self, name: str) -> None:
        """Unloads a model and waits until it and its series are gone; those of its failures stay for good."""
        self._post(f"v2/repository/models/{name}/unload")
        ends_s = time.monotonic() + START_S
        while self._loaded(name) or f'nv_inference_request_success{{model="{name}"' in self.metrics():
            if time.monotonic() > ends_s:
                raise RuntimeError(f"{name} was not unloaded")
            time.sleep(0.5)

    def _loaded(self, name: str) -> bool:
        request = urllib.request.Request(f"{self.http}/v2/repository/index", b"{}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            held = json.loads(answer.read())
        return any(item["name"] == name and item.get("reason") != "unloaded" for item in held)

    def _get(self, url: str) -> str:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())

    def _post(self, path: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.http}/{path}", b"{}"), timeout=60).close()


def write_repository(folder: Path, *, cached: bool) -> None:
    """All models with their versions, and the ensemble of two of them."""
    for name, model in models(cached=cached).items():
        for version in model.versions:
            place = folder / name / str(version)
            place.mkdir(parents=True)
            shutil.copy(MODEL, place / "model.py")
        (folder / name / "config.pbtxt").write_text(configuration(name, model), encoding="utf-8")
    (folder / "pair" / "1").mkdir(parents=True)
    (folder / "pair" / "config.pbtxt").write_text(PAIR, encoding="utf-8")


@contextlib.contextmanager
def running(work: Path, flags: tuple[str, ...], *, cached: bool) -> Iterator[Server]:
    """A Triton on loopback with every model ready; it is ended afterwards. Its log stays in `work`."""
    repository = work / "models"
    write_repository(repository, cached=cached)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "latencydoctor"
    tree = triton_tree.prepare(cache)
    ports = _free_ports(3)
    names = [*models(cached=cached), "pair"]
    prefix = f"record{os.getpid()}"
    command = [
        str(tree.server), f"--model-repository={repository}", f"--backend-directory={tree.root / 'backends'}",
        f"--cache-directory={tree.root / 'caches'}", "--model-control-mode=explicit",
        *(f"--load-model={name}" for name in names), f"--backend-config=python,shm-region-prefix-name={prefix}",
        "--http-address=127.0.0.1", f"--http-port={ports[0]}", "--grpc-address=127.0.0.1", f"--grpc-port={ports[1]}",
        "--metrics-address=127.0.0.1", f"--metrics-port={ports[2]}", "--metrics-interval-ms=500",
        "--exit-timeout-secs=3", *flags,
    ]  # fmt: skip
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    environment = os.environ | {"LD_LIBRARY_PATH": tree.library_path, "PATH": path}
    server = Server(f"http://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[2]}/metrics", repository, cached)
    with (
        (work / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process,
    ):
        try:
            _wait(server, process, names, work / "log")
            yield server
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait(server: Server, process: subprocess.Popen[bytes], names: list[str], log: Path) -> None:
    ends_s = time.monotonic() + START_S
    while time.monotonic() < ends_s and process.poll() is None:
        with contextlib.suppress(OSError):
            for name in names:
                urllib.request.urlopen(f"{server.http}/v2/models/{name}/ready", timeout=2).close()
            return
        time.sleep(0.2)
    raise RuntimeError("Triton did not become ready:\n" + log.read_text(errors="replace")[-3000:])


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for held in sockets:
            held.bind(("127.0.0.1", 0))
        return [int(held.getsockname()[1]) for held in sockets]
