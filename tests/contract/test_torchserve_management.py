"""TorchServe's management API: its recorded answers replayed, and servers that answer oddly."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from latencydoctor.cli import probing
from latencydoctor.cli.sources_wiring import DiagnoseRequest
from latencydoctor.model.configuration import Credentials, TorchServeSource
from latencydoctor.model.evidence import GapReason, Selection
from latencydoctor.model.readings import Readings
from latencydoctor.sources.torchserve_description import SIGNALS
from latencydoctor.sources.torchserve_management import TorchServeManagement
from tests.contract.authority import found_company
from tests.contract.strangers import Answer, Asked, drip, drip_head, endless, stranger
from tests.contract.torchserve_replay import PAGES, RECORDED, TINY, only_gaps, proof, replay, say, values

KEY = "aadJv_R6"
NO_CREDENTIALS = Credentials()
NEVER = {"config_preferred_batch_size", "executed_batch_size_p50"}


def read(
    answer: Answer, model: str = "", credentials: Credentials = NO_CREDENTIALS, deadline_s: float = 3.0
) -> Readings:
    with stranger(answer) as server:
        return TorchServeManagement(TorchServeSource(server.url, credentials), deadline_s).read(Selection(model))


@pytest.mark.parametrize(
    ("situation", "changed"),
    [
        ("idle", {}),
        ("overloaded", {"requests_waiting": 8}),
        ("worker_lost", {"instances_ready": 1}),
        ("two_versions", {}),
    ],
)
@pytest.mark.parametrize("model", ["", "tiny"])
def test_the_recorded_answers_are_read(situation: str, changed: dict[str, float], model: str) -> None:
    readings = read(replay(situation), model)
    assert values(readings) == TINY | changed
    assert {gap.signal: gap.reason for gap in readings.gaps} == dict.fromkeys(NEVER, GapReason.NOT_SUPPORTED)
    asked = [record.query for record in readings.queries]
    assert asked == ([] if model else ["GET /models"]) + ["GET /models/tiny"]
    assert "default version 1.0" in proof(readings, "config_max_batch_size")


@pytest.mark.parametrize(("name", "waiting"), [("describe-idle", 0), ("describe-load", 8)])
def test_the_answers_recorded_beside_the_metrics_page_are_read(name: str, waiting: int) -> None:
    body = (PAGES / "torchserve" / "torchserve-0.12.0" / f"{name}.json").read_bytes()
    readings = read(lambda asked: asked.reply(body), "tiny")
    assert values(readings) == TINY | {
        "config_instance_count": 1,
        "instances_ready": 1,
        "requests_waiting": waiting,
    }


def test_the_states_of_workers_that_are_not_ready_are_named() -> None:
    assert "1 READY, 1 UNLOADING" in proof(read(replay("worker_lost"), "tiny"), "instances_ready")


def test_of_several_models_none_is_guessed() -> None:
    reason, detail, needs = only_gaps(read(replay("idle", "two_models")))
    assert (reason, needs) == (GapReason.NOT_CONFIGURED, "--model")
    assert detail.endswith(": other, tiny")


def test_a_model_that_is_not_there_names_those_that_are() -> None:
    reason, detail, _ = only_gaps(read(replay("idle", "two_models"), "ranker"))
    assert reason is GapReason.BAD_ANSWER
    assert detail == "it has no model 'ranker'; registered are: other, tiny"


def test_a_server_without_models_says_so() -> None:
    def empty(asked: Asked) -> None:
        asked.reply(b'{"models": []}')

    assert only_gaps(read(empty))[1] == "no model is registered"


def test_a_page_of_names_is_not_all_of_them() -> None:
    def paged(asked: Asked) -> None:
        asked.reply(b'{"nextPageToken": "1", "models": [{"modelName": "a", "modelUrl": "a.mar"}]}')

    reason, detail, _ = only_gaps(read(paged))
    assert reason is GapReason.NOT_CONFIGURED
    assert detail.endswith(": a, …")


def test_a_name_cannot_reach_another_path() -> None:
    with stranger(replay("idle")) as server:
        readings = TorchServeManagement(TorchServeSource(server.url)).read(Selection("../x?y#z\n"))
        assert server.asked[0].path == "/models/..%2Fx%3Fy%23z%0A"
    assert only_gaps(readings)[0] is GapReason.BAD_ANSWER


@pytest.mark.parametrize("text", [f'{{"management": {{"key": "{KEY}"}}}}', f"{KEY}\n"], ids=["key_file.json", "bare"])
def test_the_token_is_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "key_file.json"
    file.write_text(text)
    readings = read(replay("idle", token=KEY), "", Credentials(bearer_file=str(file)))
    assert values(readings) == TINY
    assert KEY not in repr(readings)


def test_a_wrong_token_is_refused_and_what_to_do_is_said(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("another")
    for credentials in (Credentials(), Credentials(bearer_file=str(file))):
        reason, detail, needs = only_gaps(read(replay("idle", token=KEY), "", credentials))
        assert reason is GapReason.BAD_ANSWER
        assert "Token Authorization failed" in detail
        assert "bearer_file" in needs


@pytest.mark.parametrize(("port", "needs"), [("inference_port", "port 8081"), ("metrics_port", "port 8081")])
@pytest.mark.parametrize("model", ["", "tiny"])
def test_another_port_of_torchserve_is_no_management_api(port: str, needs: str, model: str) -> None:
    assert needs in only_gaps(read(lambda asked: say(asked, RECORDED[port]), model))[2]


def test_the_token_does_not_follow_to_another_host(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(KEY)
    with stranger(replay("idle")) as other:

        def move(asked: Asked) -> None:
            asked.reply(b"", "302 Found", Location=other.url + asked.path)

        reason, detail, _ = only_gaps(read(move, "tiny", Credentials(bearer_file=str(file))))
        assert other.asked == []
    assert (reason, "redirected" in detail) == (GapReason.BAD_ANSWER, True)


def test_tls_wants_the_ca_it_is_told_of_and_shows_a_certificate(tmp_path: Path) -> None:
    company = found_company(tmp_path)
    ca, mine = company.path("ca.pem"), (company.path("client.pem"), company.path("client.key"))
    with stranger(replay("idle"), company.server(asks_back=True)) as server:

        def reading(ca_file: str, cert_file: str = "", key_file: str = "") -> Readings:
            source = TorchServeSource(server.url, ca_file=ca_file, cert_file=cert_file, key_file=key_file)
            return TorchServeManagement(source).read(Selection("tiny"))

        assert values(reading(ca, *mine)) == TINY
        assert "ca_file" in only_gaps(reading("", *mine))[2]
        assert only_gaps(reading(ca))[0] is GapReason.BAD_ANSWER


def silent(asked: Asked) -> None:
    del asked
    time.sleep(3)


def short(asked: Asked) -> None:
    """Less than its head promises."""
    asked.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n[")


def body(text: str, status: str = "200 OK", kind: str = "application/json") -> Answer:
    return lambda asked: asked.reply(text.encode(), status, kind)


HOSTILE: dict[str, tuple[Answer, GapReason, str]] = {
    "HTML": (body("<html>Sign in</html>", kind="text/html"), GapReason.BAD_ANSWER, "not JSON"),
    "empty": (body(""), GapReason.BAD_ANSWER, "empty answer"),
    "401": (body("", "401 Unauthorized"), GapReason.BAD_ANSWER, "credentials refused"),
    "500": (body('{"code": 500, "message": "[red]\\u001b[31m no"}', "500 No"), GapReason.UNREACHABLE, "HTTP 500"),
    "cut off": (body(RECORDED["idle"]["body"][:200]), GapReason.BAD_ANSWER, "cut off or broken"),
    "deep": (body("[" * 100_000), GapReason.BAD_ANSWER, "cut off or broken"),
    "another's JSON": (body('{"status": "success", "data": []}'), GapReason.BAD_ANSWER, "not TorchServe's"),
    "names that are none": (body('{"models": [{"modelName": 3}]}'), GapReason.BAD_ANSWER, "not TorchServe's"),
    "endless": (endless, GapReason.BAD_ANSWER, "too large"),
    "short": (short, GapReason.BAD_ANSWER, "broke off"),
    "drip": (drip, GapReason.DEADLINE, "in time"),
    "drip of a head": (drip_head, GapReason.DEADLINE, "in time"),
    "silent": (silent, GapReason.DEADLINE, "in time"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("model", ["", "tiny"])
def test_an_odd_server_costs_the_facts_and_nothing_else(name: str, model: str) -> None:
    answer, expected, words = HOSTILE[name]
    started_s = time.monotonic()
    reason, detail, needs = only_gaps(read(answer, model, deadline_s=0.6))
    assert time.monotonic() - started_s < 2
    assert reason is expected
    assert words in detail
    assert detail.isprintable()
    assert needs or reason is GapReason.DEADLINE


def test_wrong_types_cost_only_their_own_facts() -> None:
    (told,) = json.loads(RECORDED["idle"]["body"])
    told |= {"batchSize": "4", "maxBatchDelay": None, "workers": [None], "jobQueueStatus": []}
    readings = read(body(json.dumps([told])), "tiny")
    assert values(readings) == {"config_instance_count": 2}
    assert {gap.signal for gap in readings.gaps} == set(SIGNALS) - {"config_instance_count"}


@pytest.mark.parametrize("model", ["", "tiny"])
def test_a_closed_port_is_unreachable_at_once(model: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        source = TorchServeSource(f"http://127.0.0.1:{taken.getsockname()[1]}")
        reason, detail, needs = only_gaps(TorchServeManagement(source).read(Selection(model)))
    assert reason is GapReason.UNREACHABLE
    assert "refused" in detail
    assert "--torchserve" in needs


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".example", ".example"])
def test_a_name_that_is_none_is_a_gap(host: str) -> None:
    source = TorchServeSource(f"http://{host}:8081")
    assert "management" in only_gaps(TorchServeManagement(source, 1.0).read(Selection("")))[1]


def test_config_check_tells_wrong_from_unreachable(tmp_path: Path) -> None:
    file = tmp_path / "latencydoctor.yaml"
    key = tmp_path / "key_file.json"
    key.write_text(json.dumps({"management": {"key": KEY}}))

    def probed(more: str = "bearer_file: key_file.json", flag: str = "") -> tuple[str, str]:
        told = f'management: "{server.url}", {more}'
        file.write_text(f"sources: {{nvml: false, torchserve: {{{told}}}}}\n")
        (source,) = probing.probe(DiagnoseRequest(config=file, torchserve=flag)).sources
        assert KEY not in repr(source)
        return source.name, source.state

    with stranger(replay("idle", token=KEY)) as server:
        assert probed() == ("torchserve", "ok")
        # The flag names the very server of the file: its token is meant for it.
        assert probed(flag=server.url) == ("torchserve", "ok")
        assert probed("bearer_env: ABSENT_TOKEN") == ("torchserve", "wrong")
        assert probed("ca_file: ''") == ("torchserve", "wrong")
        with stranger(replay("idle")) as other:
            assert probed(flag=other.url) == ("torchserve", "ok")
            assert all(not asked.header("authorization") for asked in other.asked)
    assert probed() == ("torchserve", "unreachable")
