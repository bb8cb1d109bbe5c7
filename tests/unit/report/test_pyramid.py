"""The pyramid on a screen and as data; nothing from a log line is ever read as markup."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from latencydoctor.model.evidence import Gap, GapReason, LogEvent, QueryRecord, Severity
from latencydoctor.report.pyramid import WHY, as_text, document, one_line, one_object, show

HOSTILE = "[/INST] [bold]x\x1b[2J\u202e"
OOM = LogEvent(
    rule="gpu_oom",
    severity=Severity.CRITICAL,
    count=3,
    first_s=1000.0,
    last_s=1003.0,
    place="a.log:7",
    line=HOSTILE,
    meaning="means",
    numbers=(("free_bytes", 2.0**30),),
    echoes=5,
    sources=("pod-a", "pod-b"),
    file_line="be.cc:44",
    busy_s=60.0,
    remedy="free some",
)
EVENTS = (
    OOM,
    LogEvent("queue_delay", Severity.WARNING, 1, 1000.0, 1000.0, "a.log:8", "x", "means", (("queue_ms", 900.0),)),
    LogEvent("batch_size_mismatch", Severity.WARNING, 1, None, None, "a.log:9", "x", "means", (("requested", 64.0),)),
)
UNKNOWN = LogEvent("unclassified", Severity.ERROR, 9, 1000.0, 1001.0, "a.log:2", "<*> is odd", "", unclassified=True)
GAPS = (Gap("logs", GapReason.UNREACHABLE, "b.log: No such file"),)
FILES = (QueryRecord("logs", "a.log", "ok", 5),)
NEXT = "-v: what to do; why: latencydoctor diagnose --prometheus URL"


def test_text_has_counts_times_places_lines_and_gaps() -> None:
    assert as_text(EVENTS, GAPS, FILES, meaning=False).splitlines() == [
        "3 classes, 5 events in 1 file, 1970-01-01 00:16:40 to 00:16:43 UTC",
        "CRITICAL gpu_oom x3 +5 echoes  00:16:40 to 00:16:43, 3/min  free 1 GiB",
        "         a.log:7  be.cc:44  [/INST] [bold]x[2J",
        "WARNING  queue_delay x1  at 00:16:40  queue 900 ms",
        "         a.log:8  x",
        "WARNING  batch_size_mismatch x1  at no known time  requested 64",
        "         a.log:9  x",
        "not read b.log: No such file (unreachable)",
        f"next     {NEXT}",
    ]


def test_unknown_lines_are_told_apart_from_events() -> None:
    rows = as_text((OOM, UNKNOWN), (), FILES, meaning=False).splitlines()
    assert rows[0] == "1 class, 3 events, 1 unknown in 1 file, 1970-01-01 00:16:40 to 00:16:43 UTC"
    assert rows[3:5] == ["ERROR    unclassified x9  00:16:40 to 00:16:41", "         a.log:2  <*> is odd"]


def test_meaning_remedy_and_who_told_when_asked() -> None:
    rows = as_text(EVENTS, (), FILES, meaning=True).splitlines()
    assert rows[3:6] == ["         from pod-a, pod-b", "         means", "         do: free some"]
    assert rows[-1] == "next     latencydoctor diagnose --prometheus URL"


def test_days_are_told_where_there_are_several() -> None:
    late = LogEvent("late", Severity.INFO, 1, 90_000.0, 90_000.0, "a.log:1", "x", "")
    rows = as_text((*EVENTS[1:2], late), (), FILES, meaning=False).splitlines()
    assert rows[0] == "2 classes, 2 events in 1 file, 1970-01-01 00:16:40 to 1970-01-02 01:00:00 UTC"
    assert rows[3] == "INFO     late x1  at 01-02 01:00:00"


def test_nothing_found_and_nothing_read_are_told_apart() -> None:
    assert as_text((), (), FILES, meaning=False) == "nothing of the known classes in 1 file\n"
    assert as_text((), (), FILES * 2, meaning=False) == "nothing of the known classes in 2 files\n"
    assert as_text((), (), (), meaning=False) == "there was nothing to read\n"
    empty = tuple(replace(one, outcome="empty") for one in FILES)
    assert as_text((), (), empty, meaning=False) == "there was nothing to read\n"


def test_loud_lines_that_no_rule_knows_are_told_by_number_and_by_one_of_them() -> None:
    quiet = (replace(UNKNOWN, count=2, line="[b]odd"), replace(UNKNOWN, count=1, place="b.log:9"))
    assert as_text((), (), FILES, meaning=False, quiet=quiet).splitlines() == [
        "nothing of the known classes in 1 file",
        "unknown  3 lines of 2 kinds at ERROR or above that no rule knows, in no burst",
        "         a.log:2  [b]odd",
    ]
    assert "         b.log:9  <*> is odd" in as_text((), (), FILES, meaning=True, quiet=quiet)
    told = json.loads(document((), (), FILES, quiet=quiet))
    assert (told["quiet"]["lines"], told["quiet"]["kinds"], told["worst"]) == (3, 2, None)
    assert told["quiet"]["first"][1] == {"count": 1, "line": "<*> is odd", "place": "b.log:9"}
    rows = screen(many(60), quiet=quiet)
    assert len(rows) == 23
    assert any(row.startswith("unknown  3 lines") for row in rows)


def test_levels_stand_at_the_end() -> None:
    rows = as_text((), (), FILES, meaning=False, levels=(("ERROR", 3), ("none", 4))).splitlines()
    assert rows[-1] == "lines    3 ERROR, 4 none"
    assert json.loads(document((), (), FILES, (("ERROR", 3),)))["levels"] == {"ERROR": 3}


def screen(
    events: Sequence[LogEvent],
    *,
    meaning: bool = False,
    gaps: Sequence[Gap] = (),
    width: int = 80,
    why: str = WHY,
    quiet: Sequence[LogEvent] = (),
) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, height=24, force_terminal=True, color_system=None, legacy_windows=False)
    show(events, gaps, FILES, console, meaning=meaning, why=why, quiet=quiet)
    return text.getvalue().splitlines()


def many(count: int) -> list[LogEvent]:
    return [LogEvent(f"c{n}", Severity.ERROR, 1, None, None, f"a.log:{n}", "x" * 300, "m" * 300) for n in range(count)]


@pytest.mark.parametrize("count", [1, 10, 11, 15, 20, 21, 22, 60])
@pytest.mark.parametrize("gaps", [0, 1, 9])
def test_terminal_shows_one_screen_worst_first(count: int, gaps: int) -> None:
    rows = screen(many(count), gaps=GAPS * gaps)
    assert len(rows) <= 23
    assert all(len(row) <= 80 for row in rows)
    named = [row.split()[1] for row in rows if row.startswith("ERROR")]
    assert named == [f"c{n}" for n in range(len(named))]
    left = count - len(named)
    assert left == 0 or f"and {left} more classes (-v tells of all)" in rows
    assert rows[-1] == f"next     {NEXT}"
    assert left == 0 or len(rows) == 23


def test_the_next_command_is_whole_however_narrow_the_terminal_is() -> None:
    why = f"{WHY} --log {'/var/log' * 20}"
    rows = screen(many(60), why=why)
    assert rows[-1].endswith(f"why: {why}")
    assert len(rows) + len(rows[-1]) // 80 <= 23


def test_narrow_terminal_cuts_lines_and_a_wide_one_shows_more() -> None:
    assert screen([OOM], width=40)[1].endswith("…")
    assert max(map(len, screen(many(1), width=200))) == 200


def test_terminal_shows_the_message_behind_the_programs_head() -> None:
    text = 'E1130 00:16:40.000000 27161 be.cc:44] "no memory"'
    rows = screen([replace(OOM, line=text)])
    assert rows[2] == '         a.log:7  be.cc:44  no memory"'
    assert as_text([replace(OOM, line=text)], (), FILES, meaning=False).splitlines()[2] == f"         a.log:7  {text}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026/11/30 03:14:11 [error] 87#87: *14 no live upstreams", "no live upstreams"),
        ("2026-11-30T07:20:26.123456789Z stderr F Killed process 7", "Killed process 7"),
        ("2026-11-30T07:20:26.123Z 2026-11-30 07:20:26,123 it failed", "it failed"),
        ("[2026-11-30 07:20:26 +0100] [41] [CRITICAL] WORKER TIMEOUT", "[41] [CRITICAL] WORKER TIMEOUT"),
        (r'{"log":"Killed\n","stream":"stderr"}', r'Killed\n","stream":"stderr"}'),
        ('10.0.0.1 - - [30/Nov/2026] "POST /x" 502', '10.0.0.1 - - [30/Nov/2026] "POST /x" 502'),
        ("2026-11-30", "2026-11-30"),
    ],
)
def test_terminal_leaves_out_what_stands_before_every_message(text: str, shown: str) -> None:
    assert screen([replace(OOM, line=text, file_line="")], width=120)[2] == f"         a.log:7  {shown}"


def test_terminal_shows_everything_when_asked() -> None:
    rows = screen(many(60), meaning=True)
    assert len([row for row in rows if row.startswith("ERROR")]) == 60
    assert all(len(row) <= 80 for row in rows)
    assert all(row[:9] in (" " * 9, "ERROR    ") for row in rows[1:-1])


def test_document_names_the_worst_level() -> None:
    data = json.loads(document(EVENTS, GAPS, FILES))
    assert (data["schema"], data["worst"], len(data["events"]), len(data["gaps"])) == (2, "CRITICAL", 3, 1)
    assert data["events"][0]["echoes"] == 5
    assert data["events"][0]["sources"] == ["pod-a", "pod-b"]
    assert json.loads(document((), (), ()))["worst"] is None


def test_event_that_has_just_come_is_one_line_or_one_object() -> None:
    assert one_line(OOM) == "00:16:40 CRITICAL gpu_oom x3  a.log:7  [/INST] [bold]x[2J"
    assert json.loads(one_object(OOM))["rule"] == "gpu_oom"
    assert "\n" not in one_object(OOM)
