"""Impact and follow-up of a report: from its own figures, and true of how the incident ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from latencydoctor.model.evidence import Gap, GapReason
from latencydoctor.model.incident import IncidentRecord, LoadWindow
from latencydoctor.model.reached import Reached
from latencydoctor.model.remark import Remark
from latencydoctor.model.remedy import Check, Decision, Verification
from latencydoctor.report.markdown import incident
from latencydoctor.report.markdown_postmortem import follow_up, impact
from latencydoctor.report.units import instant
from tests.unit.app.test_drill import PLAN, batching_failed, healthy
from tests.unit.builders import NOW_S

SINCE_S = NOW_S - 30
DONE_S = SINCE_S + 73
BEFORE = LoadWindow("before", SINCE_S, 20.0, 340.0, 330.0, 1278.0, 2054.0, 68, 0.12)
WINDOWS = (
    replace(BEFORE, label="calm", failed=0),
    BEFORE,
    replace(BEFORE, label="reload", length_s=10.0, failed=0, p99_ms=None),
)
PASSED = Check(DONE_S, 112.0, 0.0, None, 3000.0, True, True, "")
PLANNED = replace(PLAN, target="stack /srv", diff="+ max_batch_size: 32")


def record(decision: Decision | None = Decision.KEEP) -> IncidentRecord:
    found = batching_failed()
    hurt = replace(found.incident, since_s=SINCE_S, signal="e2e_p99_ms", value=2054.0, limit=1000.0)
    found = replace(found, incident=hurt, missing=(), remarks=(), deciding=None)
    verification = Verification(decision, "p99 is 900 ms", (PASSED,)) if decision else None
    return IncidentRecord("Drill", "sim:small", found, PLANNED if decision else None, verification, (), WINDOWS)


def test_impact_says_how_long_how_many_and_how_slow() -> None:
    assert impact(record()) == [
        "## Impact",
        "",
        (
            f"- From {instant(SINCE_S)} until the fix was verified at {instant(DONE_S)} (1 min 13 s); "
            "at 340 requests/s that is about 24,820 requests."
        ),
        "- In the 20 s measured before the fix: 6,800 requests offered, 68 failed (1 %), p99 2,054 ms, limit 1,000 ms.",
        (
            "- In the 10 s measured while the change took effect: 3,400 requests offered, 0 failed (0 %), p99 -, "
            "limit 1,000 ms."
        ),
        "",
    ]


@pytest.mark.parametrize("decision", [None, Decision.ROLL_BACK, Decision.HOLD])
def test_what_no_verified_fix_ended_is_not_said_to_be_over(decision: Decision | None) -> None:
    assert impact(record(decision))[2] == f"- From {instant(SINCE_S)}; not over at the last figures of this report."


def test_a_beginning_that_is_not_known_gives_no_length() -> None:
    known = record()
    undated = replace(
        known, diagnosis=replace(known.diagnosis, incident=replace(known.diagnosis.incident, since_s=None))
    )
    assert impact(undated)[2] == (
        f"- From before the first window that is known until the fix was verified at {instant(DONE_S)}."
    )


def test_without_an_incident_there_is_no_impact_and_nothing_to_do() -> None:
    calm = replace(record(None), diagnosis=replace(healthy(), missing=(), remarks=()))
    assert impact(calm) == []
    assert follow_up(calm) == ["## Follow-up", "", "Nothing that these figures ask for.", ""]


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (
            Decision.KEEP,
            "- [ ] Write `batch-floor` into what deploys stack /srv, or the next deployment takes it back.",
        ),
        (Decision.ROLL_BACK, "- [ ] `batch-floor` did not hold (p99 is 900 ms); the cause is still there. Enforce a"),
        (Decision.HOLD, "- [ ] Decide on `batch-floor`, which is held: p99 is 900 ms."),
        (None, "- [ ] Nothing was changed. Enforce a batch floor"),
    ],
)
def test_what_is_to_do_follows_from_how_it_ended(decision: Decision | None, told: str) -> None:
    (item,) = follow_up(record(decision))[2:-1]
    assert item.startswith(told)


def test_a_change_of_no_settings_is_deployed_by_nothing() -> None:
    warmed = replace(record(), plan=replace(PLANNED, diff=""))
    assert follow_up(warmed)[2] == "Nothing that these figures ask for."


def test_what_was_not_seen_what_came_otherwise_and_what_the_settings_lack_is_to_do() -> None:
    known = record()
    found = replace(
        known.diagnosis,
        missing=(
            Gap("logs", GapReason.UNREACHABLE, "x|y.log: no such file"),
            Gap("response_time_ms", GapReason.NOT_CONFIGURED, ""),
        ),
        remarks=(Remark("wait", "the wait is 5 s", "it costs", "write 100 ms"),),
        deciding=Gap("retry_ratio", GapReason.NOT_CONFIGURED, "", "a retry counter of a proxy"),
    )
    assert known.verification is not None
    outside = (Reached("e2e_p99_ms", "ms", 112.0, 96.0, 134.0, 332.0, within=False),)
    items = follow_up(replace(known, diagnosis=found, verification=replace(known.verification, reached=outside)))[3:-1]
    assert items == [
        "- [ ] Measure retry, it would have decided most: a retry counter of a proxy.",
        "- [ ] Make logs readable again: x\\|y.log: no such file.",
        (
            "- [ ] Find out why p99 lies outside its predicted interval: not known, nothing else that was predicted is "
            "measured."
        ),
        "- [ ] Look at the settings: the wait is 5 s: it costs; write 100 ms.",
    ]


def test_the_report_begins_with_the_impact_and_ends_with_what_is_left() -> None:
    heads = [line for line in incident(record()).splitlines() if line.startswith("## ")]
    assert heads[0] == "## Impact"
    assert heads[-1] == "## Follow-up"
