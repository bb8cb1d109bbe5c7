"""A real Prometheus with made history: counters as a serving stack would export them, written as blocks by promtool."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from latencydoctor.stack.binaries import tools

LATENCY_BOUNDS_S = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 5, 10)


def find_program(name: str) -> Path:
    """A program of Prometheus's, from where the stack would take it; skips the test where there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "latencydoctor"
    found = tools(os.environ, cache).find(name)
    if found is None:
        pytest.skip(f"{name} was not found: run `make tools`")
    return found


@dataclass(slots=True)
class Page:
    """Samples by series; `observe` adds one scrape of a value."""

    samples: dict[str, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)

    def observe(self, time_s: float, name: str, value: float, **labels: str) -> None:
        text = ",".join(f'{label}="{held}"' for label, held in labels.items())
        self.samples.setdefault(name, {}).setdefault(text, []).append((time_s, value))

    def write(self, path: Path) -> None:
        with path.open("w") as stream:
            for name, by_labels in self.samples.items():
                stream.write(f"# TYPE {name} unknown\n")
                for labels, points in by_labels.items():
                    stream.writelines(f"{name}{{{labels}}} {value!r} {time_s:.3f}\n" for time_s, value in points)
            stream.write("# EOF\n")


@dataclass(frozen=True, slots=True)
class Load:
    """How a service fares in one phase; times in ms, `items` is the mean batch."""

    seconds: float
    rps: float
    latency_ms: float
    queue_ms: float = 2.0
    compute_ms: float = 25.0
    items: float = 4.0
    busy: float = 0.2
    error_ratio: float = 0.0
    hit_ratio: float = 0.12


@dataclass(frozen=True, slots=True)
class Place:
    """Which labels a service's scrapes carry."""

    model: str = "faq-encoder"
    server: tuple[tuple[str, str], ...] = (("job", "triton"), ("instance", "a:1"))
    front: tuple[tuple[str, str], ...] | None = (("job", "gateway"), ("instance", "a:2"))
    simulated: bool = True


def serve_phases(page: Page, start_s: float, phases: list[Load], place: Place, scrape_s: float = 5.0) -> float:
    """Write a service's counters through `phases`, one scrape every `scrape_s`; returns the time of the last."""
    totals: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    now_s = start_s

    def add(name: str, amount: float, target: tuple[tuple[str, str], ...], **labels: str) -> None:
        key = (name, (*target, *labels.items()))
        totals[key] = totals.get(key, 1000.0) + amount
        page.observe(now_s, name, totals[key], **dict(key[1]))

    for phase in phases:
        for _ in range(round(phase.seconds / scrape_s)):
            now_s += scrape_s
            asked = phase.rps * scrape_s
            server = asked * (1 - phase.hit_ratio) if place.front else asked
            _server(add, phase, place, server, scrape_s)
            if place.front is not None:
                _front(add, phase, place.front, asked)
    return now_s


def _server(add: object, phase: Load, place: Place, requests: float, scrape_s: float) -> None:
    assert callable(add)
    model = {"model": place.model, "version": "1"}
    # As Triton does it: one reporter without gpu_uuid beside the instances', everything summed by whoever reads.
    add("nv_inference_request_success", requests * (1 - phase.error_ratio), place.server, **model)
    add("nv_inference_request_failure", requests * phase.error_ratio, place.server, **model, reason="OTHER")
    add("nv_inference_count", requests, place.server, **model)
    add("nv_inference_exec_count", requests / phase.items, place.server, **model)
    server_ms = phase.queue_ms + phase.compute_ms + 1
    for part, each_ms in (
        ("request", server_ms),
        ("queue", phase.queue_ms),
        ("compute_infer", phase.compute_ms),
        ("compute_input", 0.5),
        ("compute_output", 0.5),
    ):
        add(f"nv_inference_{part}_duration_us", requests * each_ms * 1000, place.server, **model)
    if place.simulated:
        add("sim_accelerator_busy_seconds_total", phase.busy * scrape_s, place.server, **model, profile="small")


def _front(add: object, phase: Load, front: tuple[tuple[str, str], ...], asked: float) -> None:
    assert callable(add)
    add("gateway_requests_total", asked * (1 - phase.error_ratio), front, status="200", arm="stable", cached="false")
    add("gateway_requests_total", asked * phase.error_ratio, front, status="503", arm="stable", cached="false")
    add("gateway_cache_hits_total", asked * phase.hit_ratio, front)
    add("gateway_cache_misses_total", asked * (1 - phase.hit_ratio), front)
    add("gateway_request_duration_seconds_sum", asked * phase.latency_ms / 1000 * 0.7, front, arm="stable")
    add("gateway_request_duration_seconds_count", asked, front, arm="stable")
    for bound in (*LATENCY_BOUNDS_S, float("inf")):
        inside = asked if bound * 1000 >= phase.latency_ms else asked * 0.5
        add(
            "gateway_request_duration_seconds_bucket",
            inside,
            front,
            arm="stable",
            le=f"{bound:g}".replace("inf", "+Inf"),
        )
    for stage, each_ms in (("cache", 0.4), ("preprocess", 1.0), ("inference", phase.queue_ms + phase.compute_ms + 3)):
        add("gateway_stage_duration_seconds_sum", asked * each_ms / 1000, front, stage=stage)
        add("gateway_stage_duration_seconds_count", asked, front, stage=stage)


@contextlib.contextmanager
def running_prometheus(
    folder: Path, page: Page | None = None, settings: str = "global: {scrape_interval: 15s}\n", within_s: float = 60.0
) -> Iterator[str]:
    """A Prometheus that holds `page`'s samples and scrapes what `settings` say; its URL. It is ended afterwards.

    `within_s` is how long writing the samples may take.
    """
    data = folder / "data"
    data.mkdir(parents=True)
    if page is not None:
        text = folder / "page.txt"
        page.write(text)
        create = [str(find_program("promtool")), "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
        subprocess.run(create, check=True, capture_output=True, timeout=within_s)
    configuration = folder / "prometheus.yml"
    configuration.write_text(settings)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [
        str(find_program("prometheus")),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=10y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_until_ready(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "Prometheus ended while starting"
        # Until it is ready it refuses connections, then says 503: both are URLError.
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{url}/-/ready", timeout=2).close()
            return
        time.sleep(0.05)
    raise AssertionError("Prometheus did not become ready")
