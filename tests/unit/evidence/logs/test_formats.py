"""Formats where they are hard to tell apart, and lines that merely resemble one."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, clean, read_line
from tests.unit.evidence.logs.examples import MILLI_S, REFERENCE_S, SECOND_S


def read(line: str) -> LineRecord:
    return read_line(clean(line.encode()), Dating(REFERENCE_S))


@pytest.mark.parametrize(
    "line",
    [
        "E1130 x",
        "ERRORS: 3",
        "INFO about it",
        "INFO 2026-11-30 is a day",
        "INFO 2026-13-30 07:20:26,123 a b -- x",
        "2026-13-30 07:20:26 x",
        "2026-11-30 is a day",
        "[2026-13-30 07:20:26] x",
        "[x] y",
        "2026/13/30 07:20:26 x",
        "2026/11/30 27:20:26 x",
        "[Foo Nov 30 07:20:26 2026] x",
        "[Mon Foo 30 07:20:26 2026] x",
        "[Mon Nov 31 07:20:26 2026] x",
        "[E something] x",
        "[request id: a] x",
        "[StatusCode.UNAVAILABLE] x",
        "[I] x",
        "41:M 30 Foo 2026 07:20:26.123 # x",
        "41:Q 30 Nov 2026 07:20:26.123 # x",
        "10.0.0.1 - - [30/Foo/2026:07:20:26 +0000] x",
        "503 is a status",
        "503 - x",
        "12 of 20 done",
        "3: words",
        "time=now",
        "msg",
        "a=b c=d",
        "level=loud msg",
        "a.service started",
        "the a.service: x",
        "<x>",
        "(no pid) x",
        "  Warning  Something odd",
        "NCCL WARN",
        "a NCCL WARN x",
        "h:12:34 [0] NCCL SAID x",
    ],
)
def test_what_only_resembles_a_format_is_text(line: str) -> None:
    record = read(line)
    assert (record.text, record.time_s, record.level, record.program) == (line, None, "", "")
    assert record.continued


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("2026-11-30T07:20:26.123Z ERROR boom", "ERROR", "boom"),
        ("2026-11-30T07:20:26.123Z [error] boom", "", "[error] boom"),
        ("2026-11-30T07:20:26.123Z [ERROR] boom", "ERROR", "boom"),
        ("2026-11-30 07:20:26.123 UTC [41] ERROR: boom", "ERROR", "[41] ERROR: boom"),
        ("2026-11-30 07:20:26,123 | WARNING | boom", "WARNING", "boom"),
        ("2026-11-30 07:20:26,123 FATAL boom", "CRITICAL", "boom"),
        ("2026-11-30 07:20:26,123 my.module WARNING boom", "WARNING", "boom"),
        ("[2026-11-30 07:20:26,123] [INFO] [config.py:12:f] x", "INFO", "[config.py:12:f] x"),
        ("[2026-11-30 07:20:26,123] ERROR in app: boom", "ERROR", "in app: boom"),
        ("2026-11-30 07:20:26,123 words and 0 ERRORS", "", "words and 0 ERRORS"),
    ],
)
def test_stamped_lines_of_unknown_programs(line: str, level: str, text: str) -> None:
    record = read(line)
    assert record.time_s == pytest.approx(MILLI_S)
    assert (record.level, record.text) == (level, text)


def test_stamp_before_nccl() -> None:
    record = read("[2026-11-30 07:20:26.123] h:12:34 [0] NCCL INFO x")
    assert (record.program, record.level) == ("nccl", "INFO")
    assert record.time_s == pytest.approx(MILLI_S)


def test_request_in_brackets_of_unknown_programs() -> None:
    record = read('[2026-11-30T07:20:26.123Z] "POST / HTTP/1.1" 500 12')
    assert (record.program, record.status, record.fields) == ("", 500, ())
    assert read('["POST / HTTP/1.1" 504 UT x').status == 504


@pytest.mark.parametrize(
    ("rest", "status", "fields"),
    [
        ('"GET / HTTP/1.1" 200 12 "-" "ua"', 200, ()),
        ('"GET / HTTP/1.1" 502 - "-" "ua" 10 0.250 [a] [] - - - - abc', 502, (("request_ms", 250.0),)),
        ("GET / 200", 0, ()),
    ],
)
def test_access_lines(rest: str, status: int, fields: tuple[tuple[str, float], ...]) -> None:
    record = read(f"10.0.0.1 - u [30/Nov/2026:07:20:26 +0000] {rest}")
    assert (record.status, record.fields, record.time_s) == (status, fields, SECOND_S)


@pytest.mark.parametrize(
    ("message", "status", "request_ms"),
    [
        ("GET /a 500 12.3ms", 500, 12.3),
        ("c1 POST /a 200 3ms", 200, 3.0),
        ("GET 404 2.5ms", 404, 2.5),
        ("CALL f OK 2.5ms", 0, 2.5),
        ("it took 3ms", 0, None),
    ],
)
def test_access_messages_of_ray_serve(message: str, status: int, request_ms: float | None) -> None:
    record = read(f"INFO 2026-11-30 07:20:26,123 a b -- {message}")
    expected = () if request_ms is None else (("request_ms", request_ms),)
    assert (record.status, record.fields, record.text) == (status, expected, message)


def test_words_behind_a_level_and_a_date() -> None:
    record = read("WARNING 2026-11-30 07:20:26,123 something else")
    assert (record.level, record.text, record.program) == ("WARNING", "something else", "")


def test_kserve_s_logger_may_be_uvicorn_s() -> None:
    record = read("2026-11-30 07:20:26.123 uvicorn.error ERROR: boom")
    assert (record.program, record.level, record.text) == ("uvicorn", "ERROR", "boom")
    assert read("2026-11-30 07:20:26.123 'http_status:500'").status == 500


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ('level=error ts=1796023226.123 caller=notify.go:1 msg="x"', "alertmanager"),
        ('level=error t=1796023226123 msg="x"', ""),
        ("level=error t=never err=x", ""),
        ("time=2026-13-30T07:20:26Z level=error msg=x", ""),
    ],
)
def test_pairs(line: str, program: str) -> None:
    record = read(line)
    assert (record.level, record.text, record.program) == ("ERROR", "x", program)
    assert record.time_s in (None, pytest.approx(MILLI_S))


def test_pairs_without_a_message_keep_their_words() -> None:
    assert read("level=info a=b").text == "level=info a=b"


def test_programs_of_headless_lines() -> None:
    assert read("NVRM: Xid (PCI:0000:3b:00): 79").program == "kernel"
    assert read("        HW Slowdown                       : Not Active").program == "nvidia_smi"
    assert read("    p99 latency: 12 usec").program == "perf_analyzer"
    assert read("Request concurrency: 4").program == "perf_analyzer"
    assert read("Now something").program == ""


def test_tgi_without_a_target_of_its_own() -> None:
    assert read("2026-11-30T07:20:26.123456Z  INFO shard-manager: nothing more").program == ""
    assert read("2026-11-30T07:20:26.123456Z  INFO " + "a: " * 20 + "x").level == "INFO"


def test_sglang_may_have_a_level() -> None:
    assert (read("[2026-11-30 07:20:26] ERROR: boom").level, read("[2026-11-30 07:20:26] Tired").level) == ("ERROR", "")


@pytest.mark.parametrize(
    ("message", "text"), [('"cut \\', '"cut \\'), ('"bad \\x"', "bad \\x"), ('"5"', "5"), ('""', "")]
)
def test_messages_of_triton_that_are_no_json(message: str, text: str) -> None:
    assert read(f"E1130 07:20:26.123456 41 a.cc:1] {message}").text == text
