"""What a recording makes of pages against what a real Prometheus makes of them when it scrapes the same ones.

Series that vanish, scrapes that fail, pages that are broken, labels the scraper needs for itself, times that samples
bring along: none of this can be written into a Prometheus's past, so here one scrapes.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from latencydoctor.evidence.promql import PageError, Recording
from tests.contract.backfill import running_prometheus
from tests.contract.promql_scene import Steps, asked, computed, differences

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
BROKEN = '<html>\na{m="x"} 4\n'
"""Broken from the start: series above the break stay on in Prometheus 2.42, as if they had been seen."""


def _pages(now_ms: int) -> list[tuple[str, str] | None]:
    """Content type and text, None for an error status; the last stays."""
    return [
        (TEXT, 'a{m="x"} 1\na{m="y"} 5\nb 1\n'),
        (TEXT, '# HELP a It\\nis.\n# TYPE a counter\na{m="x"} 2\na{m="y"} 6\n\nb   2\n'),
        (TEXT, 'a{m="x"} 3\nb 3\n'),
        None,
        (TEXT, 'a{m="x"} 1\na{ m = "y" , } 7\nb NaN\n'),
        (TEXT, 'a{m="x"} 3\na{m="x"} 9\na{m="y"} +Inf\nb 1e3\n'),
        (TEXT, BROKEN),
        (TEXT, 'a{m="x",instance="own",job="own"} 4\na{m="y",empty=""} 8\n'),
        (TEXT, f'a{{m="x"}} 5\na{{m="y"}} 9\nc 1 {now_ms - 3000}\nc{{d="now"}} 1\n'),
        (TEXT, f'a{{m="x"}} 6\nc 2 {now_ms - 2000}\n'),
        (TEXT, f'a{{m="x"}} 7\nc 3 {now_ms - 2500}\nhard{{v="a\\\\b\\"c\\nd}} {{ 1"}} 4\n'),
        (TEXT, 'a{m="x"} 8\nhard{v="a\\\\b\\"c\\nd} { 1"} 5\n# a comment\n#another\n'),
        (OPENMETRICS, '# TYPE a counter\na_total{m="x"} 9 # {trace="1"} 4 1.5\n# TYPE b gauge\nb 3\n# EOF\n'),
        (OPENMETRICS, f'# TYPE a counter\na_total{{m="x"}} 11\n# TYPE b gauge\nb 4 {now_ms / 1000}\n# EOF\n'),
        (TEXT, 'a{m="x"} 1\n'),
    ]


@dataclass(slots=True)
class Server:
    """A target that gives one page after the other, and what it gave."""

    pages: list[tuple[str, str] | None]
    given: list[tuple[str, str] | None] = field(default_factory=list)

    def next(self) -> tuple[str, str] | None:
        page = self.pages[min(len(self.given), len(self.pages) - 1)]
        self.given.append(page)
        return page


@pytest.fixture(scope="module")
def target() -> Iterator[tuple[Server, str]]:
    server = Server(_pages(int(time.time() * 1000)))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = server.next()
            self.send_response(500 if page is None else 200)
            body = b"" if page is None else page[1].encode()
            self.send_header("Content-Type", "text/plain" if page is None else page[0])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield server, f"127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


@dataclass(frozen=True, slots=True)
class Both:
    """A Prometheus that scraped, a recording of the same pages, and the scrapes' times in milliseconds.

    `refused` are the pages that the recording did not take, with what Prometheus said of each.
    """

    url: str
    recording: Recording
    times_ms: list[int]
    refused: list[tuple[float, str]]


@pytest.fixture(scope="module")
def both(target: tuple[Server, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    server, address = target
    settings = json.dumps(
        {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
            "scrape_configs": [{"job_name": "page", "static_configs": [{"targets": [address]}]}],
        }
    )
    with running_prometheus(tmp_path_factory.mktemp("scraping") / "it", settings=settings) as url:
        for _ in range(200):
            if len(server.given) > len(server.pages):
                break
            time.sleep(0.1)
        yield _both(url, server, address)


def _both(url: str, server: Server, address: str) -> Both:
    recording, times_ms, refused = Recording(), [], []
    for (time_ms, up), page in zip(_scrapes(url), server.given, strict=False):
        times_ms.append(time_ms)
        if page is None or (up == 0 and page[1] != BROKEN):
            # Also a scrape that a busy machine let time out, which says nothing against the page.
            recording.add_failure(time_ms / 1000, address)
            continue
        try:
            recording.add_page(time_ms / 1000, address, page[1])
        except PageError:
            refused.append((up, page[1]))
    return Both(url, recording, times_ms, refused)


def _scrapes(url: str) -> list[tuple[int, float]]:
    """When Prometheus scraped, in milliseconds, and whether it took the page."""
    with urllib.request.urlopen(f"{url}/api/v1/query?query={urllib.parse.quote('up[5m]')}", timeout=5) as answer:
        (element,) = json.load(answer)["data"]["result"]
    return [(round(time_s * 1000), float(up)) for time_s, up in element["values"]]


def test_the_broken_page_and_no_other_is_refused(both: Both) -> None:
    assert both.refused == [(0.0, BROKEN)]


@pytest.mark.parametrize(
    "query",
    [
        "up", "a", "b", "c", "hard", "a_total", "count(a)", 'a{m="x"}', "rate(a[2s])", "irate(a[2s])",
        "increase(b[3s])", "resets(a[5s])",
        "count_over_time(a[3s])", "count_over_time(c[10s])", "timestamp(c)", "timestamp(b)", "a offset 1s",
        "last_over_time(a[1s])", "absent(b)", "sum(up)", "avg_over_time(up[3s])", 'hard{v="a\\\\b\\"c\\nd} { 1"}',
        'a{exported_instance="own"}', "count by (exported_job) (a)", 'group by (empty, m) (a{empty=""})',
    ],
)  # fmt: skip
def test_scraped_alike(both: Both, query: str) -> None:
    # A step of 130 ms falls on all sides of the scrapes.
    count = (both.times_ms[-1] - both.times_ms[0] + 300) // 130
    steps = Steps(both.times_ms[0] - 200, 130, count)
    theirs = asked(both.url, query, steps)
    assert theirs
    assert differences(computed(both.recording, query, steps), theirs) == ""
