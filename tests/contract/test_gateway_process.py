"""The gateway's process beside a real Triton (with a model that answers at once) and a real Valkey."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import valkey

from benchmarks.gateway_stack import SETTINGS, Bench, bench, child, gateway, wait_for
from latencydoctor.errors import KnownError
from latencydoctor.stack import endpoints as addresses
from latencydoctor.stack import host, settings
from latencydoctor.stack.layout import Layout, locate
from latencydoctor.stack.settings import CacheSettings, Settings
from latencydoctor.stack.settings_canary import CanarySettings
from tests.contract.gateway_client import admin, ask, call, eventually, metrics

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def parts() -> Iterator[Bench]:
    """Triton and Valkey for the whole module."""
    try:
        host.refuse_unsupported(host.this_host())
    except KnownError as error:
        pytest.skip(str(error))
    with bench() as found:
        yield found


@pytest.fixture(autouse=True)
def fresh(parts: Bench) -> None:
    """Each test starts with an empty cache and the first settings, which have no canary."""
    with valkey.Valkey(unix_socket_path=parts.endpoints.valkey_socket) as client:
        client.flushall()
    settings.save(parts.layout.settings, SETTINGS)


@pytest.fixture
def port(parts: Bench) -> Iterator[int]:
    """A running gateway."""
    with gateway(parts):
        yield parts.endpoints.ports().gateway


def events(layout: Layout) -> list[dict[str, object]]:
    return [json.loads(line) for line in layout.log("gateway").read_text(encoding="utf-8").splitlines()]


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """The address of something that accepts connections and never says a word."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        yield f"127.0.0.1:{silent.getsockname()[1]}"


@contextlib.contextmanager
def elsewhere(parts: Bench, folder: Path, found: Settings = SETTINGS, **changes: str) -> Iterator[tuple[Layout, int]]:
    """A second gateway in a state folder of its own whose endpoints differ in one thing."""
    layout = locate(folder / "s")
    layout.create()
    free = addresses.free_ports().gateway
    base = replace(parts.endpoints, gateway=f"http://127.0.0.1:{free}", admin_socket=str(layout.run / "a.sock"))
    addresses.save(layout.endpoints, replace(base, **changes))  # type: ignore[arg-type]  # only addresses change
    settings.save(layout.settings, found)
    command = [sys.executable, "-m", "latencydoctor.stack.gateway", "--state", str(layout.state)]
    with child(command, layout.log("gateway")):
        wait_for(f"http://127.0.0.1:{free}/health", layout.log("gateway"))
        yield layout, free


def test_a_question_is_inferred_once_and_then_comes_from_the_cache(port: int, parts: Bench) -> None:
    first = ask(port, "Where is my order 48213?")
    eventually(lambda: ask(port, "where is my ORDER 48213?").json["cached"], "the answer is in the cache")
    second = ask(port, "where is my order 48213?")
    assert first.json["cached"] is False
    assert second.json["answer_id"] == first.json["answer_id"]
    assert first.json["stages_ms"]["inference"] > 0
    with valkey.Valkey(unix_socket_path=parts.endpoints.valkey_socket) as client:
        assert 290 <= int(client.ttl("faq:fp32-1:where is my order 48213?")) <= 300


def test_both_servers_are_private(port: int, parts: Bench) -> None:
    assert Path(parts.endpoints.admin_socket).stat().st_mode & 0o777 == 0o600
    open_ports = [one.laddr for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN and one.laddr]
    assert [address.ip for address in open_ports if address.port == port] == ["127.0.0.1"]


def test_sixty_clients_at_once_make_one_inference(port: int) -> None:
    before = metrics(port)["gateway_cache_misses_total"]
    with ThreadPoolExecutor(30) as pool:
        replies = list(pool.map(lambda _: ask(port, "the same question for all of us"), range(60)))
    assert {reply.status for reply in replies} == {200}
    page = metrics(port)
    misses, joined = page["gateway_cache_misses_total"] - before, page["gateway_single_flight_joined_total"]
    assert 1 <= misses - joined <= 3  # A flight that landed before its answer was stored leaves a gap of 2 ms.


def test_settings_of_a_new_generation_are_taken_up_and_broken_ones_are_not(port: int, parts: Bench) -> None:
    changed = replace(SETTINGS, generation=2, cache=CacheSettings(enabled=False))
    settings.save(parts.layout.settings, changed)
    eventually(lambda: metrics(port)["gateway_settings_generation"] == 2, "generation 2 is in effect")
    assert [ask(port, "one two").json["cached"] for _ in range(3)] == [False] * 3
    parts.layout.settings.write_text("generation: 3\ncache: {enabled: maybe}\n", encoding="utf-8")

    def state() -> dict[str, Any]:
        return admin(parts.endpoints.admin_socket, "GET", "/state").json

    eventually(lambda: state()["settings_error"], "the error is shown")
    assert "settings.yaml:2" in state()["settings_error"]
    assert state()["generation"] == 2
    assert ask(port, "one two").json["generation"] == 2
    eventually(lambda: events(parts.layout)[-1]["event"] == "settings_refused", "the error is logged")


def test_a_cache_above_its_size_is_cut_back(port: int, parts: Bench) -> None:
    settings.save(parts.layout.settings, replace(SETTINGS, generation=2, cache=CacheSettings(max_entries=10)))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ask(port, f"question number {number}"), range(60)))
    with valkey.Valkey(unix_socket_path=parts.endpoints.valkey_socket) as client:
        eventually(lambda: 0 < int(client.dbsize()) <= 10, "at most ten entries are left")


def with_canary(canary: CanarySettings | None, generation: int) -> Settings:
    return replace(SETTINGS, generation=generation, canary=canary)


def test_a_canary_gets_its_share_outlives_a_kill_and_ends_with_its_section(parts: Bench) -> None:
    settings.save(parts.layout.settings, with_canary(CanarySettings(precision="fp32", share_ratio=0.3), 2))
    with gateway(parts) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(5)
    with gateway(parts):
        port = parts.endpoints.ports().gateway
        arms = [ask(port, "hello there", session=f"s{number}").json["arm"] for number in range(200)]
        assert 30 <= arms.count("canary") <= 90
        assert metrics(port)["gateway_canary_share_ratio"] == 0.3
        assert ask(port, "hello there", session="s7").json["arm"] == arms[7]
        settings.save(parts.layout.settings, with_canary(None, 3))
        eventually(lambda: metrics(port)["gateway_canary_share_ratio"] == 0, "the canary is over")


def test_sessions_of_a_version_that_is_not_loaded_are_answered_by_the_one_that_is_and_nothing_of_it_is_kept(
    parts: Bench,
) -> None:
    """As while versions are exchanged: no session fails, and no answer is kept under the name of another version."""
    settings.save(parts.layout.settings, with_canary(CanarySettings(precision="int8", share_ratio=0.5), 2))
    with gateway(parts):
        port = parts.endpoints.ports().gateway

        def answered() -> set[tuple[int, str, bool]]:
            replies = [ask(port, f"question {one}", session=f"s{one}") for one in range(20)]
            return {(reply.status, reply.json["arm"], reply.json["cached"]) for reply in replies}

        assert answered() == {(200, "stable", False), (200, "canary", False)}
        eventually(lambda: answered() == {(200, "stable", True), (200, "canary", False)}, "only its own are kept")


def test_entries_of_a_run_can_be_put_listed_and_taken_back_but_not_those_of_others(port: int, parts: Bench) -> None:
    path = parts.endpoints.admin_socket
    key = "/cache/faq:fp32-1:how%20much%20is%20delivery%3F"
    entry = {"answer_index": 3, "score": 0.5, "run": "run-1"}
    assert admin(path, "PUT", key, entry).json["before"] is None
    assert ask(port, "How much is delivery?").json["cached"] is True
    assert [one["key"] for one in admin(path, "GET", "/cache?run=run-1").json["entries"]] == [
        "faq:fp32-1:how much is delivery?"
    ]
    assert admin(path, "GET", "/cache?run=run-2").json["entries"] == []
    assert admin(path, "DELETE", f"{key}?run=run-2").json == {"deleted": False}
    assert admin(path, "GET", key).json["entry"]["run"] == "run-1"
    assert admin(path, "DELETE", f"{key}?run=run-1").json == {"deleted": True}
    assert admin(path, "GET", key).status == 404
    with valkey.Valkey(unix_socket_path=path.replace("admin", "valkey")) as client:
        client.set("faq:fp32-1:plain", b'{"answer_index": 1, "score": 0.5}')
    assert admin(path, "DELETE", "/cache/faq:fp32-1:plain?run=run-1").json == {"deleted": False}


@pytest.mark.parametrize(
    ("method", "path", "values"),
    [
        ("PUT", "/cache/other:key", {"answer_index": 1, "score": 0.5, "run": "r"}),
        ("PUT", "/cache/faq:x", {"answer_index": 1, "score": 0.5}),
        ("PUT", "/cache/faq:x", {"answer_index": -1, "score": 0.5, "run": "r"}),
        ("PUT", "/cache/faq:x", {"answer_index": 1, "score": "high", "run": "r"}),
        ("PUT", "/cache/faq:x", {"answer_index": 1, "score": 0.5, "run": "r", "ttl_s": 0}),
        ("PUT", "/cache/faq:x", {"answer_index": 1, "score": 0.5, "run": "r", "more": 1}),
        ("PUT", "/cache/faq:x", b"{"),
        ("PUT", "/cache/faq:x", b"\xff"),
        ("PUT", "/cache/faq:x", b"x" * 70_000),
        ("DELETE", "/cache/faq:x", None),
        ("GET", "/cache", None),
        ("POST", "/render", b"\xff"),
        ("POST", "/render", b"generation: [1]"),
    ],
)
def test_wrong_admin_requests_change_nothing(port: int, parts: Bench, method: str, path: str, values: object) -> None:
    reply = admin(parts.endpoints.admin_socket, method, path, values)
    assert reply.status == 400
    assert reply.json.get("error") or reply.json.get("errors")
    with valkey.Valkey(unix_socket_path=parts.endpoints.valkey_socket) as client:
        assert int(client.dbsize()) == 0


def test_settings_are_rendered_and_not_applied(port: int, parts: Bench) -> None:
    text = settings.dump(replace(SETTINGS, generation=5)).encode()
    reply = admin(parts.endpoints.admin_socket, "POST", "/render", text)
    assert 'name: "faq-encoder"' in reply.json["config_pbtxt"]
    assert metrics(port)["gateway_settings_generation"] == 1


def test_without_a_cache_server_answers_still_come_and_the_failure_is_told_once_a_second(
    parts: Bench, tmp_path: Path
) -> None:
    with elsewhere(parts, tmp_path, valkey_socket=str(tmp_path / "none.sock")) as (layout, port):
        replies = [ask(port, f"question {number}") for number in range(30)]
        assert {reply.status for reply in replies} == {200}
        assert metrics(port)["gateway_cache_errors_total"] >= 1
        assert admin(str(layout.run / "a.sock"), "GET", "/state").json["cache_entries"] is None
        assert admin(str(layout.run / "a.sock"), "GET", "/cache?run=r").status == 503
        told = [one for one in events(layout) if one["event"] == "cache_error"]
        assert 1 <= len(told) <= 4


def test_a_cache_server_that_hangs_costs_one_time_out_and_not_one_a_request(parts: Bench, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(tmp_path / "v.sock"))
        silent.listen(64)
        with elsewhere(parts, tmp_path, valkey_socket=str(tmp_path / "v.sock")) as (_, port):
            start_s = time.monotonic()
            assert {ask(port, f"question {number}").status for number in range(120)} == {200}
            assert time.monotonic() - start_s < 8  # 120 time-outs of 0.1 s would take twelve.


def test_without_triton_requests_are_turned_away_and_ready_says_no(parts: Bench, tmp_path: Path) -> None:
    with elsewhere(parts, tmp_path, triton_grpc="127.0.0.1:9") as (_, port):
        refused = ask(port, "is anybody there")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert call(port, "GET", "/ready").status == 503
        assert call(port, "GET", "/health").status == 200


def test_a_triton_that_hangs_ends_in_504_at_the_deadline(parts: Bench, tmp_path: Path) -> None:
    late = replace(SETTINGS, inference=replace(SETTINGS.inference, deadline_ms=300))
    with silent_server() as endpoint, elsewhere(parts, tmp_path, late, triton_grpc=endpoint) as (layout, port):
        start_s = time.monotonic()
        reply = ask(port, "is anybody there", priority="vip")
        assert reply.status == 504
        assert 0.25 < time.monotonic() - start_s < 4  # The default is five.
        line = next(one for one in events(layout) if one["event"] == "inference_timeout")
        assert (line["level"], line["deadline_ms"]) == ("CRITICAL", 300)


def test_sigterm_lets_a_request_in_flight_finish(parts: Bench, tmp_path: Path) -> None:
    slow = replace(SETTINGS, inference=replace(SETTINGS.inference, deadline_ms=900))
    with silent_server() as endpoint, elsewhere(parts, tmp_path, slow, triton_grpc=endpoint) as (layout, port):
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(ask, port, "is anybody there")
            eventually(lambda: metrics(port)["gateway_inflight_requests"] == 1, "the question is in flight")
            gateway_pid = next(one["pid"] for one in events(layout) if one["event"] == "started")
            os.kill(int(str(gateway_pid)), signal.SIGTERM)
            assert reply.result(5).status == 504
        eventually(lambda: events(layout)[-1]["event"] == "stopped", "the process has ended")
        with pytest.raises(ConnectionRefusedError):
            ask(port, "too late")


def test_sigterm_ends_an_idle_gateway_at_once_with_0(parts: Bench) -> None:
    with gateway(parts) as process:
        assert ask(parts.endpoints.ports().gateway, "hello there").status == 200
        start_s = time.monotonic()
        process.terminate()
        assert process.wait(5) == 0
        assert time.monotonic() - start_s < 3
    assert events(parts.layout)[-1]["event"] == "stopped"


def test_a_port_that_is_taken_ends_the_start_with_one_line(port: int, parts: Bench, tmp_path: Path) -> None:
    layout = locate(tmp_path / "s")
    layout.create()
    addresses.save(layout.endpoints, replace(parts.endpoints, admin_socket=str(tmp_path / "a.sock")))
    settings.save(layout.settings, SETTINGS)
    command = [sys.executable, "-m", "latencydoctor.stack.gateway", "--state", str(layout.state)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, env=os.environ)
    line = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr, line["event"]) == (1, "", "start_failed")
    assert str(port) in line["message"]


def test_more_than_the_cap_at_once_gets_503(parts: Bench, tmp_path: Path) -> None:
    layout = locate(tmp_path / "s")
    layout.create()
    free = addresses.free_ports().gateway
    found = replace(parts.endpoints, admin_socket=str(tmp_path / "a.sock"), triton_grpc="127.0.0.1:9")
    addresses.save(layout.endpoints, found)
    settings.save(layout.settings, SETTINGS)
    command = [sys.executable, "-m", "latencydoctor.stack.gateway", "--state", str(layout.state)]
    with child([*command, "--port", str(free), "--max-inflight", "0"], layout.log("gateway")):
        wait_for(f"http://127.0.0.1:{free}/health", layout.log("gateway"))
        refused = ask(free, "one too many")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert events(layout)[-1]["event"] == "overload"


def test_more_connections_than_the_usual_limit_of_files_are_served(parts: Bench) -> None:
    low, high = resource.getrlimit(resource.RLIMIT_NOFILE)
    if high < 3000:
        pytest.skip("this machine allows fewer than 3000 files to a process")
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (low, high))
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, high))  # The gateway starts with the usual limit.
        stack.enter_context(gateway(parts))
        resource.setrlimit(resource.RLIMIT_NOFILE, (3000, high))
        port = parts.endpoints.ports().gateway
        for _ in range(1200):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        assert ask(port, "is there room for one more").status == 200


def test_settings_that_are_missing_end_the_start_with_one_line(parts: Bench, tmp_path: Path) -> None:
    layout = locate(tmp_path / "s")
    layout.create()
    found = replace(parts.endpoints, admin_socket=str(tmp_path / "a.sock"))
    addresses.save(layout.endpoints, found)
    command = [sys.executable, "-m", "latencydoctor.stack.gateway", "--state", str(layout.state), "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, env=os.environ)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "settings.yaml" in json.loads(ended.stdout)["message"]
