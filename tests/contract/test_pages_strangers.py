"""Metrics pages that are none, or not quite, or far too much: each is said to be what it is, in time."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import CannotTell, LatencyDoctorError, SourceError, UsageError
from latencydoctor.model.configuration import MetricsPage
from latencydoctor.model.evidence import Selection, Window
from latencydoctor.model.readings import Discovery, RangeQuery, Readings
from latencydoctor.sources.pages import PageMetrics
from tests.contract.authority import openssl
from tests.contract.strangers import Answer, Asked, drip_head, stranger

_, DIALECTS = read_signals(locate())
TEXT = "text/plain; version=0.0.4"
GOOD = b"nv_inference_request_success 5\n"


def discover(url: str, scrapes: int = 3, every_s: float = 0.3) -> tuple[PageMetrics, Discovery]:
    pages = PageMetrics([MetricsPage(url)], scrapes, every_s, deadline_s=30.0)
    at_s = pages.record(DIALECTS, lambda _ratio, _text: None)
    return pages, pages.discover(DIALECTS, Selection(""), at_s)


def refusal(answer: Answer, path: str = "/metrics") -> LatencyDoctorError:
    with stranger(answer) as server, pytest.raises(LatencyDoctorError) as error:
        discover(server.url + path)
    return error.value


def page(body: bytes, kind: str = TEXT) -> Answer:
    return lambda asked: asked.reply(body, kind=kind)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (page(b"<html><body>Grafana</body></html>\n"), "this is a web page"),
        (page(b"<html><body>Grafana</body></html>", "text/html; charset=utf-8"), "text/html"),
        (page(b'{"status":"ok"}', "application/json"), "application/json"),
        (page(b"\x0a\x04\x0a\x02up", "application/vnd.google.protobuf; encoding=delimited"), "protobuf"),
        (page(b""), "the page is empty"),
        (page(b"a 1\nb 2\nc 12"), "line 3: the page breaks off"),
        (page(b"# TYPE a gauge\na 1\n", "application/openmetrics-text; version=1.0.0"), "does not end with # EOF"),
        (page(b'a{x="1} 2\n'), "line 1"),
        (page(b"a 1\n\xff\xfe 2\n"), "line 2: this is no UTF-8 text"),
        (page(b"a\x1b[31m 1\n"), "line 1"),
        (page(b'nv_inference_count{x="1",x="2"} 1\n'), "occurs twice"),
        (page(b"a one\n"), "'one' is no number"),
        (lambda asked: asked.reply(b"", "401 Unauthorized"), "HTTP 401"),
        (lambda asked: asked.reply(b"", "404 Not Found"), "HTTP 404"),
        (lambda asked: asked.reply(b"", "302 Found", Location="http://other.example/metrics"), "another host"),
    ],
)
def test_no_metrics_page(answer: Answer, told: str) -> None:
    error = refusal(answer)
    assert isinstance(error, SourceError)
    assert told in error.message
    assert error.message.isprintable()
    assert error.hint


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda asked: asked.reply(b"", "503 Service Unavailable"), "HTTP 503"),
        (lambda asked: asked.connection.close(), "broke off"),
        (
            lambda asked: asked.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\na 1\n"),
            "broke off",
        ),
        (drip_head, "deadline passed"),
    ],
)
def test_a_server_that_may_come_back(answer: Answer, told: str) -> None:
    began_s = time.monotonic()
    error = refusal(answer)
    assert isinstance(error, CannotTell)
    assert told in error.message
    assert time.monotonic() - began_s < 20


def test_a_page_without_an_end() -> None:
    def endless(asked: Asked) -> None:
        asked.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"a 1\n" * 0x4000 + b"\r\n"
        while True:
            asked.connection.sendall(chunk)

    error = refusal(endless)
    assert "answer too large" in error.message or "deadline passed" in error.message


def test_one_broken_page_among_good_ones() -> None:
    count = iter(range(100))
    with stranger(lambda asked: asked.reply(GOOD if next(count) != 1 else b"nv_inf", kind=TEXT)) as server:
        _, found = discover(server.url, scrapes=4)
    (told,) = [gap.detail for gap in found.gaps if gap.signal == "pages"]
    where = server.url.removeprefix("http://")
    assert told == f"1 of 4 readings of {where} failed: line 1: the page breaks off in the middle of a line"


def test_odd_but_readable() -> None:
    old_ms = 1000 * int(time.time() - 7200)
    text = (
        b"nv_inference_request_success NaN\nnv_inference_request_success 7\n"
        b'nv_inference_count{model="a"} 1 %d\n\n# whatever\n' % old_ms
    )
    with stranger(page(text, "")) as server:
        _, found = discover(server.url)
    details = {gap.signal.split(" ")[-1]: gap.detail for gap in found.gaps}
    assert details["duplicates"].startswith("1 samples stand on it twice")
    assert "a minute or more off" in details["clock"]


def test_credentials_go_to_the_page_and_no_further() -> None:
    def answer(asked: Asked) -> None:
        if asked.path == "/metrics":
            asked.reply(b"", "307 Temporary Redirect", Location="/metrics/")
        else:
            asked.reply(GOOD, kind=TEXT)

    with stranger(answer) as server:
        discover(server.url.replace("http://", "http://me:secret@"))
    assert {asked.header("authorization") for asked in server.asked} == {"Basic bWU6c2VjcmV0"}
    assert {asked.path for asked in server.asked} == {"/metrics", "/metrics/"}
    with stranger(lambda asked: asked.reply(b"", "500 secret")) as other, pytest.raises(CannotTell) as error:
        discover(other.url.replace("http://", "http://me:secret@"))
    assert "secret" not in str(error.value)


def test_a_certificate_from_nowhere(tmp_path: Path) -> None:
    key, certificate = str(tmp_path / "key"), str(tmp_path / "pem")
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=x", "-keyout", key,
        "-out", certificate,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with stranger(page(GOOD), context) as server, pytest.raises(SourceError, match="TLS failed"):
        discover(server.url)


@pytest.mark.parametrize(
    "url", ["metrics", "file:///etc/passwd", "ftp://a/metrics", "http://", "http://a:b", "http://a/m?x=1"]
)
def test_no_address(url: str) -> None:
    with pytest.raises(SourceError) as error:
        PageMetrics([MetricsPage(url)], None, None, 20.0)
    assert "Prometheus" not in error.value.message + error.value.hint


def test_too_many_pages_or_too_few_moments() -> None:
    with pytest.raises(UsageError):
        PageMetrics([MetricsPage(f"http://a{number}/metrics") for number in range(65)], None, None, 20.0)
    with pytest.raises(UsageError):
        PageMetrics([MetricsPage("http://a")], None, None, 3.0)


def test_two_pages_of_one_host_stay_apart() -> None:
    with stranger(page(GOOD)) as server:
        pages = PageMetrics([MetricsPage(server.url + path) for path in ("/one", "/two", "/one")], 2, 0.3, 30.0)
        at_s = pages.record(DIALECTS, lambda _ratio, _text: None)
        answer = ask(pages, "count(count by (instance) (nv_inference_request_success))", at_s)
    assert answer.series[0].values == (2.0,)


def test_what_is_not_evaluated_is_named() -> None:
    with stranger(page(GOOD)) as server:
        pages, found = discover(server.url)
        assert found.newest_sample_s is not None
        answer = ask(pages, "deriv(nv_inference_request_success[1m])", found.newest_sample_s)
        broken = ask(pages, "sum(", found.newest_sample_s)
        several = ask(pages, 'up or label_replace(up, "a", "b", "", "")', found.newest_sample_s)
    assert [gap.reason.value for gap in answer.gaps] == ["not supported"]
    assert "deriv" in answer.gaps[0].detail
    assert [gap.reason.value for gap in broken.gaps] == ["bad answer"]
    assert "2 series" in several.gaps[0].detail


def ask(pages: PageMetrics, query: str, at_s: float) -> Readings:
    return pages.collect([RangeQuery("request_rate_rps", "requests/s", query, Window(at_s, at_s), 1.0)])


def test_a_hundred_thousand_series() -> None:
    lines = "".join(f'bulk_{i % 50}{{shard="{i}",model="m{i}"}} {i}\n' for i in range(100_000))
    with stranger(page(lines.encode() + GOOD)) as server:
        began_s = time.monotonic()
        _, found = discover(server.url, scrapes=3, every_s=1.0)
    assert "bulk_7" in found.names
    assert "nv_inference_request_success" in found.names
    # 2 s of waiting; the rest is reading 12 MB thrice, on a machine that does other things too.
    assert time.monotonic() - began_s < 25
