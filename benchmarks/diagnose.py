"""What a diagnosis costs: from a bundle, and from a real Prometheus of 1,000, 10,000 and 100,000 series.

The whole command is timed, from cold start to exit, beside its own start-up (the same command where nothing answers)
and beside the bare HTTP queries that it asks, sent by a plain client; runs are interleaved and medians compared, so
that a busy machine slows all alike. A proxy counts requests and bytes in a run of its own. The last line of stdout is
one JSON object. Targets: a bundle within 0.5 s, 10,000 series within 2 s and 1.3 times start-up and slowest query.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.told import explain
from tests.contract.backfill import Load, Page, Place, running_prometheus, serve_phases
from tests.contract.counting_proxy import counting_proxy

SCRAPE_S = 30.0
CALM = Load(1080, 60, 110)
CROWD = Load(420, 310, 1800, queue_ms=1700, compute_ms=28, items=8, error_ratio=0.002)
MODEL, OTHER = "ranker", "other"
TARGETS = {"bundle_s": 0.5, "prometheus_10k_s": 2.0, "ratio_to_slowest_query": 1.3}
MIDDLE = 10_000
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(slots=True)
class Fleet(Page):
    """The samples of one pod, written once for each of many; every other pod serves another model."""

    pods: int = 1

    def write(self, path: Path) -> None:
        with path.open("w") as stream:
            for name, by_labels in self.samples.items():
                stream.write(f"# TYPE {name} unknown\n")
                for labels, points in by_labels.items():
                    tails = [f" {value!r} {time_s:.3f}\n" for time_s, value in points]
                    for pod in range(self.pods):
                        model = MODEL if pod % 2 == 0 else OTHER
                        own = labels.replace("POD", f"pod-{pod}").replace("MODEL", model)
                        head = f"{name}{{{own}}}"
                        stream.write("".join(head + tail for tail in tails))
            stream.write("# EOF\n")


def fleet(series: int, start_s: float) -> tuple[Fleet, float]:
    """About so many series: pods of a Triton and its gateway, calm and then in a crowd; and when it ends."""
    made = Fleet()
    server = (("job", "triton"), ("namespace", "prod"), ("instance", "POD"))
    front = (("job", "gateway"), ("namespace", "prod"), ("instance", "POD"))
    end_s = serve_phases(made, start_s, [CALM, CROWD], Place("MODEL", server, front, simulated=False), SCRAPE_S)
    made.pods = round(series / sum(len(by_labels) for by_labels in made.samples.values()))
    return made, end_s


@dataclass(slots=True)
class Scene:
    """One Prometheus, what is asked of it, and the seconds that everything took."""

    series: int
    url: str
    end_s: float
    bundle: Path
    asked: list[tuple[str, str, str, float]] = field(default_factory=list)
    bytes: int = 0
    whole_s: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    replay_s: list[float] = field(default_factory=list)
    queries_s: list[list[float]] = field(default_factory=list)

    def prepare(self) -> None:
        """Count what a diagnosis sends and gets, and keep what it collected."""
        with counting_proxy(self.url) as proxy:
            run(*self.live(proxy.url), "--save", str(self.bundle))
            self.asked, self.bytes = list(proxy.requests), proxy.bytes

    def live(self, url: str) -> tuple[str, ...]:
        return ("--prometheus", url, "--model", MODEL, "--at", repr(self.end_s), "--since", "20m")

    def measure(self) -> None:
        """One round of everything, side by side."""
        self.start_s.append(run(*self.live("http://127.0.0.1:1"), expected=4))
        self.whole_s.append(run(*self.live(self.url)))
        self.replay_s.append(run("--bundle", str(self.bundle)))
        self.queries_s.append(list(bare(self.url, self.asked)))

    @property
    def slowest_s(self) -> float:
        """The slowest of its own queries, each by its median."""
        return float(max(statistics.median(times) for times in zip(*self.queries_s, strict=True)))

    @property
    def ratio(self) -> float:
        """The whole command over its start-up and its slowest query: each round by itself, then the median."""
        rounds = zip(self.whole_s, self.start_s, self.queries_s, strict=True)
        return float(statistics.median(whole_s / (start_s + max(queries_s)) for whole_s, start_s, queries_s in rounds))


def run(*arguments: str, expected: int = 0) -> float:
    """Seconds of one diagnosis, from cold start to exit."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    command = [sys.executable, "-m", "latencydoctor", "diagnose", *arguments, "--format", "json", "--exit-zero"]
    started_s = time.perf_counter()
    done = subprocess.run(command, capture_output=True, env=clean, timeout=120, check=False)
    elapsed_s = time.perf_counter() - started_s
    if done.returncode != expected:
        raise SystemExit(f"{' '.join(command)} exits {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    if not expected and b'"state": "incident"' not in done.stdout:
        raise SystemExit("the incident was not found, so nothing is worth timing")
    return elapsed_s


def bare(url: str, asked: list[tuple[str, str, str, float]]) -> Iterator[float]:
    """Seconds of each query that a diagnosis asks, one after another over one connection."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        for method, path, body, _ in asked:
            started_s = time.perf_counter()
            connection.request(method, path, body or None, FORM if body else {})
            connection.getresponse().read()
            yield time.perf_counter() - started_s
    finally:
        connection.close()


def table(scenes: list[Scene]) -> None:
    """One row a Prometheus."""
    heads = ("series", "diagnose", "start-up", "slowest query", "all queries", "ratio", "requests", "kB", "replay")
    print("".join(f"{head:>15}" for head in heads))
    for scene in scenes:
        all_s = statistics.median(sum(times) for times in scene.queries_s)
        cells = (
            f"{scene.series:,}",
            *(f"{value:.3f} s" for value in (statistics.median(scene.whole_s), statistics.median(scene.start_s))),
            *(f"{value:.3f} s" for value in (scene.slowest_s, all_s)),
            f"{scene.ratio:.2f}",
            f"{len(scene.asked)}",
            f"{scene.bytes / 1024:.0f}",
            f"{statistics.median(scene.replay_s):.3f} s",
        )
        print("".join(f"{cell:>15}" for cell in cells))


def main() -> None:
    quick = bool(os.environ.get("QUICK"))
    sizes = (1_000, MIDDLE) if quick else (1_000, MIDDLE, 100_000)
    began_s = float(int(time.time())) - 1800
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        scenes: list[Scene] = []
        for size in sizes:
            made, end_s = fleet(size, began_s)
            here = Path(folder) / str(size)
            url = running.enter_context(running_prometheus(here, made, within_s=600))
            (here / "page.txt").unlink()
            scenes.append(Scene(size, url, end_s, Path(folder) / f"{size}.json.gz"))
            scenes[-1].prepare()
        for _ in range(5 if quick else 9):
            for scene in scenes:
                scene.measure()
        table(scenes)
    middle = next(scene for scene in scenes if scene.series == MIDDLE)
    figures = {
        "bundle_s": round(statistics.median(middle.replay_s), 3),
        "prometheus_10k_s": round(statistics.median(middle.whole_s), 3),
        "ratio_to_slowest_query": round(middle.ratio, 3),
        "requests": len(middle.asked),
        "bytes": middle.bytes,
    }
    for name, most in TARGETS.items():
        print(f"{name} {figures[name]}, target {most} or less: {'met' if figures[name] <= most else 'MISSED'}")
    print(json.dumps(figures))


if __name__ == "__main__":
    explain(__doc__)
    main()
