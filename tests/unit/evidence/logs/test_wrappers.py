"""Wrappers where they are hard to tell: syslog's forms, levels that say nothing, words before a pipe, pods' names."""

from __future__ import annotations

import json

import pytest

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, clean, read_line
from tests.unit.evidence.logs.examples import MILLI_S, REFERENCE_S, SECOND_S


def read(line: str, dating: Dating | None = None) -> LineRecord:
    return read_line(clean(line.encode()), dating or Dating(REFERENCE_S))


@pytest.mark.parametrize(
    ("head", "time_s"),
    [
        ("Nov 30 07:20:26 host serve[41]: ", SECOND_S),
        ("Nov 30 07:20:26.123 host serve[41]: ", MILLI_S),
        ("2026-11-30T07:20:26+0000 host serve[41]: ", SECOND_S),
        ("2026-11-30T08:20:26.123+01:00 host serve[41]: ", MILLI_S),
        ("2026-11-30 07:20:26 host serve[41]: ", SECOND_S),
        ("Mon 2026-11-30 07:20:26 UTC host serve[41]: ", SECOND_S),
        ("Mon 2026-11-30 08:20:26 CET host serve[41]: ", SECOND_S + 3600),
        ("1796023226.123000 host serve[41]: ", MILLI_S),
        ("<14>Nov 30 07:20:26 host serve[41]: ", SECOND_S),
        ("<14>1 2026-11-30T07:20:26.123Z host serve 41 ID47 - ", MILLI_S),
        ('<14>1 2026-11-30T07:20:26.123Z host serve 41 ID47 [a@1 b="c"] ', MILLI_S),
        ("<14>1 - host serve 41 - - ", None),
    ],
)
def test_syslog_in_every_form(head: str, time_s: float | None) -> None:
    record = read(f"{head}boom")
    assert (record.time_s, record.source, record.text) == (
        None if time_s is None else pytest.approx(time_s),
        "serve",
        "boom",
    )


@pytest.mark.parametrize(
    "line",
    [
        "Foo 30 07:20:26 host serve[41]: boom",
        "Nov 31 07:20:26 host serve[41]: boom",
        "Nov 30 27:20:26 host s[41]: x",
        "<999>x",
    ],
)
def test_what_only_looks_like_syslog_is_text(line: str) -> None:
    assert read(line).text == line


@pytest.mark.parametrize(
    ("priority", "transport", "container", "level"),
    [
        ("0", "kernel", False, "CRITICAL"),
        ("3", "syslog", False, "ERROR"),
        ("4", "journal", False, "WARNING"),
        ("5", "journal", False, ""),
        ("6", "journal", False, ""),
        ("7", "journal", False, "DEBUG"),
        ("3", "stdout", False, ""),
        ("3", "journal", True, ""),
        ("x", "journal", False, ""),
    ],
)
def test_priority_counts_where_the_program_gave_it(priority: str, transport: str, container: bool, level: str) -> None:
    entry = {"MESSAGE": "boom", "PRIORITY": priority, "_TRANSPORT": transport}
    assert read(json.dumps(entry | ({"CONTAINER_NAME": "c"} if container else {}))).level == level


def test_level_of_the_line_inside_wins() -> None:
    entry = {"MESSAGE": "INFO 11-30 07:20:26 [a.py:1] x", "PRIORITY": "3", "_TRANSPORT": "syslog"}
    assert read(json.dumps(entry)).level == "INFO"
    assert read("<11>1 2026-11-30T07:20:26Z h a 1 - - E1130 07:20:26.000000 1 a.cc:1] x").level == "ERROR"
    assert read("<11>1 2026-11-30T07:20:26Z h a 1 - - plain words").level == "ERROR"


def test_journal_entries_of_the_kernel_and_of_systemd() -> None:
    kernel = {
        "MESSAGE": "NVRM: x",
        "_TRANSPORT": "kernel",
        "_HOSTNAME": "h",
        "__REALTIME_TIMESTAMP": "1796023226000000",
    }
    record = read(json.dumps(kernel))
    assert (record.program, record.source, record.continued, record.time_s) == ("kernel", "h", False, SECOND_S)
    systemd = {"MESSAGE": "a.service: Main process exited", "SYSLOG_IDENTIFIER": "systemd", "UNIT": "a.service"}
    record = read(json.dumps(systemd))
    assert (record.program, record.source, record.continued) == ("systemd", "a.service", False)


@pytest.mark.parametrize("message", [None, 5, {}, [300, -1, "a"]])
def test_message_that_is_none_is_empty(message: object) -> None:
    assert read(json.dumps({"MESSAGE": message, "__REALTIME_TIMESTAMP": "x"})).text == ""


def test_kubelet_s_own_lines_are_the_cluster_s() -> None:
    record = read("Nov 30 07:20:26 host kubelet[7]: E1130 07:20:26.123456       7 pod_workers.go:12] boom")
    assert (record.program, record.text) == ("kubernetes", "boom")


def test_frames_of_the_kernel_continue() -> None:
    assert read("Nov 30 07:20:26 host kernel:  ? x+0x1").continued
    assert not read("Nov 30 07:20:26 host kernel: Out of memory: Killed process 1 (x)").continued
    assert read("[   12.000000] host kernel: Out of memory").text == "Out of memory"
    assert read("[   12.000000][ T123] x").text == "x"


@pytest.mark.parametrize(
    "line", ["| exit_timeout | 30 |", "exit_timeout | 30 |", "Model | x", "p99 latency | 12 ms", "a|b"]
)
def test_rows_of_a_table_are_no_service(line: str) -> None:
    assert (read(line).source, read(line).text) == ("", line)


def test_service_without_a_number_counts_before_a_head_or_when_known() -> None:
    dating = Dating(REFERENCE_S)
    assert read("api  | plain words", dating).source == "api"
    assert read("API  | plain words", dating).source == ""
    assert read("API  | INFO:     x", dating).source == "API"
    assert read("API  | plain words", dating).source == "API"


@pytest.mark.parametrize(
    "line", ["re-try it now", "worker-1 died of it", "a-b c d", "plain words here", "x-1", "phase-2-begin now it"]
)
def test_words_are_no_pod(line: str) -> None:
    assert (read(line).source, read(line).text) == ("", line)


@pytest.mark.parametrize("pod", ["serve-7d9c5b6f48-x2x4z", "other-89-x7k2p", "server-abcde"])
def test_pod_s_generated_name_is_enough(pod: str) -> None:
    assert read(f"{pod} server plain words").source == f"{pod}/server"


def test_pod_of_a_set_counts_before_a_head_or_when_known() -> None:
    dating = Dating(REFERENCE_S)
    assert read("serve-0 server ERROR:    boom", dating).source == "serve-0/server"
    assert read("serve-0 server plain words", dating).source == ""
    record = read("+ serve-0 \u203a server", dating)
    assert (record.source, record.level, record.continued) == ("serve-0/server", "INFO", False)
    assert read("serve-0 server plain words", dating).source == "serve-0/server"
    assert read("+ no arrow", dating).continued


def test_cloud_exports_as_json() -> None:
    labels = {"resource": {"labels": {"pod_name": "p", "container_name": "c"}}, "timestamp": "2026-11-30T07:20:26.123Z"}
    record = read(json.dumps({"textPayload": "ERROR:    boom\n", "severity": "INFO", **labels}))
    assert (record.time_s, record.level, record.text, record.source) == (MILLI_S, "ERROR", "boom", "p/c")
    record = read(json.dumps({"jsonPayload": {"message": "boom", "level": "error"}, "severity": "INFO", **labels}))
    assert (record.time_s, record.level, record.text) == (MILLI_S, "ERROR", "boom")
    assert read('{"jsonPayload": 5, "message": "m"}').text == "m"


def test_collector_s_json_names_the_pod() -> None:
    place = {"pod_name": "p", "container_name": "c"}
    assert read(json.dumps({"log": "boom\n", "time": "x", "kubernetes": place})).source == "p/c"


def test_piece_of_a_line_is_partial_and_has_its_stream() -> None:
    piece = {"log": "half", "stream": "stdout", "time": "2026-11-30T07:20:26.250000001Z"}
    assert (read(json.dumps(piece)).partial, read(json.dumps(piece)).stream) == (True, "stdout")
    whole = read(json.dumps({**piece, "log": "whole\r\n"}))
    assert (whole.partial, whole.text) == (False, "whole")
    assert read("2026-11-30T07:20:26.250000001Z stderr P half").partial
    assert read("2026-11-30T07:20:26.250000001Z stderr F ").text == ""


def test_prompt_of_python_is_no_quotation() -> None:
    assert not read(">>> x").quoted
    assert read("> > x").text == "x"
    assert read(">").text == ">"


def test_pipes_inside_a_console_copy_are_whole_again() -> None:
    assert read("  | 2026-11-30T08:20:26.123+01:00 | a \\| b |").text == "a | b"
    assert read("  | not a time | x").text == "  | not a time | x"
    assert read("  | 2026-11-30T08:20:26.123+01:00 x").text.endswith(" x")


def test_coarse_stamp_before_words_is_the_line_s_own() -> None:
    assert not read("2026-11-30T07:20:26.123Z it went wrong").continued
    assert read("2026-11-30T07:20:26.123Z   File x").continued
    assert read("2026-11-30T07:20:26.123456789Z it went wrong").continued
    assert not read("2026-11-30T07:20:26.123Z [rank0]: it went wrong").continued
