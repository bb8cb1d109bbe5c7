"""`diagnose` against a Prometheus that is down, wrong, slow or empty: exit code, one line, a hint, and in time."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.strangers import (
    Answer,
    Asked,
    drip,
    drip_head,
    endless,
    marked,
    names_json,
    prometheus_json,
    stranger,
)
from tests.e2e.program import clean, finish, here, refused, run, start


def reply(body: bytes, status: str = "200 OK", kind: str = "application/json") -> Answer:
    return lambda asked: asked.reply(body, status, kind)


def silent(asked: Asked) -> None:
    del asked
    time.sleep(30)


HOSTILE_ERROR = json.dumps({"status": "error", "error": "[/INST] [red]no[/] \x1b[31m \x07 \u202e"}).encode()


@pytest.mark.parametrize(
    ("answer", "code", "message", "hint"),
    [
        (reply(b"404 page not found", "404 Not Found", "text/plain"), 1, "not found: HTTP 404", "path prefix"),
        (reply(b"<html>Sign in</html>", kind="text/html"), 1, "not JSON: the server sent text/html", "address"),
        (reply(b"no", kind="text/[/INST]\x1b[31m"), 1, "not JSON: the server sent", "address is right"),
        (reply(b"", "401 Unauthorized"), 1, "credentials refused: HTTP 401", "credentials"),
        (reply(HOSTILE_ERROR, "403 Forbidden"), 1, "HTTP 403: [/INST] [red]no[/] [31m", "credentials"),
        (reply(b"oops", "500 Internal Server Error", "text/plain"), 4, "answers with an error: HTTP 500", "own log"),
        (reply(HOSTILE_ERROR, "503 Busy"), 4, "HTTP 503: [/INST] [red]no[/] [31m", "its own log"),
        (reply(b'{"status": "success", "data": ["a", '), 4, "cut off or broken", "Check that it runs"),
        (endless, 4, "answer too large: more than 1 MiB", "Check that it runs"),
        (drip, 4, "deadline passed", "Check that it runs"),
        (drip_head, 4, "deadline passed", "Check that it runs"),
        (silent, 4, "deadline passed", "Check that it runs"),
    ],
    ids=[
        "wrong path", "HTML", "markup as a type", "401", "hostile 403", "500", "hostile 503", "broken JSON", "endless",
        "drip", "drip of a head", "silent",
    ],
)  # fmt: skip
def test_what_is_no_working_prometheus(answer: Answer, code: int, message: str, hint: str, tmp_path: Path) -> None:
    with stranger(answer) as server:
        started_s = time.monotonic()
        ran = here("diagnose", "--prometheus", server.url, "--deadline", "1s", cwd=tmp_path)
        # One second for the sources, the rest for a busy machine.
        assert time.monotonic() - started_s < 5
    refused(ran, code, message, hint)
    assert list(tmp_path.iterdir()) == []


def test_down(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ran = run("diagnose", "--prometheus", f"http://127.0.0.1:{taken.getsockname()[1]}", cwd=tmp_path)
    refused(ran, 4, "Prometheus does not answer: connection refused", "--prometheus URL")


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("http://no-such-host.invalid:9090", 4, "host name not found"),
        ("localhost:9090", 1, "must start with http:// or https://"),
        ("http://[::1", 1, "malformed"),
        ("http://localhost:9090/graph?g0.expr=up", 1, "must not have a query"),
        ("ftp://localhost", 1, "must start with http:// or https://"),
    ],
)
def test_an_address_that_is_none(url: str, code: int, message: str, tmp_path: Path) -> None:
    refused(here("diagnose", "--prometheus", url, cwd=tmp_path), code, message)


def speaks(names: tuple[str, ...], instant: list[dict[str, Any]], ranged: list[dict[str, Any]]) -> Answer:
    """A Prometheus that always gives these results."""

    def answer(asked: Asked) -> None:
        if "/label/" in asked.path:
            asked.reply(names_json(*names))
        elif "query_range" in asked.path:
            asked.reply(prometheus_json(marked(asked, ranged), "matrix"))
        else:
            asked.reply(prometheus_json(marked(asked, instant)))

    return answer


TRITON = tuple(
    f"nv_inference_{name}"
    for name in (
        "request_success",
        "request_failure",
        "request_duration_us",
        "queue_duration_us",
        "count",
        "exec_count",
    )
)
ONE = [{"metric": {"model": "m"}, "value": [1, "1"]}]
NANS = [{"metric": {}, "values": [[1, "NaN"], [2, "+Inf"]]}]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (speaks((), [], []), "no series"),
        (speaks(("up",), [], []), "no series"),
        (speaks(("nv_inference_request_success",), ONE, []), "no series"),
        (speaks(TRITON, ONE, NANS), "not a number"),
    ],
    ids=["nothing at all", "no Triton", "names without series", "only NaN"],
)
def test_no_figures_is_not_healthy(answer: Answer, reason: str, tmp_path: Path) -> None:
    with stranger(answer) as server:
        ran = here("diagnose", "--prometheus", server.url, "--format", "json", cwd=tmp_path)
    assert (ran.code, ran.err) == (4, "")
    told = json.loads(ran.out)
    assert told["incident"]["state"] == "cannot tell"
    assert told["cause"] is None
    assert reason in {gap["reason"] for gap in told["missing"]}


def two_services(asked: Asked) -> None:
    hostile = "[/INST][bold]x\x1b[31m\n--yes"
    vector = [{"metric": {"model": name, "namespace": "prod"}, "value": [1, "1"]} for name in ("bert", hostile)]
    speaks(("nv_inference_request_success",), vector, [])(asked)


def test_several_services_are_listed_and_never_merged(tmp_path: Path) -> None:
    with stranger(two_services) as server:
        ran = run("diagnose", "--prometheus", server.url, cwd=tmp_path)
        refused(ran, 2, "several services fit", "Choose one:")
        listed = [line.strip() for line in ran.hint.splitlines()[1:]]
        assert listed[1] == "--model bert"
        assert "[/INST][bold]x" in listed[0]
        ran = here("diagnose", "--prometheus", server.url, "--model", "nope", cwd=tmp_path)
        refused(ran, 2, "there is no model 'nope' here", "--model bert")


def test_a_selector_that_prometheus_refuses(tmp_path: Path) -> None:
    body = json.dumps({"status": "error", "errorType": "bad_data", "error": "1:3: parse error: [/INST]"}).encode()
    with stranger(reply(body, "400 Bad Request")) as server:
        ran = here("diagnose", "--prometheus", server.url, "--selector", "namespace=", cwd=tmp_path)
    refused(ran, 2, "Prometheus refuses the selector: HTTP 400: 1:3: parse error: [/INST]", 'namespace="prod"')


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_at_once_and_quietly(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with stranger(drip) as server:
        process = start("diagnose", "--prometheus", server.url, "--deadline", "50s", cwd=tmp_path)
        wait_for(lambda: bool(server.asked))
        process.send_signal(number)
        sent_s = time.monotonic()
        ran = finish(process)
        assert time.monotonic() - sent_s < 5
    assert (ran.code, ran.out, ran.err) == (code, "", "")


def wait_for(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_config_check_says_which_source_is_wrong(tmp_path: Path) -> None:
    with stranger(reply(b"<html>[/INST]</html>", kind="text/html")) as server:
        wrong = here("config", "check", "--prometheus", server.url, "--triton", "127.0.0.1:1", cwd=tmp_path)
    assert wrong.code == 1
    assert re.search(r"prometheus +wrong .*not JSON", wrong.out)
    assert re.search(r"triton +unreachable", wrong.out)
    clean(wrong)
    with stranger(speaks(("nv_inference_request_success",), ONE, [])) as server:
        right = here("config", "check", "--prometheus", server.url, "--format", "json", cwd=tmp_path)
    assert right.code == 0
    states = {source["name"]: source["state"] for source in json.loads(right.out)["sources"]}
    assert states["prometheus"] == "ok"
