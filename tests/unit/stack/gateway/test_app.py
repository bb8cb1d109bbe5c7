import asyncio
import json
from dataclasses import replace

import grpc
import pytest

from latencydoctor.stack.gateway.asked import MAX_BODY_BYTES
from latencydoctor.stack.gateway.inference import InferenceError, failure_of
from latencydoctor.stack.settings import InferenceSettings, Settings
from tests.unit.stack.gateway.parts import Bench, Reply


def call(method: str, path: str, *chunks: bytes, disconnect: bool = False) -> Reply:
    return asyncio.run(Bench().call(method, path, *chunks, disconnect=disconnect))


async def told_apart(tasks: list[asyncio.Task[Reply]]) -> tuple[list[asyncio.Task[Reply]], list[asyncio.Task[Reply]]]:
    """Those that are done, and those that wait: after turns of the loop, which a busy machine cannot cut short."""
    for _ in range(200):
        await asyncio.sleep(0)
    return [task for task in tasks if task.done()], [task for task in tasks if not task.done()]


def test_health_says_which_settings_are_in_effect() -> None:
    assert call("GET", "/health").json == {"status": "ok", "generation": 1}


def test_metrics_is_a_text_page() -> None:
    reply = call("GET", "/metrics")
    assert reply.headers[b"content-type"].startswith(b"text/plain; version=0.0.4")
    assert b"gateway_requests_total" in reply.body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/answer", 405), ("POST", "/health", 405), ("GET", "/", 404), ("DELETE", "/v1/answer", 405)],
)
def test_other_pages_and_methods_are_refused_with_a_hint(method: str, path: str, status: int) -> None:
    reply = call(method, path)
    assert reply.status == status
    assert reply.json["hint"]
    assert (b"allow" in reply.headers) == (status == 405)


def test_a_body_in_pieces_is_put_together() -> None:
    assert call("POST", "/v1/answer", b'{"question": ', b'"a b"', b"}").status == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_complete() -> None:
    reply = call("POST", "/v1/answer", *[b"x" * 4096] * 1000)
    assert reply.status == 400
    assert reply.headers[b"connection"] == b"close"
    assert call("POST", "/v1/answer", b"x" * (MAX_BODY_BYTES + 1)).status == 400


def test_a_client_that_is_gone_is_a_bad_request() -> None:
    async def scene() -> None:
        bench = Bench()
        assert (await bench.call("POST", "/v1/answer", b'{"quest', disconnect=True)).status == 400
        assert bench.app.inflight == 0

    asyncio.run(scene())


def test_a_bad_request_is_counted_and_has_no_duration() -> None:
    async def scene() -> None:
        bench = Bench()
        reply = await bench.call("POST", "/v1/answer", b"{")
        assert reply.status == 400
        assert set(reply.json) == {"error", "hint"}
        line = 'gateway_requests_total{status="400",priority="standard",arm="stable",cached="false"} 1'
        assert line in bench.page
        assert 'gateway_request_duration_seconds_count{arm="stable",priority="standard"} 0' in bench.page

    asyncio.run(scene())


def test_a_request_past_its_deadline_is_told_so_counted_and_logged() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.deadline(20)
        bench.model.gate = asyncio.Event()
        reply = await bench.ask("a b", priority="vip")
        assert reply.status == 504
        assert "20 ms" in reply.json["error"]
        assert bench.logged[0]["event"] == "inference_timeout"
        assert bench.logged[0]["level"] == "CRITICAL"
        assert bench.logged[0]["deadline_ms"] == 20
        assert bench.logged[0]["elapsed_ms"] >= 20
        assert 'gateway_requests_total{status="504",priority="vip",arm="stable",cached="false"} 1' in bench.page
        assert 'gateway_request_duration_seconds_count{arm="stable",priority="vip"} 1' in bench.page
        bench.model.gate.set()

    asyncio.run(scene())


def test_a_deadline_that_passed_in_triton_is_the_same_to_the_client() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.deadline(15)
        bench.model.error = InferenceError("inference_timeout", 504, "late")
        assert (await bench.ask("a b")).status == 504
        assert {line["event"] for line in bench.logged} == {"inference_timeout"}

    asyncio.run(scene())


def test_a_body_that_does_not_arrive_is_a_bad_request_and_holds_no_place() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.deadline(20)

        async def receive() -> dict[str, object]:
            await asyncio.Event().wait()
            return {}

        sent: list[dict[str, object]] = []

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        await bench.app({"type": "http", "method": "POST", "path": "/v1/answer"}, receive, send)
        assert sent[0]["status"] == 400
        assert bench.app.inflight == 0

    asyncio.run(scene())


def test_more_than_the_cap_at_once_is_turned_away_at_once() -> None:
    async def scene() -> None:
        bench = Bench(max_inflight=2)
        bench.model.gate = asyncio.Event()
        tasks = [asyncio.create_task(bench.ask(f"a {number}")) for number in range(5)]
        done, waiting = await told_apart(tasks)
        assert sorted(task.result().status for task in done) == [503] * 3
        assert all(task.result().headers[b"retry-after"] == b"1" for task in done)
        bench.model.gate.set()
        assert [(await task).status for task in waiting] == [200, 200]
        assert bench.app.inflight == 0
        assert bench.logged[0]["event"] == "overload"

    asyncio.run(scene())


def test_vip_is_let_in_where_standard_is_turned_away() -> None:
    async def scene() -> None:
        bench = Bench(max_inflight=2)
        bench.model.gate = asyncio.Event()
        tasks = [asyncio.create_task(bench.ask(f"a {name}", priority="vip")) for name in ("b", "c", "d", "e")]
        done, waiting = await told_apart(tasks)
        assert [task.result().status for task in done] == [503]
        assert (await bench.ask("a b")).status == 503
        bench.model.gate.set()
        assert [(await task).status for task in waiting] == [200] * 3
        assert 'gateway_shed_total{priority="standard",reason="overload"} 2' in bench.page
        assert 'gateway_arrived_total{priority="vip"} 3' in bench.page

    asyncio.run(scene())


def levels(bench: Bench) -> None:
    bench.settings = replace(bench.settings, inference=InferenceSettings(priority_levels=True))


def test_what_triton_rejects_is_a_clear_503_that_says_when_to_come_back() -> None:
    async def scene() -> None:
        bench = Bench()
        levels(bench)
        await bench.ask("a b")
        bench.model.error = failure_of(grpc.StatusCode.UNAVAILABLE, "Request timeout expired")
        replies = [await bench.ask(f"a {number} x") for number in range(40)]
        assert {one.status for one in replies} == {503}
        # One was answered of late, and each that is turned away will come back.
        told = [int(one.headers[b"retry-after"]) for one in replies]
        assert told == sorted(told)
        assert told[0] <= 3
        assert told[-1] >= 15
        assert replies[0].json == {
            "error": "standard request turned away: it waited in the queue for as long as its priority may",
            "hint": "Come back after the time in Retry-After.",
        }
        assert 'gateway_shed_total{priority="standard",reason="queue_timeout"} 40' in bench.page
        assert 'gateway_request_duration_seconds_count{arm="stable",priority="standard"} 41' in bench.page
        assert [(one["level"], one["event"], one["count"]) for one in bench.logged] == [("WARNING", "standard_shed", 1)]

    asyncio.run(scene())


def test_what_would_only_wait_for_its_deadline_is_turned_away_at_once_and_vip_is_not() -> None:
    async def scene() -> None:
        bench = Bench()
        levels(bench)
        line = bench.answerer.lines.standard
        for _ in range(10):
            line.enter()
            line.leave(4.0, answered=True)
        line.waiting = 1000
        refused = await bench.ask("a b")
        assert (refused.status, int(refused.headers[b"retry-after"])) == (503, 30)
        assert "until its deadline had passed" in refused.json["error"]
        assert 'gateway_request_duration_seconds_count{arm="stable",priority="standard"} 0' in bench.page
        assert (await bench.ask("a c", priority="vip")).status == 200
        bench.settings = Settings()
        assert (await bench.ask("a b")).status == 200, "without levels nobody is turned away for others"

    asyncio.run(scene())


def test_a_cancelled_request_holds_no_place_and_spoils_nothing() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.model.gate = asyncio.Event()
        first = asyncio.create_task(bench.ask("a b"))
        second = asyncio.create_task(bench.ask("a b"))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0)
        bench.model.gate.set()
        assert (await second).status == 200
        assert len(bench.model.calls) == 1
        assert bench.app.inflight == 0

    asyncio.run(scene())


def test_ready_makes_a_real_inference_and_its_result_holds_for_a_while() -> None:
    async def scene() -> None:
        bench = Bench()
        assert (await bench.call("GET", "/ready")).json == {"status": "ready"}
        bench.model.error = InferenceError("inference_failed", 500, "stub is dead")
        assert (await bench.call("GET", "/ready")).status == 200
        assert len(bench.model.calls) == 1
        assert not bench.store.values

    asyncio.run(scene())


def test_not_ready_says_why() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.model.error = InferenceError("inference_failed", 500, "stub is dead")
        reply = await bench.call("GET", "/ready")
        assert reply.status == 503
        assert "inference_failed" in reply.json["error"]

    asyncio.run(scene())


def test_a_model_that_hangs_is_not_ready() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.deadline(20)
        bench.model.gate = asyncio.Event()
        assert (await bench.call("GET", "/ready")).status == 503
        bench.model.gate.set()

    asyncio.run(scene())


def test_the_answer_says_its_length() -> None:
    reply = call("POST", "/v1/answer", json.dumps({"question": "a b"}).encode())
    assert int(reply.headers[b"content-length"]) == len(reply.body)
