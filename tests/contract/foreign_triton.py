"""A Triton of somebody else's: the wheel's server on a repository of its own, in whichever control mode.

As a stranger would start it: nothing of the bundled stack is in it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from latencydoctor.stack import triton_tree

ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0

MODEL = """\
import json

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        if not config.as_dict()["input"]:
            config.add_input({"name": "x", "data_type": "TYPE_INT64", "dims": [1]})
            config.add_output({"name": "y", "data_type": "TYPE_INT64", "dims": [1]})
            config.set_max_batch_size(4)
            config.set_dynamic_batching()
        return config

    def initialize(self, args):
        if json.loads(args["model_config"])["max_batch_size"] > 64:
            raise pb_utils.TritonModelException("this model takes at most 64 at once")

    def execute(self, requests):
        answer = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            answer.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]))
        return answer
"""

CONFIG = """\
# The ranking team's model. Ask before you touch this: +1 555 0100
name: "ranker"
backend: "python"
max_batch_size: 8   # measured in March
input [
  { name: "x"  data_type: TYPE_INT64  dims: [ 1 ] }
]
output [ { name: "y" data_type: TYPE_INT64 dims: [ 1 ] } ]
instance_group [
  {
    count: 1
    kind: KIND_CPU
  }
]
dynamic_batching {
  # no delay: latency first
}
"""


def put_model(repository: Path, name: str, config: str | None, version: int = 1) -> Path:
    """One model in the repository; without a configuration the server completes it."""
    folder = repository / name / str(version)
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    if config is not None:
        (repository / name / "config.pbtxt").write_text(config, encoding="utf-8", newline="")
    return repository / name


@dataclass(frozen=True, slots=True)
class Foreign:
    """A running server."""

    repository: Path
    grpc: str
    log: Path
    process: subprocess.Popen[bytes]

    def loads(self, model: str = "ranker") -> int:
        """How often the server began to load the model, by its own log."""
        return self.log.read_text(encoding="utf-8", errors="replace").count(f"loading: {model}:")

    def asked(self) -> int:
        """How many load calls the server was asked, by its own verbose log."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return len(re.findall(r"Process for RepositoryModelLoad, rpc_ok=1, \d+ step START", text))

    def infer(self, model: str = "ranker") -> int:
        """One inference; the answer is what was asked."""
        import numpy as np

        with contextlib.closing(triton.InferenceServerClient(self.grpc)) as client:
            x = triton.InferInput("x", [1, 1], "INT64")
            x.set_data_from_numpy(np.array([[7]], dtype=np.int64))
            return int(client.infer(model, [x]).as_numpy("y")[0][0])


@contextlib.contextmanager
def serving(repository: Path, mode: str, *flags: str, ready: tuple[str, ...] = ("ranker",)) -> Iterator[Foreign]:
    """A Triton on loopback; it is ended afterwards."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "latencydoctor"
    tree = triton_tree.prepare(cache)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(3)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        http, grpc, metrics = (one.getsockname()[1] for one in held)
    loaded = [f"--load-model={name}" for name in ready] if mode == "explicit" else []
    prefix = f"foreign{os.getpid()}x{grpc}"
    command = [
        str(tree.server), f"--model-repository={repository}", f"--backend-directory={tree.root / 'backends'}",
        f"--model-control-mode={mode}", *loaded, f"--backend-config=python,shm-region-prefix-name={prefix}",
        "--http-address=127.0.0.1", f"--http-port={http}", "--grpc-address=127.0.0.1", f"--grpc-port={grpc}",
        "--metrics-address=127.0.0.1", f"--metrics-port={metrics}", "--exit-timeout-secs=3", "--log-verbose=1", *flags,
    ]  # fmt: skip
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    environment = os.environ | {"LD_LIBRARY_PATH": tree.library_path, "PATH": path}
    log = repository.parent / f"{repository.name}.log"
    with log.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream, env=environment) as process:
        try:
            server = Foreign(repository, f"127.0.0.1:{grpc}", log, process)
            _wait(server, ready)
            yield server
        finally:
            process.terminate()
            process.wait(timeout=20)
            for left in Path("/dev/shm").glob(f"{prefix}*"):
                left.unlink()


def _wait(server: Foreign, ready: tuple[str, ...]) -> None:
    ends_s = time.monotonic() + START_S
    with contextlib.closing(triton.InferenceServerClient(server.grpc)) as client:
        while time.monotonic() < ends_s and server.process.poll() is None:
            with contextlib.suppress(InferenceServerException):
                if all(client.is_model_ready(name) for name in ready):
                    return
            time.sleep(0.1)
    raise RuntimeError("Triton did not become ready:\n" + server.log.read_text(errors="replace")[-3000:])


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def without_lock(found: dict[str, bytes]) -> dict[str, bytes]:
    """The same without the lock, which stays, empty, in the repository."""
    return {name: content for name, content in found.items() if not name.endswith(".latencydoctor.lock")}


def copy(repository: Path, to: Path) -> None:
    """A repository that no server reads."""
    shutil.copytree(repository, to)
