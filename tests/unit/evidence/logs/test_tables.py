"""Formats of programs beside the server: uWSGI, UCX, and rows of nvidia-smi's CSV, which only their header explains."""

from __future__ import annotations

import pytest

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, read_line
from tests.unit.evidence.logs.examples import MILLI_S, REFERENCE_S, SECOND_S

HEADER = "timestamp, index, clocks_throttle_reasons.sw_power_cap, clocks_throttle_reasons.hw_slowdown, power.draw [W]"


def read(*lines: str) -> LineRecord:
    dating = Dating(REFERENCE_S)
    return [read_line(line, dating) for line in lines][-1]


def test_uwsgi_has_a_weekday_and_no_level() -> None:
    record = read("Mon Nov 30 07:20:26 2026 - *** HARAKIRI ON WORKER 1 (pid: 66, try: 1) ***")
    assert (record.text, record.program) == ("*** HARAKIRI ON WORKER 1 (pid: 66, try: 1) ***", "uwsgi")
    assert (record.time_s, record.level, record.continued) == (SECOND_S, "", False)


def test_uwsgi_tells_a_request_with_its_status_and_time() -> None:
    record = read(
        "[pid: 66|app: 0|req: 434/412] 10.0.0.1 () {52 vars in 1096 bytes} [Mon Nov 30 07:20:26 2026] POST /predict => "
        "generated 500 bytes in 503 msecs (HTTP/1.1 504) 5 headers in 158 bytes (1 switches on core 0)"
    )
    assert (record.time_s, record.status, record.fields) == (SECOND_S, 504, (("request_ms", 503.0),))


@pytest.mark.parametrize(
    "line",
    [
        "Mon Nov 31 07:20:26 2026 - x",
        "Mon Foo 30 07:20:26 2026 - x",
        "Mon Nov 30 27:20:26 2026 - x",
        "[pid: 66|app: 0|req: 4/4] a () {} [Mon Nov 31 07:20:26 2026] GET / => in 1 msecs (HTTP/1.1 200)",
        "[pid: 66] x",
    ],
)
def test_what_only_resembles_uwsgi_is_text(line: str) -> None:
    assert (read(line).text, read(line).program) == (line, "")


def test_ucx_counts_seconds_since_1970_and_not_since_the_boot() -> None:
    record = read(f"[{MILLI_S:.6f}] [gpu-7:4410 :0]     ib_mlx5_log.c:179  UCX  ERROR Transport retry count exceeded")
    assert (record.text, record.program, record.level) == ("Transport retry count exceeded", "ucx", "ERROR")
    assert record.time_s == pytest.approx(MILLI_S, abs=1e-5)
    assert record.file_line == "ib_mlx5_log.c:179"


@pytest.mark.parametrize(
    ("row", "reasons"),
    [
        ("2026/11/30 07:20:26.123, 0, Active, Active, 503.1 W", "hw_slowdown"),
        ("2026/11/30 07:20:26.123, 0, Active, Not Active, 503.1 W", ""),
        ("2026/11/30 07:20:26.123, 0, [N/A], [N/A], [N/A]", ""),
    ],
)
def test_a_row_tells_harmful_reasons_only(row: str, reasons: str) -> None:
    record = read(HEADER, row)
    assert record.text == (f"{row} (clocks lowered by 1 reasons: {reasons})" if reasons else row)
    assert record.time_s == pytest.approx(MILLI_S)
    assert record.program == "nvidia_smi"


@pytest.mark.parametrize(("bits", "reasons"), [("0x0000000000000001", []), ("0x0000000000000004", []), (
    "0x00000000000000E8", ["hw_power_brake_slowdown", "hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown"],
)])  # fmt: skip
def test_all_reasons_at_once_are_bits(bits: str, reasons: list[str]) -> None:
    row = f"NVIDIA H100, {bits}"
    record = read("name, clocks_event_reasons.active", row)
    told = f" (clocks lowered by {len(reasons)} reasons: {', '.join(reasons)})" if reasons else ""
    assert record.text == row + told


def test_rows_of_another_width_or_without_a_header_are_text() -> None:
    row = "2026/11/30 07:20:26.123, 0, Active, Active"
    assert read(row).text == row
    assert read(HEADER, row).program == ""
    assert read("timestamp, clocks_throttle_reasons.hw_slowdown and more words, x", row).program == ""


def test_the_last_header_counts() -> None:
    row = "0, Active"
    other = "index, clocks_event_reasons.hw_slowdown"
    assert read(HEADER, other, row).text.endswith("(clocks lowered by 1 reasons: hw_slowdown)")
    assert read(other, "index, clocks_event_reasons.sw_power_cap", row).text == row


def test_haproxy_tells_when_a_request_began_and_how_long_it_took() -> None:
    record = read(
        "10.0.0.1:4410 [30/Nov/2026:07:20:26.123] fe~ llm/srv1 0/0/1/-1/60002 504 194 - - sH-- 31/31/30/12/0 0/0 "
        '"POST /v1/chat HTTP/1.1"'
    )
    assert record.time_s == pytest.approx(MILLI_S)
    assert (record.program, record.status, record.fields) == ("proxy", 504, (("request_ms", 60002.0),))
    assert record.text.startswith("fe~ llm/srv1 ")


@pytest.mark.parametrize("stamp", ["30/Foo/2026:07:20:26.123", "31/Nov/2026:07:20:26.123", "30/Nov/2026:27:20:26.123"])
def test_what_only_resembles_haproxy_is_text(stamp: str) -> None:
    line = f"10.0.0.1:4410 [{stamp}] fe~ llm/srv1 0/0/1/-1/60002 504 194 - - sH-- x"
    assert read(line).text == line
