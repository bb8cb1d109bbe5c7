"""Holds what `latencydoctor diagnose` reads of an overloaded vLLM against that vLLM's own metrics page.

    python benchmarks/vllm_overload.py            about eight minutes
    QUICK=1 python benchmarks/vllm_overload.py    under two minutes

The first run installs vLLM (3.5 GB, some minutes more; scripts/record/vllm_environment.py). A real vLLM with eight
slots gets a calm phase and then 64 clients at once; a real Prometheus scrapes it through a relay that keeps every page
as it was handed out. The readings come from the bundle that `diagnose --save` stores, the expected figures from the
kept pages. The last line is JSON.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.told import explain

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gateway_stack import child, wait_for
from benchmarks.vllm_comparison import Answer, Compared, compare, ends_of, on_its_clock
from benchmarks.vllm_pages import RATES, Relay, relaying
from latencydoctor.sources.bundle import read
from latencydoctor.stack import binaries
from latencydoctor.stack.prepare import user_cache
from scripts.record.vllm_environment import prepare
from scripts.record.vllm_server import SLOTS, free_port, running

CLIENTS, CALM_CLIENTS = 64, 2
SETTLE_S = 6.0
"""From the beginning of the overload until the pages are first read."""

EVERY_S = 3
"""Between scrapes: vLLM's front end may take a second or two over its page while it is flooded."""

INCIDENT = 3
"""The exit code."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long the phases take, and how often the overloaded server is diagnosed."""

    calm_s: float
    load_s: float
    scrapes: int
    rounds: int


PLAN = Plan(12.0, 42.0, 12, 1) if os.environ.get("QUICK") else Plan(150.0, 90.0, 21, 3)


@contextlib.contextmanager
def prometheus(relay: Relay, folder: Path) -> Iterator[str]:
    """A Prometheus that scrapes the relay."""
    configuration = folder / "prometheus.yml"
    target = relay.url.removeprefix("http://")
    configuration.write_text(
        f"global: {{scrape_interval: {EVERY_S}s, scrape_timeout: {EVERY_S}s}}\nscrape_configs: [{{job_name: llm, "
        f"metrics_path: /prometheus/metrics, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    port = free_port()
    program = binaries.discover(binaries.tools(os.environ, user_cache())).prometheus
    command = [str(program), f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    url = f"http://127.0.0.1:{port}"
    with child(command, folder / "prometheus.log"):
        wait_for(f"{url}/-/ready", folder / "prometheus.log")
        yield url


@contextlib.contextmanager
def clients(port: int, number: int) -> Iterator[None]:
    """Clients at work, in a process of their own so that they do not hold up the relay."""
    command = [sys.executable, "-m", "scripts.record.vllm_load", str(port), str(number)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).resolve().parents[1]) as process:
        try:
            yield
        finally:
            # The end of its input is its sign to end.
            process.communicate(timeout=90)


def diagnose(source: str, arguments: Sequence[str], folder: Path) -> Answer:
    """Run the program as its user does."""
    bundle = folder / f"{source}.json.gz"
    command = [sys.executable, "-m", "latencydoctor", "diagnose", *arguments, "--since", "5m", "--format", "json"]
    bundle.unlink(missing_ok=True)
    began_s = time.monotonic()
    done = subprocess.run(
        [*command, "--save", str(bundle)], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder
    )
    if not bundle.is_file():
        sys.exit(f"diagnose ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    reason = str(json.loads(done.stdout)["incident"]["reason"])
    return Answer(source, done.returncode, time.monotonic() - began_s, read(bundle), reason)


def sample_times(url: str, window_s: float, at_s: float) -> list[float]:
    """When Prometheus took the samples of one window."""
    query = urllib.parse.urlencode({"query": f"vllm:num_requests_running[{window_s:g}s]", "time": f"{at_s:.3f}"})
    with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=10) as answer:
        document = json.load(answer)
    (series,) = document["data"]["result"] or [{"values": []}]
    return [float(time_s) for time_s, _ in series["values"]]


def through_prometheus(url: str, relay: Relay, folder: Path, since_s: float) -> tuple[Answer, list[Compared]]:
    """Diagnose from the Prometheus, and compare the windows of the overload, which began at `since_s`."""
    answer = diagnose("prometheus", ["--prometheus", url], folder)
    window_s = answer.collected.window_s
    found: list[Compared] = []
    for end_s in ends_of(answer):
        # A counter that was near nothing a window ago is not stretched to the whole window: rate() stops at zero.
        if end_s - window_s >= since_s + window_s:
            pages = relay.pages(answer.source, sample_times(url, window_s, end_s))
            found += compare(answer, end_s, pages)
    return answer, found


def through_pages(relay: Relay, folder: Path) -> tuple[Answer, list[Compared]]:
    """Diagnose from the page alone and compare.

    The program's clock for a page is not the relay's, so the pages at either end of a window are in doubt: of the runs
    of pages that may be meant the best is taken, one for all signals.
    """
    # A deadline far off: on a machine with two busy cores the program, too, takes its time.
    arguments = ["--metrics-url", f"{relay.url}/pages/metrics", "--every", f"{EVERY_S}s"]
    arguments += ["--scrapes", str(PLAN.scrapes), "--deadline", "180s"]
    began_s = time.time()
    answer = diagnose("pages", arguments, folder)
    pages = relay.pages(answer.source, [one for one in relay.times_s(answer.source) if one >= began_s])
    found: list[Compared] = []
    for end_s in ends_of(answer):
        inside = [n for n, page in enumerate(pages) if end_s - answer.collected.window_s <= page.at_s <= end_s]
        if not inside:
            continue
        runs = [
            compare(
                answer, end_s, on_its_clock(answer, end_s, pages[max(inside[0] + before, 0) : inside[-1] + 1 + after])
            )
            for before in (-1, 0, 1)
            for after in (-1, 0, 1)
        ]
        found += max(runs, key=lambda run: sum(one.same for one in run))
    return answer, found


def show(found: Sequence[Compared]) -> None:
    """One line a source and signal: the last window's figures and the worst difference of all windows."""
    print(f"{'source':<11}{'signal':<30}{'read':>14}{'page':>14}{'windows':>9}{'worst':>10}")
    for source, name in sorted({(one.source, one.signal) for one in found}):
        rows = [one for one in found if (one.source, one.signal) == (source, name)]
        worst = max(one.difference_ratio for one in rows)
        mark = "" if all(one.same for one in rows) else "  DIFFERS"
        last = rows[-1]
        print(f"{source:<11}{name:<30}{last.read:>14.6g}{last.page:>14.6g}{len(rows):>9}{worst:>10.1e}{mark}")


def last_line(answers: Sequence[Answer], found: Sequence[Compared]) -> dict[str, object]:
    """What a machine reads."""
    newest = {one.signal: one.read for one in found}
    exact = [one.difference_ratio for one in found if one.signal not in RATES]
    rates = [one.difference_ratio for one in found if one.signal in RATES]
    return {
        "sources": sorted({answer.source for answer in answers}),
        "signals": len({one.signal for one in found}),
        "compared": len(found),
        "different": sum(not one.same for one in found),
        "worst_difference_ratio": max(exact, default=math.nan),
        "worst_rate_difference_ratio": max(rates, default=math.nan),
        "incident_found": all(answer.exit_code == INCIDENT for answer in answers),
        **{
            name: round(newest[name], 4)
            for name in ("requests_running", "requests_waiting", "kv_cache_usage_ratio", "queue_time_ms", "e2e_p99_ms")
            if name in newest
        },
    }


def measure(folder: Path) -> tuple[list[Answer], list[Compared]]:
    """Bring everything up, load it, diagnose it."""
    answers: list[Answer] = []
    found: list[Compared] = []
    with (
        running(prepare(), folder / "vllm.log") as server,
        relaying(f"{server.url}/metrics") as relay,
        prometheus(relay, folder) as url,
    ):
        with clients(server.port, CALM_CLIENTS):
            time.sleep(PLAN.calm_s)
        with clients(server.port, CLIENTS), ThreadPoolExecutor(1) as aside:
            since_s = time.time()
            for _ in range(PLAN.rounds):
                time.sleep(SETTLE_S)
                pages = aside.submit(through_pages, relay, folder)
                time.sleep(PLAN.load_s - SETTLE_S)
                for answer, compared in (through_prometheus(url, relay, folder, since_s), pages.result()):
                    answers.append(answer)
                    found += compared
                    print(f"{answer.source}: {answer.reason} (answered in {answer.seconds:.1f} s)", flush=True)
        print(f"{CLIENTS} clients at once, {SLOTS} slots\n")
    return answers, found


def main() -> None:
    """Measure, show, and end with 1 when a figure differs or the incident was not found."""
    # vLLM's processes would outlive this one: told to end, it ends them first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="ld-vllm-") as folder:
        answers, found = measure(Path(folder))
    show(found)
    summary = last_line(answers, found)
    print(json.dumps(summary))
    sys.exit(0 if found and not summary["different"] and summary["incident_found"] else 1)


if __name__ == "__main__":
    explain(__doc__)
    main()
