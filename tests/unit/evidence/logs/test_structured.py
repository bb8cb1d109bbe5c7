"""JSON lines: levels, times and figures in the shapes that programs write them."""

from __future__ import annotations

import html
import json
from collections.abc import Callable

import pytest

from latencydoctor.evidence.logs.blocks import whole_lines
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, read_line
from latencydoctor.evidence.logs.reader import LogReader
from tests.unit.evidence.logs.examples import MILLI_S, REFERENCE_S
from tests.unit.log_builders import rule


def read(values: dict[str, object]) -> LineRecord:
    return read_line(json.dumps(values), Dating(REFERENCE_S))


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-30T07:20:26.123Z",
        "2026-11-30 08:20:26,123+0100",
        "2026-11-30 07:20:26,123",
        1796023226.123,
        1796023226123,
        1796023226123000,
        1796023226123000000,
    ],
)
@pytest.mark.parametrize("key", ["time", "timestamp", "ts", "asctime", "@timestamp"])
def test_time_in_every_form(time: object, key: str) -> None:
    assert read({key: time, "message": "m"}).time_s == pytest.approx(MILLI_S, abs=1e-5)


@pytest.mark.parametrize(
    "time", ["yesterday", "2026-13-30T07:20:26Z", 5, True, None, [], 1e300, 10**400, -1, float("nan")]
)
def test_what_is_no_time_is_none(time: object) -> None:
    assert read({"time": time, "message": "m"}).time_s is None


@pytest.mark.parametrize(
    ("values", "level"),
    [
        ({"level": "error"}, "ERROR"),
        ({"severity": "Warning"}, "WARNING"),
        ({"levelname": "CRITICAL"}, "CRITICAL"),
        ({"lvl": "dbg"}, ""),
        ({"level": 50}, "ERROR"),
        ({"level": 7}, ""),
        ({"level": None}, ""),
        ({"level": "TRACE"}, "DEBUG"),
        ({"level": "dpanic"}, "CRITICAL"),
        ({}, ""),
    ],
)
def test_level_in_every_form(values: dict[str, object], level: str) -> None:
    assert read({"message": "m", **values}).level == level


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"message": "m"}, "m"),
        ({"msg": "m", "err": "e"}, "m: e"),
        ({"message": "m", "error": "m"}, "m"),
        ({"error": "e"}, "e"),
        ({"message": "m", "error": None}, "m"),
        ({"message": "m", "exc_info": "Traceback\nX"}, "m\nTraceback\nX"),
        ({"event": "it happened", "level": "error"}, "it happened"),
        ({"message": "\x1b[31mred\x1b[0m \ud800"}, "red "),
        ({"message": 5}, ""),
        ({"prompt": "CUDA out of memory"}, ""),
    ],
)
def test_message_in_every_form(values: dict[str, object], text: str) -> None:
    assert read(values).text == text


def test_figures_that_are_none_are_left_out() -> None:
    line = '{"a": NaN, "b": 1e999, "c": 1' + "0" * 4000 + ', "count": -5, "event": 3, "message": null, "d": true}'
    record = read_line(line, REFERENCE_S)
    assert record.fields == (("count", -5.0), ("event", 3.0))
    assert (record.count, record.event, record.text) == (1, "", "")


def test_count_counts_events_only() -> None:
    assert read({"event": "e", "message": "m", "count": 3}).count == 3
    assert read({"message": "m", "count": 3}).count == 1


@pytest.mark.parametrize(("key", "status"), [("status", 503), ("http_status", 404), ("code", 14), ("status_code", 999)])
def test_status_is_one_of_http(key: str, status: int) -> None:
    assert read({"message": "m", key: status}).status == (status if 100 <= status <= 599 else 0)


def alerts(*listed: object, **others: object) -> LineRecord:
    return read({"receiver": "r", "alerts": list(listed), **others})


def test_alert_group_tells_of_what_fires() -> None:
    firing = {"status": "firing", "labels": {"severity": "critical"}, "startsAt": "2026-11-30T07:20:26.123Z"}
    resolved = {"status": "resolved", "labels": {"alertname": "A"}, "startsAt": "2026-11-30T07:00:00Z"}
    record = alerts(firing, resolved, commonLabels={"alertname": "B"})
    assert (record.text, record.level, record.time_s) == ("B", "CRITICAL", MILLI_S)
    record = alerts(resolved)
    assert (record.text, record.level) == ("A", "INFO")
    record = alerts(title="[FIRING:1] x", groupLabels=None)
    assert (record.text, record.level, record.time_s) == ("[FIRING:1] x", "INFO", None)
    assert alerts(5, None, {"labels": 5, "annotations": 5}).program == "alertmanager"
    assert read({"receiver": "r", "alerts": 5}).text == ""


def test_program_by_its_keys() -> None:
    assert read({"levelname": "INFO", "message": "m", "filename": "a.py", "lineno": 3}).file_line == "a.py:3"
    assert read({"levelname": "INFO", "message": "m"}).program == ""
    assert read({"target": "other::crate", "message": "m"}).program == ""
    assert read({"severity": "INFO", "logger": "l", "message": "m"}).program == "knative"


_WORDS = "it died µ"
_NUMBERS = str(list(_WORDS.encode()))


@pytest.mark.parametrize(
    "message",
    [
        _NUMBERS,
        _NUMBERS.replace(" ", ""),
        f'["{_WORDS}"]',
        f'["before it", "{_WORDS}"]',
        f"[{_NUMBERS}, {_NUMBERS}]",
    ],
    ids=["bytes", "bytes without blanks", "one of several", "two", "bytes twice"],
)
@pytest.mark.parametrize(
    "written", [str, html.escape, lambda line: json.dumps({"log": line + "\n", "stream": "stderr"})]
)
def test_messages_of_a_journal_in_any_form_and_wrapper_are_found_and_read(
    message: str, written: Callable[[str], str]
) -> None:
    line = written(f'{{"__REALTIME_TIMESTAMP" : "1796023226250000", "PRIORITY":"3", "MESSAGE" : {message}}}')
    reader = LogReader([rule("dead", "it died µ")])
    reader.read("x", whole_lines([line.encode() + b"\n"]), REFERENCE_S)
    (event,) = reader.events()
    assert (event.count, event.first_s) == (1, 1_796_023_226.25)


@pytest.mark.parametrize("message", ["null", "7", "[]", "[null]", "[[[104]]]", "{}", "[-1, 999]"])
def test_a_message_of_no_known_form_is_empty(message: str) -> None:
    record = read_line(f'{{"__REALTIME_TIMESTAMP":"1796023226250000","MESSAGE":{message}}}', Dating(REFERENCE_S))
    assert record.text.strip("\n\x00") == ""
