"""Puts runs into a real Prometheus: OpenMetrics text, blocks made by promtool, a server on the loopback."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.faults.case_files import Case
from benchmarks.faults.runs import Run, simulate, without_series
from benchmarks.faults.simulator.knobs import Engine

Job = tuple[Case, Engine, int]
RUNS_A_BLOCK = 12
"""Runs that promtool is given at a time: few enough to keep its memory small, many enough to be quick."""

READY_WITHIN_S = 120.0
TOOLS_VARIABLE = "LATENCYDOCTOR_TOOLS"


class MissingProgram(RuntimeError):
    """Prometheus or promtool is not installed; the text says where it was looked for."""


def program(name: str) -> str:
    """The path of a program of Prometheus': in $LATENCYDOCTOR_TOOLS, on PATH, in the checkout's cache."""
    checkout = Path(__file__).resolve().parents[2] / ".cache" / "tools" / "usr" / "bin"
    chosen = os.environ.get(TOOLS_VARIABLE, "")
    folders = [chosen, str(Path(chosen, "usr", "bin")), os.environ.get("PATH", os.defpath), str(checkout)]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        raise MissingProgram(f"{name} was not found in ${TOOLS_VARIABLE}, on PATH or in {checkout}: run `make tools`")
    return found


def load(runs: Sequence[Run], data: Path) -> None:
    """Make blocks of some runs in a data folder that no Prometheus has open."""
    with tempfile.TemporaryDirectory(dir=data.parent, prefix="made-") as folder:
        text = Path(folder, "samples.txt")
        with text.open("w", encoding="utf-8") as stream:
            for run in runs:
                run.write(stream)
            stream.write("# EOF\n")
        command = [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(text), folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"promtool refused the samples: {done.stderr.strip() or done.stdout.strip()}")
        for block in Path(folder).iterdir():
            if (block / "meta.json").is_file():
                block.rename(data / block.name)


@contextlib.contextmanager
def serve(runs: Iterable[Run]) -> Iterator[str]:
    """A Prometheus that holds these runs; yields its base URL and ends it afterwards."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        data = _data(Path(folder))
        held = list(runs)
        for start in range(0, len(held), RUNS_A_BLOCK):
            load(held[start : start + RUNS_A_BLOCK], data)
        with _prometheus(Path(folder), data) as url:
            yield url


@contextlib.contextmanager
def serve_jobs(jobs: Iterable[Job], processes: int | None = None) -> Iterator[tuple[str, list[Run]]]:
    """Simulate and load at once, on all processors; yields the base URL and the runs, without their series.

    The way for many runs: no more than a few are in memory at a time.
    """
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        data = _data(Path(folder))
        listed = list(jobs)
        groups = [listed[start : start + RUNS_A_BLOCK] for start in range(0, len(listed), RUNS_A_BLOCK)]
        with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
            made = list(pool.map(_simulate_and_load, groups, [data] * len(groups)))
        with _prometheus(Path(folder), data) as url:
            yield url, [run for group in made for run in group]


def _simulate_and_load(jobs: Sequence[Job], data: Path) -> list[Run]:
    runs = [simulate(*job) for job in jobs]
    load(runs, data)
    return [without_series(run) for run in runs]


def _data(folder: Path) -> Path:
    data = folder / "data"
    data.mkdir()
    return data


@contextlib.contextmanager
def _prometheus(folder: Path, data: Path) -> Iterator[str]:
    configuration = folder / "prometheus.yml"
    configuration.write_text("global: {scrape_interval: 15s}\n", encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [
        program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=20y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_until_ready(url, process, folder / "log")
            yield url
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            raise RuntimeError(f"Prometheus ended while starting: {log.read_text(errors='replace')[-500:]}")
        # Until it is ready it refuses connections, then says 503: both are URLError.
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{url}/-/ready", timeout=2).close()
            return
        time.sleep(0.05)
    raise RuntimeError(f"Prometheus was not ready within {READY_WITHIN_S:g} s")
