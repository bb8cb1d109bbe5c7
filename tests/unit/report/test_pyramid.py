"""The pyramid on a screen and as data; nothing from a log line is ever read as markup."""

from __future__ import annotations

import json

from latencydoctor.model.evidence import Gap, GapReason, LogEvent, QueryRecord, Severity
from latencydoctor.report.pyramid import as_text, document

HOSTILE = "[/INST] [bold]x\x1b[2J\u202e"
EVENTS = (
    LogEvent("gpu_oom", Severity.CRITICAL, 3, 1000.0, 1003.0, "a.log:7", HOSTILE, "means", (("free_bytes", 2.0**30),)),
    LogEvent("queue_delay", Severity.WARNING, 1, 1000.0, 1000.0, "a.log:8", "x", "means", (("queue_ms", 900.0),)),
    LogEvent("batch_size_mismatch", Severity.WARNING, 1, None, None, "a.log:9", "x", "means", (("requested", 64.0),)),
)
GAPS = (Gap("logs", GapReason.UNREACHABLE, "b.log: No such file"),)
FILES = (QueryRecord("logs", "a.log", "ok", 5),)


def test_text_has_counts_times_places_lines_and_gaps() -> None:
    assert as_text(EVENTS, GAPS, FILES, meaning=False).splitlines() == [
        "CRITICAL gpu_oom x3  00:16:40 to 00:16:43 UTC, 1/s  free 1 GiB",
        "         a.log:7  [/INST] [bold]x[2J",
        "WARNING  queue_delay x1  at 00:16:40 UTC  queue 900 ms",
        "         a.log:8  x",
        "WARNING  batch_size_mismatch x1  at no known time  requested 64",
        "         a.log:9  x",
        "not read  b.log: No such file (unreachable)",
    ]


def test_meaning_is_told_when_asked() -> None:
    assert "         means" in as_text(EVENTS, (), FILES, meaning=True).splitlines()


def test_nothing_found_and_nothing_read_are_told_apart() -> None:
    assert as_text((), (), FILES, meaning=False) == "nothing of the known classes in 1 file\n"
    assert as_text((), (), FILES * 2, meaning=False) == "nothing of the known classes in 2 files\n"
    assert as_text((), (), (), meaning=False) == "there was nothing to read\n"


def test_document_names_the_worst_level() -> None:
    data = json.loads(document(EVENTS, GAPS, FILES))
    assert (data["schema"], data["worst"], len(data["events"]), len(data["gaps"])) == (1, "CRITICAL", 3, 1)
    assert json.loads(document((), (), ()))["worst"] is None
