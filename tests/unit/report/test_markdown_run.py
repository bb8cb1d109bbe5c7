"""A run's timeline: what happened when, how it was judged, and that a run without an end is said to have none."""

from __future__ import annotations

from latencydoctor.model.remedy import JournalEntry, RunEvent
from latencydoctor.report.markdown_run import timeline

AT_S = 1_796_032_598.0
STARTED = {"kind": "apply", "of": "", "fix": "batch-floor", "target": "stack /srv|x"}
FAILED = {
    "passed": False,
    "conclusive": True,
    "p99_ms": 2054.0,
    "error_ratio": 0.0123,
    "requests": 3000,
    "note": "too slow",
}
BLIND = {"passed": False, "conclusive": False, "p99_ms": None, "error_ratio": None, "requests": None, "note": ""}


def journal(*events: tuple[RunEvent, dict[str, object]]) -> list[JournalEntry]:
    return [JournalEntry(n, AT_S + n, event.value, fields) for n, (event, fields) in enumerate(events)]


def test_a_rolled_back_run_says_when_why_and_to_which_state() -> None:
    text = timeline(
        "20261130T095640Z-ab12cd",
        journal(
            (RunEvent.STARTED, dict(STARTED)),
            (RunEvent.CHECK, dict(FAILED)),
            (RunEvent.CHECK, dict(BLIND)),
            (RunEvent.DECISION, {"decision": "roll back", "reason": "p99 is above 1,000 ms"}),
            (RunEvent.UNDO_DONE, {"digest": "a" * 64}),
            (RunEvent.ENDED, {"state": "rolled back", "reason": "p99 is above 1,000 ms", "digest": "a" * 64}),
        ),
    )
    rows = text.splitlines()[4:]
    assert rows == [
        r"| 2026-11-30T09:56:38Z | run started | apply: batch-floor on stack /srv\|x |  |",
        "| 2026-11-30T09:56:39Z | check | failed: p99 2,054 ms, errors 1.23 %, 3,000 requests; too slow |  |",
        "| 2026-11-30T09:56:40Z | check | not conclusive: p99 -, errors -, - |  |",
        "| 2026-11-30T09:56:41Z | decision | roll back: p99 is above 1,000 ms |  |",
        "| 2026-11-30T09:56:42Z | undo done |  | `aaaaaaaaaaaa` |",
        "| 2026-11-30T09:56:43Z | run ended | rolled back: p99 is above 1,000 ms | `aaaaaaaaaaaa` |",
    ]
    assert "no end" not in text


def test_a_run_that_was_cut_off_says_so_and_what_to_do() -> None:
    text = timeline("r_1", journal((RunEvent.STARTED, {**STARTED, "kind": "rollback", "of": "r0"})))
    assert text.startswith("## Run r\\_1\n")
    assert "rollback of run r0: batch-floor on" in text
    assert "**It has no end: it was cut off or is under way.** `latencydoctor runs recover` finishes it." in text
