"""The Prometheus source against servers that are down, wrong, slow or hostile: one clear message each, in time."""

from __future__ import annotations

import base64
import email.utils
import gzip
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from latencydoctor.app.collect import CollectRequest, Rules, Sources, collect
from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import CannotTell, LatencyDoctorError, SourceError
from latencydoctor.evidence.combine import MARK
from latencydoctor.model.configuration import Credentials, PrometheusSource, Tenant
from latencydoctor.model.evidence import GapReason, Selection, Window
from latencydoctor.model.readings import RangeQuery
from latencydoctor.sources.allowance import MOST_REQUESTS
from latencydoctor.sources.prometheus import PrometheusMetrics
from tests.contract.strangers import (
    Answer,
    Asked,
    drip,
    drip_head,
    endless,
    names_json,
    prometheus_json,
    stranger,
)

SIGNALS, DIALECTS = read_signals(locate())
SECRET = "s3cr3t-t0ken-value"
WINDOW = Window(1_800_000_000.0, 1_800_000_060.0)
QUERY = RangeQuery("x", "", "up", WINDOW, 20.0)


def at(index: int) -> float:
    """The moment of a point of that query."""
    return WINDOW.start_s + index * QUERY.step_s


def discover(url: str, deadline_s: float = 5.0, **more: object) -> LatencyDoctorError:
    """The error that discovery ends with."""
    metrics = PrometheusMetrics(PrometheusSource(url, **more), deadline_s)  # type: ignore[arg-type]  # test shorthand
    with pytest.raises(LatencyDoctorError) as caught:
        metrics.discover(DIALECTS, Selection(""), 1_800_000_000.0)
    return caught.value


def reply(body: bytes, status: str = "200 OK", kind: str = "application/json", **more: str) -> Answer:
    return lambda asked: asked.reply(body, status, kind, **more)


def cut_short(asked: Asked) -> None:
    asked.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{")


def cut_chunk(asked: Asked) -> None:
    asked.connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{"
    )


def silent(asked: Asked) -> None:
    del asked
    time.sleep(5)


def hang_up(asked: Asked) -> None:
    del asked


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (reply(b"", "401 Unauthorized"), SourceError, "credentials refused: HTTP 401"),
        (reply(b'{"error": "no\\u001b[31m access"}', "403 Forbidden"), SourceError, "credentials refused: HTTP 403"),
        (reply(b"nothing here", "404 Not Found", "text/plain"), SourceError, "not found: HTTP 404"),
        (reply(b"<html>hello</html>", kind="text/html"), SourceError, "not JSON: the server sent text/html"),
        (reply(b""), SourceError, "not JSON: the server sent an empty answer"),
        (reply(b'{"status": "ok"}'), SourceError, "the server sent JSON that is not Prometheus's"),
        (reply(b'{"data": {"a": 1}}'), SourceError, "the server sent JSON that is not Prometheus's"),
        (reply(b"[1, 2]"), SourceError, "the server sent JSON that is not Prometheus's"),
        (reply(b'{"status": "success", "data": ["a", '), CannotTell, "the JSON is cut off or broken"),
        (reply(b"[" * 100_000), CannotTell, "the JSON is"),
        (reply(b"oops", "500 Internal Server Error", "text/plain"), CannotTell, "answers with an error: HTTP 500"),
        (reply(b'{"error": "query\\u0007 engine"}', "503 Busy"), CannotTell, "HTTP 503: query engine"),
        (cut_short, CannotTell, "answer broke off"),
        (cut_chunk, CannotTell, "answer broke off"),
        (hang_up, CannotTell, "answer broke off"),
        (endless, CannotTell, "answer too large"),
        (reply(b"", "302 Found", location="http://192.0.2.1/login"), SourceError, "to another host (192.0.2.1)"),
        (reply(b"", "302 Found", location="/again"), SourceError, "redirected: more than 3 times in a row"),
        (reply(b"", "302 Found", location="http://127.0.0.1:999999/"), SourceError, "to what is no address"),
        (reply(b"", "302 Found", location="http://[::1/"), SourceError, "to what is no address"),
        (reply(b'{"data": [' + b"9" * 5000 + b"]}"), CannotTell, "the JSON is cut off or broken"),
        (reply(b'{"data": \xff}', kind="application/json; charset=undefined"), CannotTell, "the JSON is cut off"),
        (reply(b'{"error": ' + b"9" * 5000 + b"}", "500 Oops"), CannotTell, "answers with an error: HTTP 500"),
    ],
)
def test_what_is_no_working_prometheus_is_told_apart(
    answer: Answer, kind: type[LatencyDoctorError], message: str
) -> None:
    with stranger(answer) as server:
        started_s = time.monotonic()
        error = discover(server.url)
        assert time.monotonic() - started_s < 3
    assert isinstance(error, kind)
    assert message in error.message
    assert error.message.isprintable()
    assert error.hint


def test_a_closed_port_fails_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        started_s = time.monotonic()
        error = discover(f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert time.monotonic() - started_s < 1
    assert isinstance(error, CannotTell)
    assert error.message == "Prometheus does not answer: connection refused"


def test_an_unknown_host_is_said_to_be_unknown() -> None:
    error = discover("http://no-such-host.invalid:9090", 5.0)
    assert isinstance(error, CannotTell)
    assert "host name not found" in error.message


@pytest.mark.parametrize("host", [".example", "%zz", "*", "a..b", "x" * 70 + ".example"])
def test_what_cannot_be_a_host_is_said_to_be_unknown(host: str) -> None:
    error = discover(f"http://{host}:9090", 5.0)
    assert isinstance(error, CannotTell)
    assert "host name not found" in error.message


def test_plain_http_where_tls_was_asked_for() -> None:
    with stranger(reply(b"{}")) as server:
        error = discover(server.url.replace("http://", "https://"))
    assert isinstance(error, SourceError)
    assert "TLS failed" in error.message


@pytest.mark.parametrize("answer", [drip, drip_head, silent])
def test_a_slow_answer_ends_at_the_deadline(answer: Callable[[Asked], None]) -> None:
    with stranger(answer) as server:
        metrics = PrometheusMetrics(PrometheusSource(server.url), 0.6)
        started_s = time.monotonic()
        readings = metrics.collect([QUERY] * 10)
        assert time.monotonic() - started_s < 5
    assert {gap.reason for gap in readings.gaps} == {GapReason.DEADLINE}
    assert len(readings.gaps) == len(readings.queries) == 10


@pytest.mark.parametrize("answer", [drip, drip_head, silent])
def test_discovery_too_ends_at_the_deadline(answer: Callable[[Asked], None]) -> None:
    with stranger(answer) as server:
        started_s = time.monotonic()
        error = discover(server.url, 0.6)
        assert time.monotonic() - started_s < 5
    assert isinstance(error, CannotTell)
    assert "deadline passed" in error.message


def test_a_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * (64 * 1024 * 1024), 9)
    with stranger(reply(bomb, Content_Encoding="gzip")) as server:
        error = discover(server.url, 20.0)
    assert isinstance(error, CannotTell)
    assert "answer too large: more than 1 MiB" in error.message


def test_compressed_answers_and_a_path_prefix_work() -> None:
    body = gzip.compress(prometheus_json([{"metric": {}, "values": [[1_800_000_020, "1"]]}], "matrix"))
    with stranger(reply(body, Content_Encoding="gzip")) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url + "/team/prom/")).collect([QUERY])
        assert server.asked[0].path == "/team/prom/api/v1/query_range"
        assert (server.asked[0].form["query"], server.asked[0].form["start"]) == ("up", "1800000000.0")
    assert readings.series[0].values == (1.0,)


def test_a_redirect_on_the_same_host_is_followed() -> None:
    def answer(asked: Asked) -> None:
        if asked.path.startswith("/api"):
            asked.reply(b"", "307 Temporary Redirect", location="/moved" + asked.path)
        else:
            asked.reply(prometheus_json([{"metric": {}, "values": [[1_800_000_020, "2"]]}], "matrix"))

    with stranger(answer) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect([QUERY])
    assert readings.series[0].values == (2.0,)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ([], GapReason.NO_SERIES),
        ([{"metric": {}, "values": [[1, "NaN"], [2, "+Inf"]]}], GapReason.NOT_A_NUMBER),
        ([{"metric": {}, "values": [[1, "1e308"], [2, "-1e308"]]}], GapReason.NOT_A_NUMBER),
        ([{"metric": {}, "values": [[1, "1"]]}, {"metric": {"a": "b"}, "values": []}], GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [[float("nan"), "1"]]}], GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [[10**400, "1"]]}], GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [[-1e17, "1"], [1, "2"]]}], GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [[at(1), "1"], [at(1), "2"]]}], GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [[at(2), "1"], [at(1), "2"]]}], GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [[1, "one"]]}], GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [["1", "1"]]}], GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [[1]]}], GapReason.BAD_ANSWER),
        ([{"metric": [], "values": []}], GapReason.BAD_ANSWER),
        (["x"], GapReason.BAD_ANSWER),
        ({}, GapReason.BAD_ANSWER),
        ([{"metric": {}, "values": [[1, "1"]] * 13_000}], GapReason.BAD_ANSWER),
    ],
)
def test_strange_results_are_gaps(result: object, reason: GapReason) -> None:
    with stranger(reply(prometheus_json(result, "matrix"))) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect([QUERY])
    assert [gap.reason for gap in readings.gaps] == [reason]
    assert readings.series == ()


def test_nan_points_are_left_out_and_the_rest_kept() -> None:
    values = [[at(0), "NaN"], [at(1), "3.5"], [at(2), "-Inf"], [at(3), "4"]]
    with stranger(reply(prometheus_json([{"metric": {}, "values": values}], "matrix"))) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect([QUERY])
    assert readings.series[0].times_s == (at(1), at(3))
    assert readings.series[0].values == (3.5, 4.0)


def test_points_that_were_not_asked_for_are_left_out() -> None:
    values = [[at(-90_000_000), "9"], [at(0), "1"], [at(3), "4"], [at(4), "9"]]
    with stranger(reply(prometheus_json([{"metric": {}, "values": values}], "matrix"))) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect([QUERY])
    assert readings.series[0].values == (1.0, 4.0)


def test_a_range_that_a_front_end_moved_back_to_whole_steps_stands_for_the_moments_asked_for() -> None:
    values = [[at(index) - 7.5, str(index)] for index in range(4)]
    with stranger(reply(prometheus_json([{"metric": {}, "values": values}], "matrix"))) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect([QUERY])
    assert readings.series[0].times_s == (at(0), at(1), at(2), at(3))
    assert readings.series[0].values == (0.0, 1.0, 2.0, 3.0)


def test_discovery_that_fails_half_way_does_not_guess_a_service() -> None:
    def answer(asked: Asked) -> None:
        if "/label/" in asked.path:
            asked.reply(names_json("nv_inference_request_success"))
        else:
            asked.reply(b"", "500 Internal Server Error")

    with stranger(answer) as server:
        assert isinstance(discover(server.url), CannotTell)


def marked(query: str, expression: str, **labels: str) -> list[dict[str, object]]:
    """An element as the answer to the parts of a query that hold `expression`; nothing for the others."""
    parts = query.split("label_replace(\n")[1:]
    if not parts:
        return [{"metric": labels, "value": [at(0), "1"]}] if expression in query else []
    return [
        {"metric": {**labels, MARK: str(index)}, "value": [at(0), "1"]}
        for index, part in enumerate(parts)
        if expression in part
    ]


def test_an_unknown_cadence_is_a_gap_and_the_rest_goes_on() -> None:
    def answer(asked: Asked) -> None:
        if "/label/" in asked.path:
            asked.reply(names_json("nv_inference_request_success"))
        elif "quantile" in asked.form["query"]:
            asked.reply(b"", "500 Internal Server Error")
        else:
            asked.reply(prometheus_json(marked(asked.form["query"], "unless on ()", model="m")))

    with stranger(answer) as server:
        metrics = PrometheusMetrics(PrometheusSource(server.url))
        found = metrics.discover(DIALECTS, Selection(""), 1_800_000_000.0)
    assert [candidate.model for candidate in found.candidates] == ["m"]
    assert found.scrape_interval_s is None
    assert [gap.signal for gap in found.gaps] == ["scrape_interval"]


@pytest.mark.parametrize(("offset_s", "side"), [(0, ""), (-3600, "behind"), (600, "ahead of")])
def test_a_clock_that_differs_is_told(offset_s: int, side: str) -> None:
    def answer(asked: Asked) -> None:
        date = email.utils.formatdate(time.time() + offset_s, usegmt=True)
        asked.reply(names_json("nv_inference_count"), Date=date)

    few = Rules(tuple(item for item in DIALECTS if not item.model_label), SIGNALS)
    with stranger(answer) as server:
        sources = Sources(PrometheusMetrics(PrometheusSource(server.url)))
        found = collect(sources, few, CollectRequest(Selection(""), time.time()))
    details = [gap.detail for gap in found.gaps if gap.signal == "clock"]
    assert len(details) == bool(side)
    for detail in details:
        told = re.fullmatch(r"the metrics source's clock is (\d+) s (behind|ahead of) this one's", detail)
        assert told is not None
        # The header has whole seconds, and the request took a moment.
        assert int(told[1]) == pytest.approx(abs(offset_s), abs=3)
        assert told[2] == side


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 99 Nov 9999 99:99:99 GMT"])
def test_a_clock_that_does_not_say_is_not_doubted(date: str) -> None:
    with stranger(reply(names_json(), Date=date)) as server:
        metrics = PrometheusMetrics(PrometheusSource(server.url))
        assert metrics.discover(DIALECTS, Selection(""), 1_800_000_000.0).clock_ahead_s is None


QUERIES = [RangeQuery(f"s{at}", "", f"up + {at}", WINDOW, 20.0) for at in range(8)]


@pytest.mark.parametrize(
    "answer",
    [
        reply(prometheus_json([{"metric": {}, "values": [[1_800_000_020, "1"]]}], "matrix")),
        reply(prometheus_json([{"metric": {MARK: "99"}, "values": []}], "matrix")),
        reply(b"<html>log in</html>", kind="text/html"),
        cut_short,
    ],
)
def test_answers_to_another_question_are_gaps_and_are_not_asked_again(answer: Answer) -> None:
    with stranger(answer) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect(QUERIES)
        assert len(server.asked) == 2
    assert readings.series == ()
    assert {gap.reason for gap in readings.gaps} == {GapReason.BAD_ANSWER}
    assert len(readings.gaps) == 8


def test_the_same_series_twice_is_refused_alone() -> None:
    values = [[1_800_000_020, "1"]]
    elements = [{"metric": {MARK: mark}, "values": values} for mark in ("0", "0", "1", "2", "3")]
    with stranger(reply(prometheus_json(elements, "matrix"))) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect(QUERIES)
    assert {gap.signal: gap.detail for gap in readings.gaps} == dict.fromkeys(
        ("s0", "s4"), "the query gave 2 series instead of one"
    )
    assert len(readings.series) == 6


@pytest.mark.parametrize("answer", [endless, reply(gzip.compress(b" " * 2**26, 9), Content_Encoding="gzip")])
def test_answers_without_an_end_cost_no_more_than_the_limit(answer: Answer) -> None:
    with stranger(answer) as server:
        started_s = time.monotonic()
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect(QUERIES)
        assert time.monotonic() - started_s < 5
        assert len(server.asked) <= MOST_REQUESTS
    assert len(readings.gaps) == 8
    assert all("too large" in gap.detail or "cost limit" in gap.detail for gap in readings.gaps)


def test_one_slow_expression_does_not_use_up_the_time_of_the_others() -> None:
    def answer(asked: Asked) -> None:
        if "up + 2" in asked.form["query"]:
            # As Prometheus does it: it gives up after the time it was given, and says so.
            time.sleep(float(asked.form["timeout"]))
            asked.reply(b'{"error": "query timed out in expression evaluation"}', "503 Service Unavailable")
        else:
            asked.reply(prometheus_json(marked(asked.form["query"], "up"), "matrix"))

    with stranger(answer) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url), 3.0).collect(QUERIES)
    assert [(gap.signal, gap.reason) for gap in readings.gaps] == [("s2", GapReason.DEADLINE)]
    assert len(readings.series) == 7


def test_a_server_that_is_away_is_asked_once_for_each_group() -> None:
    with stranger(hang_up) as server:
        readings = PrometheusMetrics(PrometheusSource(server.url)).collect(QUERIES)
        assert len(server.asked) == 2
    assert len(readings.gaps) == 8


def test_a_tenant_is_sent_to_its_own_host_alone(tmp_path: Path) -> None:
    (tmp_path / "tenant").write_text("team-a\n")
    with stranger(reply(prometheus_json([], "matrix"))) as thief:

        def answer(asked: Asked) -> None:
            asked.reply(b"", "307 Temporary Redirect", location=f"{thief.url}{asked.path}")

        for tenant in (
            Tenant("X-Scope-OrgID", value_env="TEAM"),
            Tenant("X-Scope-OrgID", value_file=str(tmp_path / "tenant")),
        ):
            with stranger(answer) as server:
                source = PrometheusSource(server.url, Credentials(bearer_env="TOKEN"), tenant=tenant)
                readings = PrometheusMetrics(source, 5.0, {"TEAM": "team-a", "TOKEN": SECRET}).collect([QUERY])
                assert [asked.header("x-scope-orgid") for asked in server.asked] == ["team-a"]
                assert [asked.header("authorization") for asked in server.asked] == [f"Bearer {SECRET}"]
                assert "another host" in readings.gaps[0].detail
        assert thief.asked == []


def credentials_sent(credentials: Credentials, environment: dict[str, str], url_prefix: str = "") -> list[str]:
    """The Authorization headers that arrive, over a redirect on the same host."""

    def answer(asked: Asked) -> None:
        if asked.path.startswith("/api"):
            asked.reply(b"", "302 Found", location="/moved")
        else:
            asked.reply(prometheus_json([], "matrix"))

    with stranger(answer) as server:
        url = server.url.replace("http://", f"http://{url_prefix}")
        PrometheusMetrics(PrometheusSource(url, credentials), 5.0, environment).collect([QUERY])
        return [asked.header("authorization") for asked in server.asked]


def test_credentials_are_sent_to_their_own_host(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET + "\n")
    basic = "Basic " + base64.b64encode(f"ann:{SECRET}".encode()).decode()
    bearer = f"Bearer {SECRET}"
    assert credentials_sent(Credentials(bearer_env="TOKEN"), {"TOKEN": SECRET}) == [bearer, bearer]
    assert credentials_sent(Credentials(bearer_file=str(file)), {}) == [bearer, bearer]
    assert credentials_sent(Credentials("ann", password_env="PW"), {"PW": SECRET}) == [basic, basic]
    assert credentials_sent(Credentials("ann", password_file=str(file)), {}) == [basic, basic]
    assert credentials_sent(Credentials(), {}, f"ann:{SECRET}@") == [basic, basic]
    assert credentials_sent(Credentials(), {}) == ["", ""]


def test_a_netrc_of_the_user_is_not_consulted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login ann password {SECRET}\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert credentials_sent(Credentials(), {}) == ["", ""]


def test_credentials_do_not_follow_to_another_host_or_port() -> None:
    with stranger(reply(prometheus_json([], "matrix"))) as thief:

        def answer(asked: Asked) -> None:
            asked.reply(b"", "302 Found", location=f"{thief.url}/api/v1/query_range")

        with stranger(answer) as server:
            source = PrometheusSource(server.url, Credentials(bearer_env="TOKEN"))
            readings = PrometheusMetrics(source, 5.0, {"TOKEN": SECRET}).collect([QUERY])
        assert thief.asked == []
    assert [gap.reason for gap in readings.gaps] == [GapReason.BAD_ANSWER]
    assert "another host" in readings.gaps[0].detail


def test_secrets_appear_in_no_message_gap_or_query() -> None:
    def answer(asked: Asked) -> None:
        # A server that repeats what it was sent.
        body = f'{{"error": "refused Authorization: {asked.header("authorization")}"}}'.encode()
        asked.reply(body, "422 Unprocessable Entity" if "query_range" in asked.path else "401 Unauthorized")

    with stranger(answer) as server:
        source = PrometheusSource(server.url.replace("http://", f"http://ann:{SECRET}@"))
        metrics = PrometheusMetrics(source, 5.0, {})
        readings = metrics.collect([QUERY])
        with pytest.raises(SourceError) as caught:
            metrics.discover(DIALECTS, Selection(""), 1_800_000_000.0)
    encoded = base64.b64encode(f"ann:{SECRET}".encode()).decode()
    told = repr(readings) + repr(caught.value) + caught.value.message + caught.value.hint
    assert "HTTP 422" in told
    assert SECRET not in told
    assert encoded not in told


def test_a_dead_prometheus_alone_cannot_be_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        sources = Sources(PrometheusMetrics(PrometheusSource(f"http://127.0.0.1:{taken.getsockname()[1]}"), 2.0))
        with pytest.raises(CannotTell, match="connection refused"):
            collect(sources, Rules(DIALECTS, SIGNALS), CollectRequest(Selection(""), 1_800_000_000.0))
