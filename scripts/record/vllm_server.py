"""Starts the real vLLM of `vllm_environment.py` on loopback, with few slots and little KV cache, and talks to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.record.vllm_environment import MODEL, Environment

START_S = 240.0
END_S = 20.0
SLOTS = 8
"""Requests that run at once; whatever else is asked waits in the queue."""

BLOCKS, BLOCK_TOKENS = 20, 32
"""KV cache for 608 tokens (one block is the engine's own): eight long requests do not fit, so some are preempted."""

FLAGS = (
    "--enforce-eager",
    *("--dtype", "float32", "--max-num-seqs", str(SLOTS), "--max-model-len", "512"),
    *("--block-size", str(BLOCK_TOKENS), "--num-gpu-blocks-override", str(BLOCKS)),
)


@dataclass(frozen=True, slots=True)
class Server:
    """A running vLLM."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def metrics(self) -> str:
        """Its metrics page as it is."""
        return self.get("/metrics")

    def version(self) -> str:
        """What it says its version is."""
        return str(json.loads(self.get("/version"))["version"])

    def get(self, path: str) -> str:
        """A page's text; `OSError` when there is none."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=20) as answer:
            return str(answer.read().decode("utf-8"))


@contextlib.contextmanager
def running(environment: Environment, log: Path, flags: Sequence[str] = FLAGS) -> Iterator[Server]:
    """A vLLM that is ready; it and all its processes have ended when the block ends."""
    port = free_port()
    # Its engine and worker never stop asking for work: at the same priority they would starve whoever measures them.
    command = ["nice", "-n", "10", str(environment.program), "serve", MODEL, "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, *flags],
            cwd=environment.folder,
            env=_variables(environment),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            # A group: the engine and its workers are processes of their own, and all are to end. Not a session: Linux
            # shares the processor out among sessions first, so niceness counts inside one only.
            process_group=0,
        )
    server = Server(port, process)
    try:
        _wait_until_ready(server, log)
        yield server
    finally:
        _end(process)


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _variables(environment: Environment) -> dict[str, str]:
    """Nothing is fetched or reported, everything is kept in the environment's folder, and all binds to loopback."""
    kept = environment.folder / "kept"
    told = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VLLM_", "HF_"))}
    return told | {
        "PATH": f"{environment.program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(kept),
        "XDG_CACHE_HOME": str(kept),
        "XDG_CONFIG_HOME": str(kept),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_LOOPBACK_IP": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "NO_COLOR": "1",
    }


def _wait_until_ready(server: Server, log: Path) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        if server.process.poll() is not None:
            break
        with contextlib.suppress(OSError):
            server.get("/health")
            return
        time.sleep(0.25)
    sys.exit(f"vLLM did not become ready:\n{log.read_text(errors='replace')[-4000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the server, wait for it, and kill what is left of its group."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
