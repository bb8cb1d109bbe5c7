"""A canary's windows and decision as records of the journal, and read back from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from latencydoctor.app.ports import RunHistory
from latencydoctor.model.canary import CanaryCheck, CanaryTrial
from latencydoctor.model.remedy import Reading, RunEvent

CARRIED_S = 900.0
"""How old the last window of a run that was cut off may be to count on: fifteen windows of a minute."""


def check_record(check: CanaryCheck) -> dict[str, object]:
    """A window as a record's fields."""
    return asdict(check)


def trial_record(trial: CanaryTrial) -> dict[str, object]:
    """The decision as a record's fields; the windows have records of their own."""
    return {"decision": trial.decision, "reason": trial.reason, "ratio": trial.ratio}


def cut_off(history: RunHistory, plan_digest: str, now_s: float) -> tuple[CanaryCheck, ...]:
    """The windows of the newest run where that tried the same plan and was cut off before the judge had decided.

    So failures in a row survive whoever counts them: a checker that is killed and started again does not begin anew.
    """
    runs = history.list()
    if not runs or runs[0].kind != "apply" or runs[0].damage:
        return ()
    entries = history.entries(runs[0].run_id)
    events = {entry.event for entry in entries}
    same = bool(entries) and entries[0].fields.get("plan_digest") == plan_digest
    if not same or RunEvent.CANARY_DECISION in events:
        return ()
    found = tuple(_check(entry.fields) for entry in entries if entry.event == RunEvent.CANARY_WINDOW)
    return found if found and now_s - found[-1].end_s <= CARRIED_S else ()


def _check(fields: Mapping[str, object]) -> CanaryCheck:
    return CanaryCheck(
        start_s=_number(fields.get("start_s")) or 0.0,
        end_s=_number(fields.get("end_s")) or 0.0,
        canary=_reading(fields.get("canary")),
        baseline=_reading(fields.get("baseline")),
        note=str(fields.get("note", "")),
        failures_in_a_row=round(_number(fields.get("failures_in_a_row")) or 0.0),
    )


def _reading(value: object) -> Reading:
    held = value if isinstance(value, dict) else {}
    p99, errors, memory, requests, hits = (
        _number(held.get(name)) for name in ("p99_ms", "error_ratio", "memory_bytes", "requests", "hit_ratio")
    )
    return Reading(p99, errors, memory, requests, str(held.get("note", "")), hits)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
