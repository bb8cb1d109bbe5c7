"""What a vLLM's metrics pages say, worked out by hand: the figures that `latencydoctor`'s readings are held against.

A relay stands between whoever reads the page and vLLM. It hands every page on as it is and keeps a copy, so that both
sides of the comparison rest on the same text. Nothing here knows PromQL or uses the program's own evaluation.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Page:
    """One scrape: when, and each metric's values by their labels."""

    at_s: float
    values: dict[str, dict[tuple[tuple[str, str], ...], float]]

    def total(self, name: str, **labels: str) -> float:
        """The sum over a metric's series that carry the labels."""
        wanted = set(labels.items())
        return sum(value for held, value in self.values.get(name, {}).items() if wanted <= set(held))

    def largest(self, name: str) -> float:
        """The largest of a metric's series."""
        return max(self.values[name].values())


def read_page(at_s: float, text: str) -> Page:
    """Parse the text of a metrics page."""
    values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for line in text.splitlines():
        if match := _LINE.match(line):
            labels = tuple(sorted(_LABEL.findall(match[2] or "")))
            values.setdefault(match[1], {})[labels] = float(match[3])
    return Page(at_s, values)


@dataclass(slots=True)
class Relay:
    """Hands vLLM's page on and keeps what it handed to whom: `/NAME/metrics` is kept under NAME."""

    source: str
    url: str = ""
    _kept: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    def hand_on(self, reader: str, send: Callable[[bytes], None]) -> None:
        """Fetch the page and send it; one that the reader did not wait for is not kept, for it never counted."""
        asked_s = time.time()
        with urllib.request.urlopen(self.source, timeout=20) as answer:
            body = bytes(answer.read())
        with contextlib.suppress(ConnectionError):
            send(body)
            self._kept.setdefault(reader, []).append((asked_s, body.decode("utf-8")))

    def pages(self, reader: str, times_s: Sequence[float]) -> list[Page]:
        """The pages that a reader got nearest to these times, which are its own for them."""
        kept = self._kept.get(reader, [])
        return [read_page(time_s, min(kept, key=lambda one: abs(one[0] - time_s))[1]) for time_s in times_s]

    def times_s(self, reader: str) -> list[float]:
        """When a reader got its pages."""
        return [at_s for at_s, _ in self._kept.get(reader, [])]


@contextlib.contextmanager
def relaying(source: str) -> Iterator[Relay]:
    """A relay on loopback in front of the page `source`."""
    relay = Relay(source)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            relay.hand_on(self.path.split("/")[1], self._send)

        def _send(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    relay.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def increase(pages: Sequence[Page], name: str, **labels: str) -> float:
    """How much a counter grew from the first page to the last."""
    return pages[-1].total(name, **labels) - pages[0].total(name, **labels)


def ratio(part: float, whole: float) -> float:
    """No number where there is nothing to divide by: no request ended between the pages."""
    return part / whole if whole else math.nan


def a_second(pages: Sequence[Page], name: str) -> float:
    """How much a counter grew in a second."""
    return ratio(increase(pages, name), pages[-1].at_s - pages[0].at_s)


def mean_ms(pages: Sequence[Page], name: str) -> float:
    """The mean of what a histogram of seconds took in between the pages."""
    return 1000 * ratio(increase(pages, f"{name}_sum"), increase(pages, f"{name}_count"))


def quantile_ms(pages: Sequence[Page], share: float, name: str) -> float:
    """The quantile of what a histogram of seconds took in between the pages, linear inside its bucket."""
    bounds = {dict(labels)["le"] for labels in pages[-1].values[f"{name}_bucket"]}
    counts = sorted((float(bound), increase(pages, f"{name}_bucket", le=bound)) for bound in bounds)
    rank = share * counts[-1][1]
    below_s, below = 0.0, 0.0
    for bound_s, count in counts:
        if count >= rank:
            if math.isinf(bound_s):
                return 1000 * below_s
            return 1000 * (below_s + (bound_s - below_s) * ratio(rank - below, count - below))
        below_s, below = bound_s, count
    return math.nan


def _timed(name: str) -> dict[str, Callable[[Sequence[Page]], float]]:
    """The p99, the median and the mean of one of vLLM's histograms."""
    metric = f"vllm:{name}_seconds"
    return {
        "p99": lambda pages: quantile_ms(pages, 0.99, metric),
        "p50": lambda pages: quantile_ms(pages, 0.5, metric),
        "mean": lambda pages: mean_ms(pages, metric),
    }


def _average(pages: Sequence[Page], name: str) -> float:
    return sum(page.total(name) for page in pages) / len(pages)


_E2E, _FIRST, _NEXT = _timed("e2e_request_latency"), _timed("time_to_first_token"), _timed("inter_token_latency")
_QUEUE, _PREFILL, _DECODE = _timed("request_queue_time"), _timed("request_prefill_time"), _timed("request_decode_time")

EXPECTED: dict[str, Callable[[Sequence[Page]], float]] = {
    "requests_running": lambda pages: pages[-1].total("vllm:num_requests_running"),
    "requests_waiting": lambda pages: pages[-1].total("vllm:num_requests_waiting"),
    "queue_depth": lambda pages: _average(pages, "vllm:num_requests_waiting"),
    "kv_cache_usage_ratio": lambda pages: pages[-1].largest("vllm:kv_cache_usage_perc"),
    "e2e_p99_ms": _E2E["p99"],
    "e2e_p50_ms": _E2E["p50"],
    "e2e_mean_ms": _E2E["mean"],
    "time_to_first_token_p99_ms": _FIRST["p99"],
    "time_to_first_token_p50_ms": _FIRST["p50"],
    "inter_token_latency_p99_ms": _NEXT["p99"],
    "inter_token_latency_p50_ms": _NEXT["p50"],
    "queue_time_ms": _QUEUE["mean"],
    "queue_time_p99_ms": _QUEUE["p99"],
    "prefill_time_ms": _PREFILL["mean"],
    "decode_time_ms": _DECODE["mean"],
    "decode_time_p99_ms": _DECODE["p99"],
    "request_rate_rps": lambda pages: a_second(pages, "vllm:request_success_total"),
    "prompt_tokens_rate": lambda pages: a_second(pages, "vllm:prompt_tokens_total"),
    "generation_tokens_rate": lambda pages: a_second(pages, "vllm:generation_tokens_total"),
    "preemption_rate_eps": lambda pages: a_second(pages, "vllm:num_preemptions_total"),
    "prefix_cache_hit_ratio": lambda pages: ratio(
        increase(pages, "vllm:prefix_cache_hits_total"), increase(pages, "vllm:prefix_cache_queries_total")
    ),
}
"""Signal -> its value from the pages of one window, in the signal's unit."""

RATES = ("request_rate_rps", "prompt_tokens_rate", "generation_tokens_rate", "preemption_rate_eps")
"""Prometheus stretches a counter's growth to the whole window: these agree to a few per cent, not to the last digit."""
