"""What `config check` says: addresses without credentials, and one wording for one failure."""

from __future__ import annotations

import socket

import pytest

from latencydoctor.cli import probing
from latencydoctor.cli.probing import shown_address
from latencydoctor.cli.sources_wiring import DiagnoseRequest
from latencydoctor.model.configuration import ProbedSource
from tests.contract.strangers import Answer, Asked, stranger


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost:9090", "http://localhost:9090"),
        ("https://prom.example/team", "https://prom.example/team"),
        ("http://ann:pw@localhost:9090/x", "http://localhost:9090/x"),
        ("http://ann:p@w:/@localhost", "http://localhost"),
        ("http://ann:p://w@localhost", "http://localhost"),
        ("http://localhost/?token=pw#pw", "http://localhost/"),
        ("ann:pw@localhost", "localhost"),
        ("ann:pw://x@localhost", "localhost"),
        ("", ""),
    ],
)
def test_without_credentials(url: str, shown: str) -> None:
    assert shown_address(url) == shown


def probed(url: str) -> list[ProbedSource]:
    """Prometheus, TorchServe and a metrics page, all at this address."""
    asked = (DiagnoseRequest(prometheus=url, torchserve=url), DiagnoseRequest(metrics_urls=(url,)))
    return [one for each in asked for one in probing.probe(each).sources if one.name != "nvml"]


def status(line: str) -> Answer:
    return lambda asked: asked.reply(b"oops", line, "text/plain")


def circle(asked: Asked) -> None:
    asked.reply(b"", "302 Found", Location=asked.path)


@pytest.mark.parametrize(
    ("answer", "state", "told", "step"),
    [
        (
            status("500 Internal Server Error"),
            "unreachable",
            " answers with an error: HTTP 500",
            "address is right",
        ),
        (status("503 Service Unavailable"), "unreachable", " answers with an error: HTTP 503", "address is right"),
        (status("401 Unauthorized"), "wrong", " cannot be used: credentials refused: HTTP 401", "bearer_file"),
        (status("403 Forbidden"), "wrong", " cannot be used: credentials refused: HTTP 403", "bearer_file"),
        (status("404 Not Found"), "wrong", " cannot be used: not found: HTTP 404", "URL)"),
        (circle, "wrong", " cannot be used: redirected: more than 3 times in a row", "URL)"),
        (lambda asked: asked.reply(b"<html></html>", kind="text/html"), "wrong", " cannot be used: ", ""),
    ],
    ids=["500", "503", "401", "403", "404", "circle", "HTML"],
)
def test_one_failure_is_told_alike_whoever_is_asked(answer: Answer, state: str, told: str, step: str) -> None:
    with stranger(answer) as server:
        found = probed(server.url)
    assert [one.name for one in found] == ["prometheus", "torchserve", "metrics page"]
    for one in found:
        assert (one.state, told in one.detail) == (state, True), one
        assert step in one.hint, one
        assert one.hint[0].isupper(), one
        assert one.hint.endswith("."), one


def test_a_closed_port_is_told_alike_whoever_is_asked() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        found = [*probed(f"http://{address}"), probing.probe(DiagnoseRequest(triton=address)).sources[0]]
    assert [one.name for one in found] == ["prometheus", "torchserve", "metrics page", "triton"]
    for one in found:
        assert one.state == "unreachable"
        assert one.detail.endswith(" does not answer: connection refused"), one
        assert one.hint.startswith("Check that it runs and that its address is right: "), one
