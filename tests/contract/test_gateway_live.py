"""The gateway in the whole stack: the real encoder's answers, and surfaces that others read."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.faq_entries import FAQ_FILE
from latencydoctor.stack.layout import Layout
from tests.contract.gateway_client import admin, ask, call, eventually, metrics

pytestmark = pytest.mark.stack


@pytest.fixture
def port(live_stack: Endpoints) -> int:
    return live_stack.ports().gateway


def entries() -> list[dict[str, object]]:
    topics = yaml.load(Path(FAQ_FILE).read_text(encoding="utf-8"), yaml.CSafeLoader)["topics"]
    return [entry for topic in topics for entry in topic["entries"]]


def test_a_question_of_the_index_gets_its_own_answer_whatever_its_spelling(port: int) -> None:
    for entry in entries()[::40]:
        reply = ask(port, f"  {str(entry['question']).upper()} ")
        assert (reply.json["answer_id"], reply.json["answer"]) == (entry["id"], entry["answer"])
        assert reply.json["score"] == pytest.approx(1.0, abs=0.01)
        assert reply.json["accelerator"] == "sim:small"


def test_an_order_number_changes_the_entry_of_the_cache_and_not_the_answer(port: int) -> None:
    first, second = (ask(port, f"How do I cancel my order? (order {number})") for number in (48213, 48214))
    assert first.json["answer_id"] == second.json["answer_id"]
    assert first.json["score"] == second.json["score"]
    assert second.json["cached"] is False


def test_the_stages_of_an_answer_add_up_to_no_more_than_its_total(port: int) -> None:
    stages = ask(port, "How long do the stages of an answer take? (order 1)").json["stages_ms"]
    assert stages["inference"] > 20  # The simulated device's own time for a batch of one.
    assert stages["cache"] + stages["preprocess"] + stages["inference"] <= stages["total"] + 0.01


def test_a_bad_request_over_the_wire_leaves_the_connection_usable(port: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("POST", "/v1/answer", b"{")
        refused = connection.getresponse()
        assert (refused.status, "not JSON" in refused.read().decode()) == (400, True)
        wire = connection.sock
        connection.request("POST", "/v1/answer", json.dumps({"question": "How do I cancel my order?"}).encode())
        answered = connection.getresponse()
        assert (answered.status, "answer_id" in json.loads(answered.read())) == (200, True)
        assert connection.sock is wire  # A client that has to connect again would get a new one.


def test_a_body_beyond_the_limit_is_refused_and_the_connection_closed(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"POST /v1/answer HTTP/1.1\r\nhost: x\r\ncontent-length: 900000\r\n\r\n" + b"x" * 20_000)
        answer = connection.makefile("rb").read()  # Until the other side closes; a single recv may end anywhere.
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"larger than" in answer


def test_the_page_counts_what_was_asked(port: int) -> None:
    name = 'gateway_requests_total{status="200",priority="vip",arm="stable",cached="false"}'
    before = metrics(port)[name]
    ask(port, "Is this counted? (order 77)", priority="vip")
    eventually(lambda: metrics(port)[name] == before + 1, "the request is counted")


def test_ready_and_state_tell_what_is_in_effect(port: int, live_stack: Endpoints) -> None:
    assert call(port, "GET", "/ready").status == 200
    state = admin(live_stack.admin_socket, "GET", "/state").json
    assert (state["accelerator"], state["simulated"], state["settings_error"]) == ("sim:small", True, "")
    assert state["key_prefixes"]["stable"] == "faq:fp32-1:"


def test_the_log_is_json_throughout(port: int, live_layout: Layout) -> None:
    ask(port, "\u0001\u0002")
    eventually(lambda: "data_preprocess_fail" in live_layout.log("gateway").read_text(encoding="utf-8"), "it is logged")
    lines = [json.loads(line) for line in live_layout.log("gateway").read_text(encoding="utf-8").splitlines()]
    assert all({"time", "level", "event", "message"} <= line.keys() for line in lines)
